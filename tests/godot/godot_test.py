"""Godot steps by the archive's add-on alone: the suite, two games, and mishaps on either side."""

import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tandem
from tandem.environments.images import separate
from tandem.services import SimulationContract
from tandem.testing.engines import nothing_left_behind, start_python, unique_name, watchdog  # noqa: F401, the fixtures
from tests.sdk.commands import run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_RUN = Path("addons/tandem/run")


@pytest.fixture(scope="module")
def built(sdk: Path) -> Path:
    """Builds the add-on by CMake from the archive; returns the build's folder."""
    build = sdk.parent / "build"
    run("cmake", "-S", sdk / "godot", "-B", build, f"-DCMAKE_PREFIX_PATH={sdk}", environment=_ENVIRONMENT)
    run("cmake", "--build", build, environment=_ENVIRONMENT)
    return build


@pytest.fixture(scope="module")
def probe(built: Path) -> Path:
    """A project with the add-on; returns its program."""
    project = built / "probe"
    shutil.copytree("tests/godot/probe", project)
    shutil.copytree(built / "addons", project / "addons")
    return project / _RUN


@contextlib.contextmanager
def _serving(program: Path, num_envs: int = 1, **options: object) -> Iterator[tandem.SharedMemoryClient]:
    """Starts a project, and attaches."""
    with (
        tandem.launch_engine(server=program, num_envs=num_envs, name=unique_name(), **options) as engine,  # type: ignore[arg-type]
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=1)
        yield client


def _step(client: tandem.SharedMemoryClient) -> None:
    client.fields["action", "/push"][:] = 0.1
    client.step(client.actions)


def _suite(sdk: Path, *words: str | Path) -> str:
    report = run(sdk / "bin/tandem-conformance", "--limit_flag=max_episode_steps", *words, environment=_ENVIRONMENT)
    assert "FAILED" not in report and re.search(r"\d passed, 0 failed, \d+ skipped\n$", report), report
    return report


def test_a_project_with_fields_passes_the_suite(sdk: Path, probe: Path) -> None:
    """With contracts, streams, seeds and methods of its own."""
    report = _suite(sdk, probe)
    for group in ("Fields", "Contracts", "Streams", "OwnMethods", "Steps", "Episodes"):
        assert re.search(f"^ok +{group}[.]", report, re.MULTILINE), group


@pytest.mark.parametrize("group", ["Frames", "Images"])
def test_a_drawn_game_passes_the_suite(sdk: Path, built: Path, group: str) -> None:
    """On a display of its own."""
    report = _suite(sdk, f"--filter={group}.", built / "examples/flyer" / _RUN, "--image_side=24")
    assert re.search(f"^ok +{group}[.]", report, re.MULTILINE)


def test_bullet_repeats_a_seed_s_trajectory(built: Path) -> None:
    """With contacts of 22 bodies, in four environments; each has its own seed."""
    with _serving(built / "examples/plate" / _RUN, 4) as client:

        def trajectory(pause_secs: float) -> np.ndarray:
            client.reset(seed=7)
            rows = []
            for step in range(60):
                if step % 20 == 0:
                    time.sleep(pause_secs)  # ticks without a request pass
                client.actions[:] = [np.sin(step / 5), np.cos(step / 7)]
                rows.append(client.step(client.actions)[0].copy())
            return np.array(rows)

        first = trajectory(0)
        other = trajectory(0.1)
        assert (other == first).all()
        assert (first[:, 0] != first[:, 1]).any()


def test_pictures_show_the_game_as_telemetry_has_it(built: Path) -> None:
    """Frames of four agents, and the images beside observations."""
    with _serving(built / "examples/flyer" / _RUN, 4, frames=(320, 240), flags=["--image_side=80"]) as client:
        for _ in range(5):
            client.actions[:] = 0.5
            client.step(client.actions)
        frame, metadata = client.drawn_frame()
        for env, tile in enumerate(separate(frame, metadata, 4)):
            x, y = client.mujoco.joint_state([env])[0].positions[:2]
            assert tile[int(y), int(x)].tolist() == [255, 69, 0]  # orange-red, the flyer
            assert client.images is not None and client.images[env][int(y / 3), int(x / 4)].tolist() == [255, 69, 0]


def test_a_contract_changes_the_mass(probe: Path) -> None:
    """The reward is the mass; telemetry has the height."""
    with _serving(probe, 4) as client:
        client.reset(seed=1, contract=SimulationContract(mass_scale_range=(2, 3)))
        client.fields["action", "/push"][:] = 0
        _, rewards, _ = client.step(client.actions)
        assert ((rewards >= 2) & (rewards <= 3)).all() and len(set(rewards.tolist())) == 4
        height = client.mujoco.joint_state([2])[0].positions[0]
        # Three ticks. In Godot 3.2 with Bullet gravity begins in a body's second tick, and nodes are a tick behind.
        assert height == pytest.approx(10 - 9.8 / 60**2, abs=1e-4)
        assert client.fields["obs", "/place"][2, 1] == height
        assert client.call("echo", b"\0x") == b"\0x"
        with pytest.raises(tandem.EngineFailed, match="refused by the script"):
            client.call("mishap", b"refuse")
        with pytest.raises(tandem.EngineFailed, match="expected bytes or a text, found 3"):
            client.call("mishap", b"number")
        assert client.fields["obs", "/steps"][2] == 2**53 + 1


@pytest.mark.parametrize(
    ("mishap", "text"),
    [
        ("raise", "_act of .*expected OK, found Null"),
        ("short", "obs/place: expected 3 numbers, found 1"),
        ("text", "obs/place: expected 3 numbers, found other values"),
    ],
)
def test_a_script_that_fails_fails_the_step(probe: Path, mishap: str, text: str) -> None:
    """The engine lives on."""
    with _serving(probe, 2) as client:
        client.call("mishap", mishap.encode())
        with pytest.raises(tandem.EngineFailed, match=text):
            _step(client)
        client.call("mishap", b"none")
        client.reset(seed=1)
        _step(client)


def test_a_reloaded_scene_fails_steps_until_the_reset(probe: Path) -> None:
    """The trainer stays attached."""
    with _serving(probe, 2) as client:
        client.call("mishap", b"reload")
        with pytest.raises(tandem.EngineFailed, match="loaded again"):
            for _ in range(100):
                _step(client)
        client.reset(seed=1)
        _step(client)


def test_a_freed_agent_fails_steps(probe: Path) -> None:
    """The trainer does not wait for its timeout."""
    with _serving(probe, 2) as client:
        client.call("mishap", b"free")
        with pytest.raises(tandem.EngineFailed, match="script error"):
            for _ in range(3):
                _step(client)


def test_a_closed_window_is_a_gone_peer(probe: Path) -> None:
    """And a killed Godot, too."""
    with pytest.raises(tandem.PeerGone), _serving(probe) as client:
        with contextlib.suppress(tandem.PeerGone):
            client.call("mishap", b"close")
        for _ in range(100):
            _step(client)
    with pytest.raises(tandem.PeerGone), _serving(probe) as client:
        os.kill(client.engine_pid, signal.SIGKILL)
        _step(client)


def test_a_frozen_godot_is_a_step_timeout(probe: Path) -> None:
    """Awake again, it answers."""
    with _serving(probe) as client:
        os.kill(client.engine_pid, signal.SIGSTOP)
        client.send(client.actions)
        with pytest.raises(tandem.StepTimeout):
            client.recv(timeout=0.3)
        os.kill(client.engine_pid, signal.SIGCONT)
        client.recv()
        _step(client)


def test_trainers_that_are_frozen_or_killed_leave_the_game(probe: Path) -> None:
    """A frozen one keeps the game; after its end the next one attaches."""
    program = (
        "import tandem, sys; c = tandem.SharedMemoryClient(sys.argv[1], timeout=30); c.reset(seed=1)\n"
        "print(1, flush=True)\nwhile True: c.step(c.actions)"
    )
    with tandem.launch_engine(server=probe, name=unique_name()) as engine:
        for frozen in (True, False, False, False):  # killed in a step
            trainer = start_python(program, engine.name)
            assert trainer.stdout is not None and trainer.stdout.readline() == "1\n"
            if frozen:
                trainer.send_signal(signal.SIGSTOP)
                with pytest.raises(tandem.AlreadyAttached):
                    tandem.SharedMemoryClient(engine.name, timeout=0.3)
            trainer.kill()
            trainer.communicate()
        with tandem.SharedMemoryClient(engine.name, timeout=30) as client:
            client.reset(seed=1)
            _step(client)


def test_what_cannot_start_says_why(probe: Path, built: Path, tmp_path: Path) -> None:
    """Different spaces, another number of environments than of agents, wrong properties, and no library."""
    project = tmp_path / "project"
    shutil.copytree(probe.parents[2], project)
    settings = project / "project.godot"
    settings.write_text(settings.read_text().replace("probe.tscn", "two.tscn"))
    with pytest.raises(tandem.InvalidArgument, match="equal spaces"):
        tandem.launch_engine(server=project / _RUN, num_envs=2)
    scene = project / "two.tscn"
    scene.write_text(scene.read_text().replace("ticks_per_step = 1\n", ""))
    with pytest.raises(tandem.InvalidArgument, match="2, the agents of the scene, found 3"):
        tandem.launch_engine(server=project / _RUN, num_envs=3)
    with _serving(project / _RUN, 2) as client:
        _step(client)
    valid = scene.read_text()
    for line, text in (
        ("ticks_per_step = 0", "ticks_per_step: expected at least 1, found 0"),
        ('action_fields = {"push": "float32"}', "action/push: expected float32, uint8 or int64, found none"),
        ('own_methods = PoolStringArray( "a", "a" )', "own methods: expected different names"),
    ):
        scene.write_text(valid.replace("script = ExtResource( 1 )", f"script = ExtResource( 1 )\n{line}"))
        with pytest.raises(tandem.InvalidArgument, match=text):
            tandem.launch_engine(server=project / _RUN, num_envs=2)
    scene.write_text(
        valid.partition('[node name="Two"')[0] + '[node name="One" type="Node"]\nscript = ExtResource( 1 )\n'
    )
    with _serving(project / _RUN, 3) as client:  # the agent is the root of its scene
        _step(client)
    (project / "addons/tandem/libtandem.so.1").unlink()
    with pytest.raises(tandem.EngineStartFailed, match="found none that loads"):
        tandem.launch_engine(server=project / _RUN, num_envs=2)


def test_the_quickstart_s_search_trains_the_flyer(built: Path, tmp_path: Path) -> None:
    """To 80 % of the best return, which the game prints, and ten times that of the untrained policy."""
    words = ("--num_envs=32", "--iterations=80", "--noise=0.2", "--step_size=0.12", f"--out={tmp_path}")
    program = start_python(Path("client_py/examples/train_ars.py"), f"--server={built}/examples/flyer/{_RUN}", *words)
    report, errors = program.communicate(timeout=200)
    before, after = (float(re.search(rf"return {when} +([\d.]+)", report)[1]) for when in ("before", "after"))  # type: ignore[index]
    assert after >= max(0.8 * 200, 10 * before), report + errors
