"""Scenes of other engines in Chromium: each node is where its engine has it."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

import tandem
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import browser_fixture, page_fixture, view_fixture  # noqa: F401, fixtures
from tests.web.page_fixture import DEADLINE_SECS, Page, wait_for
from tests.web.scene_samples import open_run_in_3d, shown_poses, world_poses

_GAMES = {"C++": Path("sdk/cpp_game"), "Python": Path("client_py/examples/cart_game.py")}
_ENVS = 2
_STEPS = 30

_Matrices = npt.NDArray[np.float64]


def _await(
    page: Page, name: str, step: Callable[[], object], expected: Callable[[int], _Matrices], extent: float
) -> None:
    """Steps until the page shows the nodes of each environment where the engine has them, to 1e-5 of the extent.

    `expected` returns the matrices of an environment's nodes, float64[nodes, 16].
    """
    open_run_in_3d(page, name)

    def has_scene() -> bool:
        step()
        time.sleep(0.01)
        return bool(page.all("canvas.scene"))

    wait_for(has_scene, "a scene")

    def is_shown() -> bool:
        step()
        end = time.monotonic() + 0.5  # the rate of snapshots is limited: the next one may be of another step
        while time.monotonic() < end:
            rows = shown_poses(page) or []
            far = [np.abs(_without_scale(row["matrices"]) - expected(row["env"])).max() for row in rows]
            if len(far) == _ENVS and max(far) <= 1e-5 * extent:
                return True
        return False

    wait_for(is_shown, "the engine's poses")
    assert page.errors() == []


def _without_scale(matrices: list[list[float]]) -> _Matrices:
    plain = np.array(matrices).reshape(-1, 4, 4)
    plain[:, :3, :3] /= np.linalg.norm(plain[:, :3, :3], axis=2, keepdims=True)
    return plain.reshape(-1, 16)


@pytest.mark.parametrize("language", _GAMES)
def test_a_game_is_shown_where_it_has_its_cart(page: Page, language: str) -> None:
    """An engine by libtandem, and one in Python."""
    with (
        tandem.launch_engine(server=_GAMES[language].absolute(), name=unique_name(), num_envs=_ENVS) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=DEADLINE_SECS) as client,
    ):
        client.reset(seed=1)
        start = client.mujoco.joint_state([0])[0].positions[0]
        client.actions[:] = [[0.3], [0.2]]
        for _ in range(_STEPS):
            client.step(client.actions)
        assert client.mujoco.joint_state([0])[0].positions[0] > start

        def expected(env: int) -> _Matrices:
            matrix = np.eye(4)
            matrix[3, 0] = client.mujoco.joint_state([env])[0].positions[0]
            return matrix.reshape(1, 16)

        def push() -> None:
            client.actions[:] *= -1
            client.step(client.actions)

        _await(page, engine.name, push, expected, extent=2)
        page.save(f"scene-{language[0]}")


def test_gymnasiums_robots_in_workers_are_shown(page: Page) -> None:
    """Found by the workers, in environments that know nothing of it; beside the same robots without Tandem."""
    twins = [gymnasium.make("HalfCheetah-v5") for _ in range(_ENVS)]
    with closing(tandem.make_vec("HalfCheetah-v5", _ENVS, backend="python")) as envs:
        envs.reset(seed=7)
        for index, twin in enumerate(twins):
            twin.reset(seed=7 + index)
        rng = np.random.default_rng(0)

        def step() -> None:
            actions = rng.uniform(-1, 1, (_ENVS, 6)).astype(np.float32)
            envs.step(actions)
            for twin, action in zip(twins, actions, strict=True):
                twin.step(action)

        def expected(env: int) -> _Matrices:
            twin: Any = twins[env].unwrapped
            return world_poses(np.hstack([twin.data.xpos[1:], twin.data.xquat[1:][:, [1, 2, 3, 0]]]))

        first: Any = twins[0].unwrapped
        _await(page, envs.client.name, step, expected, extent=float(first.model.stat.extent))
        page.save("scene-workers")
    for twin in twins:
        twin.close()
