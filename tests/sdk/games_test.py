"""The games of the archive, built outside of the project, and that of the wheel: engines with every service."""

import contextlib
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem.environments.images import separate
from tandem.services import CameraKind, SimulationContract
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures
from tests.sdk.commands import run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_CART, _GROUND = [255, 140, 0], [30, 30, 30]


@dataclass(frozen=True)
class Game:
    """A program, and the flags that let it turn fast."""

    program: Path
    flags: tuple[str, ...]


@pytest.fixture(scope="module", params=["c_game", "cpp_game", "cart_game.py"])
def game(sdk: Path, request: pytest.FixtureRequest) -> Game:
    """Builds a game by CMake; that in Python is ready."""
    name: str = request.param
    if name.endswith(".py"):
        return Game(Path("client_py/examples", name).absolute(), ())
    source, build = sdk / "examples" / name, sdk.parent / "build" / name
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={sdk}", environment=_ENVIRONMENT)
    run("cmake", "--build", build, environment=_ENVIRONMENT)
    return Game(build / name, ("--tick_hz=2000",))


def test_passes_the_suite(sdk: Path, game: Game) -> None:
    """By the archive's own program."""
    words: list[str | Path] = ["--limit_flag=truncate_after", "--python", sys.executable, game.program, *game.flags]
    paths = os.pathsep.join(filter(None, sys.path))
    environment = _ENVIRONMENT | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}  # a rule limits memory
    report = run(sdk / "bin/tandem-conformance", *words, cwd=sdk, environment=environment)
    assert "FAILED" not in report and re.search(r"\d\d passed, 0 failed, \d+ skipped\n$", report), report


def test_images_are_observations_and_frames(game: Game) -> None:
    """Both show the cart where the telemetry has it."""
    with (
        tandem.launch_engine(server=game.program, num_envs=2, frames=(64, 8), flags=game.flags) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=3)
        image = client.fields["obs", "/image"]
        assert image.dtype == np.uint8 and image.shape == (2, 36, 36, 3)
        frame, metadata = client.drawn_frame()
        for env, tile in enumerate(separate(frame, metadata, 2)):
            at = float(client.mujoco.joint_state([env])[0].positions[0])
            for picture in (image[env], tile):
                height, width = picture.shape[:2]
                place = int((at + 1) / 2 * (width - 1))
                assert picture[height - 1, place].tolist() == _CART
                assert picture[0, place].tolist() == _GROUND
                assert (picture[height - 1] == _CART).all(axis=1).sum() == 1
        camera = client.camera.frame("side", width=16, height=4, env_id=1)
        assert camera.pixels.shape == (4, 16, 3) and (camera.pixels[3] == _CART).all(axis=1).sum() == 1
        assert client.camera.frame("side", format="png").encoded.startswith(b"\x89PNG")
        assert client.camera.frame("side", format="jpeg").encoded.startswith(b"\xff\xd8")


def test_a_contract_changes_the_friction(game: Game) -> None:
    """Of later episodes, by the contract's seed; other fields are reported as unused."""
    with (
        tandem.launch_engine(server=game.program, num_envs=2, flags=game.flags) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):

        def speeds(contract: SimulationContract) -> list[float]:
            """Returns the speed of each environment after two pushes."""
            client.reset(seed=5, contract=contract)
            client.actions[:] = 1
            client.step(client.actions)
            client.step(client.actions)
            return [each.velocities[0] for each in client.mujoco.joint_state([0, 1])]

        slow = speeds(SimulationContract(friction_range=(12, 12)))
        assert slow == pytest.approx([2 * 4 / 60 - 12 * 4 / 60 / 60] * 2, rel=1e-5)
        drawn = speeds(SimulationContract(friction_range=(0, 12)))
        assert drawn[0] != drawn[1] and min(drawn) >= slow[0]
        assert speeds(SimulationContract(friction_range=(0, 12))) == drawn
        unused = client.agent.set_contract(SimulationContract(mass_scale_range=(1, 2)), [0, 1])
        assert unused == ("mass_scale_range",)


def test_a_contract_leaves_the_seed_s_stream_as_it_was(game: Game) -> None:
    """The places at the start are the same with a contract and without; friction has draws of its own."""
    with (
        tandem.launch_engine(server=game.program, flags=game.flags) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):

        def places(contract: SimulationContract | None) -> list[float]:
            """Returns the place at the start of three episodes, the first of them seeded."""
            return [
                (client.reset(seed=seed, contract=contract), float(client.mujoco.joint_state().positions[0]))[1]
                for seed in (5, None, None)
            ]

        plain = places(None)
        assert len(set(plain)) == 3
        assert places(SimulationContract(friction_range=(0, 12))) == plain


def test_no_request_stops_the_game(game: Game) -> None:
    """Winds and frictions that lead to NaN, depth images that it cannot draw, and callers without patience."""
    with (
        tandem.launch_engine(server=game.program, flags=game.flags) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        for wind in (b"nan", b"inf", b"-inf", b"", b"strong"):
            with pytest.raises(tandem.TandemError, match="finite"):
                client.call("set_wind", wind)
        client.reset(seed=1, contract=SimulationContract(friction_range=(-3e38, 3e38)))
        client.actions[:] = 1
        for _ in range(5):
            client.step(client.actions)
            assert client.fields["obs", "/image"].max() == 255
        with pytest.raises(tandem.TandemError):
            client.camera.frame("side", kind=CameraKind.DEPTH)
        for _ in range(30):
            with contextlib.suppress(TimeoutError):
                client.call("set_wind", b"1", timeout=0.001)
        client.reset(seed=1)
        client.step(client.actions)
        assert client.call("set_wind", b"0") == b"ok"


def test_telemetry_streams_and_own_methods_answer(game: Game) -> None:
    """The wind moves the cart; it ends with the client."""
    with tandem.launch_engine(server=game.program, flags=game.flags) as engine:
        with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
            (method,) = json.loads(client.description)["own_methods"]
            assert (method["name"], method["content_type"]) == ("set_wind", "text/plain")
            assert client.call("set_wind", b"60") == b"ok"
            client.reset(seed=1)
            client.actions[:] = 0
            with client.telemetry.stream() as frames:
                client.step(client.actions)
                newest = next(frame for frame in frames if frame.observation_qpos[1] != 0)
            assert newest.observation_qpos[1] == pytest.approx(1)
            with pytest.raises(tandem.InvalidArgument, match="set_wind"):
                client.call("set_rain", b"1")
        with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
            client.reset(seed=1)
            client.step(client.actions)
            assert client.mujoco.joint_state().velocities.tolist() == [0]


def test_make_vec_finds_the_spaces(game: Game) -> None:
    """A Dict with an image, which is what policies of several inputs want."""
    engine = tandem.EngineOptions(server=game.program, flags=[*game.flags, "--truncate_after=3"])
    with contextlib.closing(tandem.make_vec(num_envs=2, engine=engine)) as envs:
        assert envs.single_observation_space == spaces.Dict(image=spaces.Box(0, 255, (36, 36, 3), np.uint8))
        envs.reset(seed=0)
        for step in range(1, 4):
            _, rewards, _, truncations, _ = envs.step(np.ones((2, 1), np.float32))
            assert (rewards < 0).all() and (truncations == (step == 3)).all()
