"""The live scene of Gymnasium's MuJoCo environments in workers."""

import functools
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.live_scenes import LiveScene, Snapshot, watched
from tandem.testing.sample_envs import ScriptedEnv
from tandem.workers.scenes import nodes_of

_NUM_ENVS = 3


class Where(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells what MuJoCo has, and changes it."""

    def where(self) -> Any:
        """Returns xpos, xquat and time."""
        data: Any = self.unwrapped
        return data.data.xpos[1:].copy(), data.data.xquat[1:].copy(), data.data.time

    def change(self, what: str) -> None:
        """Changes a colour, or takes the model away, or has another version of MuJoCo."""
        inner: Any = self.unwrapped
        if what == "colour":
            inner.model.geom_rgba[1] = (1, 0, 0, 1)
        elif what == "no model":
            inner.model = None
        else:
            sys.modules["mujoco"].mj_versionString = lambda: "3.3.7"  # type: ignore[attr-defined]
            inner.model.geom_rgba[1] = (0, 1, 0, 1)


def _make(task: str) -> Any:
    return Where(gymnasium.make(task))


@pytest.fixture
def envs(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Starts HalfCheetahs in two workers, and resets them."""
    task = getattr(request, "param", "HalfCheetah-v5")
    restarts = tandem.WorkerOptions(restart=True)
    with closing(tandem.make_vec(functools.partial(_make, task), _NUM_ENVS, num_workers=2, engine=restarts)) as made:
        made.reset(seed=0)
        yield made


def _step(envs: Any) -> None:
    envs.step(envs.action_space.sample())


def _next(scene: LiveScene, steps: list[int]) -> Snapshot:
    while (snapshot := scene.next()).steps != steps:
        pass
    return snapshot


@pytest.mark.parametrize("envs", ["HalfCheetah-v5", "Humanoid-v5"], indirect=True)
def test_each_node_is_where_the_environment_has_its_body(envs: Any) -> None:
    """By its name, to 1e-5 of the scene's extent; with the numbers of the episodes."""
    with watched(envs.client.name) as scene:
        for _ in range(5):
            _step(envs)
        snapshot = _next(scene, [5] * _NUM_ENVS)
        assert (snapshot.envs, snapshot.episodes) == ([0, 1, 2], [0, 0, 0])
        tandem_extras = scene.gltf["scenes"][0]["extras"]["tandem"]
        names = [scene.gltf["nodes"][node]["name"] for node in tandem_extras["moving"]]
        assert names[0] == "torso" and len(names) == scene.nodes
        for row, (xpos, xquat, time) in enumerate(envs.call("where")):
            poses = snapshot.poses[row]
            assert np.abs(poses[:, :3] - xpos).max() < 1e-5 * tandem_extras["extent"]
            assert np.abs(poses[:, [6, 3, 4, 5]] - xquat).max() < 1e-5
            assert snapshot.times[row] == time


def test_nothing_is_copied_without_a_viewer(envs: Any) -> None:
    """The memory has no page; after the last viewer, workers get no more orders."""
    _step(envs)
    supervisor = Path(f"/proc/{envs.client.engine_pid}/fd")
    files = [path for path in supervisor.iterdir() if "tandem-scene" in os.readlink(path)]
    assert {path.stat().st_blocks for path in files} == {0}
    assert not any("tandem-model" in os.readlink(path) and path.stat().st_size for path in supervisor.iterdir())
    with watched(envs.client.name, 2) as scene:
        assert scene.next().envs == [2]
    envs.call("where")  # an order of the trainer's, after those of the scene
    before = files[0].read_bytes()
    for _ in range(20):
        _step(envs)
    envs.call("where")
    assert files[0].read_bytes() == before


def test_a_changed_model_is_a_new_generation(envs: Any) -> None:
    """That of the first watched environment; of another worker's, too."""
    with watched(envs.client.name) as scene:
        first = scene.glb
        envs.call_chosen([0], "change", "colour")
        assert scene.attach()["generation"] == 2 and scene.glb != first
    with watched(envs.client.name, 2) as scene:
        assert scene.glb == first
        _step(envs)
        assert _next(scene, [1]).envs == [2]


def test_a_worker_that_dies_is_watched_again(envs: Any) -> None:
    """When it is started again; steps continue."""
    with watched(envs.client.name) as scene:
        _step(envs)
        _next(scene, [1] * _NUM_ENVS)
        os.kill(_worker(envs), signal.SIGKILL)
        for _ in range(5):
            _step(envs)
        places = np.array([xpos for xpos, _, _ in envs.call("where")])
        while not np.allclose(scene.next().poses[:, :, :3], places, atol=1e-5):
            pass


def _worker(envs: Any) -> int:
    """Returns the process of the first worker."""
    return int(Path(f"/proc/{envs.client.engine_pid}/task/{envs.client.engine_pid}/children").read_text().split()[0])


@pytest.mark.parametrize(
    ("what", "text"), [("no model", "model and data"), ("version", r"found one of MuJoCo 3\.3\.7")]
)
def test_a_model_that_cannot_be_drawn_ends_the_watch(envs: Any, what: str, text: str) -> None:
    """With the reason, such as both versions of MuJoCo; steps continue."""
    envs.call("change", what)
    with pytest.raises(tandem.Unsupported, match=text), watched(envs.client.name):
        pass
    if what == "version":
        _step(envs)


def test_an_environment_may_raise_when_it_is_looked_at() -> None:
    """It has no scene then."""

    class Shy(ScriptedEnv):
        @property
        def unwrapped(self) -> Any:
            raise RuntimeError("look elsewhere")

    assert nodes_of([Shy()]) == 0


def test_environments_without_mujoco_have_no_scene() -> None:
    """The call is Unsupported."""
    with closing(tandem.make_vec(ScriptedEnv, 2, num_workers=1)) as envs:
        with pytest.raises(tandem.Unsupported, match="WatchScene"), watched(envs.client.name):
            pass
