"""Engines and clients in C#, on Mono and on .NET: the assembly of sdk/csharp with the library of the archive."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.services import CameraKind, SimulationContract
from tandem.testing.live_scenes import watched
from tandem.testing.standin import LIBRARY
from tests.sdk.commands import SUITE, run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

PROGRAMS = Path("sdk/csharp").absolute()
REFERENCE = Path("engine_adapter/conformance/reference/server").absolute()
FIELDS = Path("sdk/pair_server").absolute()


def _dotnet() -> Path:
    """Returns .NET's program, in a package whose modules need others."""
    package = importlib.util.find_spec("dnv")
    assert package is not None and package.submodule_search_locations is not None
    return Path(next(iter(package.submodule_search_locations)), "net/runtime/.net/dotnet").absolute()


# The command, and the folder of the programs that it runs.
RUNTIMES: dict[str, tuple[Sequence[str], Path]] = {
    "Mono": (["mono"], PROGRAMS),
    ".NET": (
        [str(_dotnet()), "exec", "--runtimeconfig", str(PROGRAMS / "testing/runtimeconfig.json")],
        PROGRAMS / "dotnet",
    ),
}


@dataclass(frozen=True)
class Runtime:
    """What runs programs: its command, and its environment variables, by which it finds the library."""

    command: Sequence[str]
    programs: Path
    environment: dict[str, str]
    folder: Path

    def of(self, program: str, *arguments: str) -> list[str | Path]:
        """Returns the command that runs a program."""
        return [*self.command, self.programs / program, *arguments]

    def run(self, program: str, *arguments: str) -> str:
        """Returns what a program prints."""
        return run(*self.of(program, *arguments), environment=self.environment)

    def script(self, program: str, *arguments: str) -> Path:
        """Returns a program that runs an engine."""
        variables = " ".join(f"{name}='{self.environment[name]}'" for name in _VARIABLES)
        command = " ".join(f"'{part}'" for part in self.of(program, *arguments))
        script = self.folder / f"run_{Path(program).stem}"
        script.write_text(f'#!/bin/sh\nexport {variables}\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        return script


# Mono and .NET write no files of their own to /dev/shm or /tmp.
_VARIABLES = ("LD_LIBRARY_PATH", "MONO_DISABLE_SHARED_AREA", "DOTNET_EnableDiagnostics")


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request: pytest.FixtureRequest, sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    """Mono, and .NET."""
    variables = dict(zip(_VARIABLES, (str(sdk / "lib"), "1", "0"), strict=True))
    return Runtime(*RUNTIMES[request.param], os.environ | variables, tmp_path_factory.mktemp("scripts"))


@pytest.fixture(scope="module")
def counter(runtime: Runtime) -> Path:
    """A program that starts the engine of the samples."""
    return runtime.script("CounterEngine.exe")


def _checks() -> list[str]:
    return run("mono", PROGRAMS / "Checks.exe", environment=dict(os.environ)).split()


@pytest.mark.parametrize("check", _checks())
def test_check_passes(runtime: Runtime, check: str) -> None:
    """A check of sdk/csharp/testing: errors, Dispose, the garbage collector, the classes of the plan."""
    name = f"tandem-test-csharp-{uuid.uuid4().hex[:12]}"
    assert runtime.run("Checks.exe", check, name) == "ok\n"
    left = [path for path in (Path("/dev/shm", name), Path(f"/dev/shm/.{name}.tandem")) if path.exists()]
    # As after a crash: without Dispose, its file stays until an engine starts, perhaps another test's.
    assert not left or check == "ACollectedEngineDoesNotCrash"
    for path in left:
        path.unlink(missing_ok=True)


def test_structs_are_those_of_the_header(sdk: Path, runtime: Runtime, tmp_path: Path) -> None:
    """In size, and in the offsets of their fields."""
    found = runtime.run("Checks.exe", "Structs")
    program = '#include <stddef.h>\n#include <stdio.h>\n#include "tandem.h"\nint main(void) {\n'
    for line in found.splitlines():
        struct, _, *fields = line.split()
        names = [field.split(":")[0] for field in fields]
        offsets = "".join(f', "{name}", offsetof({struct}, {name})' for name in names)
        program += f'  printf("{struct} %zu{" %s:%zu" * len(fields)}\\n", sizeof({struct}){offsets});\n'
    source = tmp_path / "structs.c"
    source.write_text(program + "  return 0;\n}\n", encoding="utf-8")
    run("gcc", "-o", tmp_path / "structs", f"-I{sdk}/include", source, environment=runtime.environment)
    assert found == run(tmp_path / "structs", environment=runtime.environment)
    header = (sdk / "include/tandem.h").read_text()
    declared = set(re.findall(r"^} (tandem_\w+);", header, re.MULTILINE))
    assert declared == {line.split()[0] for line in found.splitlines()}


def test_compiled_messages_are_those_of_the_command(tmp_path: Path) -> None:
    """`tools/generate_csharp` writes the source that the assembly contains."""
    run("tools/generate_csharp", tmp_path, environment=dict(os.environ))
    (written,) = tmp_path.iterdir()
    assert written.read_bytes() == (PROGRAMS / written.name).read_bytes()


@pytest.mark.parametrize("flags", [[], ["--tick_hz=1000", "--ticks=3"]], ids=["called", "with a loop"])
def test_engine_passes_the_suite(runtime: Runtime, counter: Path, flags: list[str]) -> None:
    """All of engine_adapter/conformance; .NET does not start in the 1 GB of address space that one rule allows."""
    command: list[str | Path] = [SUITE, "--limit_flag=truncate_after", counter, *flags]
    suite = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert suite.returncode == 0 and " 0 failed, " in suite.stdout, suite.stdout + suite.stderr
    skipped = "skipped  Processes.SizesBeyondMemoryPrintOneLine" in suite.stdout
    assert skipped == (runtime.programs == PROGRAMS / "dotnet")


def test_engine_on_a_gpu_passes_the_rules(runtime: Runtime, tmp_path: Path) -> None:
    """By the stand-in for the driver; the engine calls it, too."""
    (tmp_path / "libcuda.so.1").symlink_to(LIBRARY)
    paths = f"{runtime.environment['LD_LIBRARY_PATH']}:{tmp_path}"
    environment = runtime.environment | {"LD_LIBRARY_PATH": paths, "TANDEM_CUDA_LIBRARY": str(LIBRARY)}
    engine = replace(runtime, environment=environment, folder=tmp_path).script("Checks.exe", "Gpu")
    report = run(SUITE, "--filter=Gpu", engine, environment=environment)
    assert "ok       GpuAndHost.BothHaveTheSameObservations\n" in report and " 0 failed, " in report, report


@pytest.mark.parametrize("flags", [(), ("--tick_hz=1000",)], ids=["called", "with a loop"])
def test_engine_serves_a_trainer_and_its_own_rpc(counter: Path, flags: tuple[str, ...]) -> None:
    """The environments count. The handler in C# answers GetSceneInfo, for the client and for an attendant."""
    with (
        tandem.launch_engine(server=counter, num_envs=3, flags=(*flags, "--truncate_after=4")) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        assert (client.task, client.obs_size, client.act_size) == ("Counter", 2, 1)
        actions = np.array([[1], [2], [3]], np.float32)
        for step in range(1, 5):
            obs, rewards, dones = client.step(actions)
            assert rewards.tolist() == [1, 2, 3]
            assert (dones == (step == 4)).all()
        assert (obs[:, 0] == 0).all() and (client.final_obs[:, 0] == 4).all()
        with tandem.Attendant(engine.name) as attendant:
            for caller in (client, attendant):
                info = caller.scene.info()
                assert (info.scene_name, info.entity_count) == ("counters", 3)
        with pytest.raises(tandem.Unsupported):
            client.scene.entities()
        client.set_service("scene", False)
        with pytest.raises(tandem.Unsupported):
            client.scene.info()


@pytest.mark.parametrize("flags", [(), ("--tick_hz=1000",)], ids=["called", "with a loop"])
def test_engine_has_images_frames_a_contract_and_a_method(counter: Path, flags: tuple[str, ...]) -> None:
    """Those of the sample; the next client finds the colour of the start."""
    blue, red = bytes((0, 100, 200)), bytes((250, 0, 0))
    with tandem.launch_engine(server=counter, num_envs=2, frames=(4, 2), flags=flags) as engine:
        with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
            assert client.images is not None and client.images.shape == (2, 36, 36, 3)
            assert client.own.call("set_color", red) == blue
            with pytest.raises(tandem.InvalidArgument, match="3 bytes"):
                client.own.call("set_color", b"")
            with pytest.raises(tandem.InvalidArgument, match="set_color"):
                client.own.call("set_colour", red)
            client.agent.set_contract(SimulationContract(mass_scale_range=(3, 3)), [1])
            client.reset()
            assert client.images.tobytes() == 2 * 36 * 36 * red
            assert client.step(np.array([[1], [2]], np.float32))[1].tolist() == [1, 6]
            assert _drawn_frame(client)[0, 0].tobytes() == red
        with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
            client.reset()
            assert client.images is not None and client.images[0, 0, 0].tobytes() == blue
            assert client.step(np.array([[1], [2]], np.float32))[1].tolist() == [1, 2]
    with contextlib.closing(
        tandem.make_vec(num_envs=2, engine=tandem.EngineOptions(server=counter, flags=flags))
    ) as envs:
        obs, _ = envs.reset(seed=1)
        assert obs["image"].shape == (2, 36, 36, 3) and obs["state"].shape == (2, 2)


def _drawn_frame(client: tandem.SharedMemoryClient) -> NDArray[np.uint8]:
    while True:  # on a busy machine an engine may be late
        frame, metadata = client.drawn_frame()
        if b"has not drawn" not in metadata:
            assert b"error" not in metadata
            return frame


def test_frame_loop_of_an_editor_draws_frames(runtime: Runtime) -> None:
    """Of the environments in its FrameConfig."""
    name = f"tandem-test-csharp-{uuid.uuid4().hex[:12]}"
    command, pipe = runtime.of("Checks.exe", "Frames", name), subprocess.PIPE
    with subprocess.Popen(command, env=runtime.environment, stdout=pipe, text=True) as engine:
        with tandem.SharedMemoryClient(name, timeout=60) as client:
            frame = _drawn_frame(client)
            assert frame.shape == (2, 4, 3) and (frame == 7).all()
        assert engine.communicate(timeout=60)[0] == "ok\n"


def test_overridden_methods_are_services(runtime: Runtime) -> None:
    """Each of them, called by a client in Python; an exception is its caller's error."""
    server = runtime.script("Checks.exe", "Server")
    with (
        tandem.launch_engine(server=server, num_envs=2, frames=(4, 2)) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        assert client.scene.info().scene_name == "track"
        client.scene.set_transform("cart", position=(5, 0, 0), env_id=1)
        cart, front = client.scene.entities(env_id=1, transforms=True, components=True)
        assert cart.transform is not None and cart.transform.position is not None
        assert cart.transform.position.tolist() == [5, 2, 1] and cart.transform.scale is None
        assert front.components == ("camera", "body")
        with pytest.raises(tandem.EngineFailed, match="only the cart moves"):
            client.scene.set_transform("front", position=(5, 0, 0))
        (joints,) = client.mujoco.joint_state([1])
        assert (joints.positions.tolist(), joints.velocities.tolist()) == ([5, 2], [1])
        client.mujoco.send_control({"motor": 9, "brake": 9}, env_ids=[1])
        telemetry = client.telemetry.stream([1])
        assert client.step(client.actions)[0].tolist() == [[0], [1]]
        assert next(telemetry).action_ctrl.tolist() == [1, 9]
        telemetry.close()
        client.debug.arrow((0, 0, 0), (0, 0, 3))
        assert client.own.call("count_marks") == b"\1"
        client.debug.clear()
        assert client.own.call("count_marks") == b"\0"
        assert client.own.call("reverse", b"\0ab") == b"ba\0"
        with pytest.raises(tandem.EngineFailed, match="nothing to reverse"):
            client.own.call("reverse")
        assert b'"text/plain"' in client.description

        assert (client.camera.frame("rear", env_id=1).pixels == 211).all()
        assert (client.viewport.frame("right").pixels == 310 - 256).all()
        assert client.camera.frame("front", width=6, height=3).pixels.shape == (3, 6, 3)
        depth = client.camera.frame("front", kind=CameraKind.DEPTH).depth
        assert np.allclose(depth, 2, atol=1e-3)
        with pytest.raises(tandem.Unsupported, match="a lamp"):
            client.camera.frame("rear", kind=CameraKind.DEPTH)
        assert set(_drawn_frame(client).ravel().tolist()) == {100, 101}

        contract = SimulationContract(friction_range=(0.5, 1.5), terrain_type="ice", mass_scale_range=(1, 2))
        assert client.agent.set_contract(contract, [1]) == ("mass_scale_range",)
        for begins in (1, 0):
            client.reset()
            assert client.infos.tolist() == [[-1, 0], [0.5, begins]]


def test_an_overridden_scene_is_what_viewers_draw(runtime: Runtime) -> None:
    """Its file, its poses, another file, and an exception, which ends the watch alone."""
    server = runtime.script("Checks.exe", "Server")
    with (
        tandem.launch_engine(server=server, num_envs=2) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
        watched(engine.name, 1) as scene,
    ):
        assert (scene.nodes, scene.gltf["nodes"][0]["name"]) == (1, "cart")
        client.scene.set_transform("cart", position=(5, 0, 0), env_id=1)
        while (snapshot := scene.next()).poses[0, 0, 0] != 5:
            client.step(client.actions)
        assert (snapshot.envs, snapshot.poses.tolist()) == ([1], [[[5, 2, 1, 0, 0, 0, 1]]])
        client.own.call("show", b"truck")
        assert scene.attach()["generation"] == 2 and scene.gltf["nodes"][0]["name"] == "truck"
        client.own.call("show", b"nothing")
        with pytest.raises(tandem.EngineFailed, match="no model"):
            scene.attach()
        client.step(client.actions)


def test_wrong_flag_is_named(counter: Path) -> None:
    """Also one that the engine's Prepare refuses."""
    for flag, text in {"--ticks=many": "expected a number", "--ticks=0": "expected 1 or more"}.items():
        refused = subprocess.run([counter, flag], capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and f"--ticks: {text}" in refused.stderr, refused.stderr


def test_client_steps_the_reference_engine(runtime: Runtime) -> None:
    """And calls an RPC; without an engine it reports the error."""
    with tandem.launch_engine(server=REFERENCE, num_envs=3) as engine:
        seen = runtime.run("Client.exe", engine.name).splitlines()
        assert seen == [
            "attached: 3 environments",
            "1000 steps, return 500 of the first environment",
            "agent_0: 4 observations, 1 actions",
        ]
        with tandem.SharedMemoryClient(engine.name, timeout=60):
            command = runtime.of("Client.exe", engine.name)
            second = subprocess.run(command, env=runtime.environment, capture_output=True, text=True, check=False)
            assert second.returncode == 1 and "AlreadyAttached: " in second.stderr


def test_client_reads_typed_fields(runtime: Runtime) -> None:
    """By the element types of their dtypes; another type is refused."""
    with tandem.launch_engine(server=FIELDS, num_envs=2) as engine:
        assert runtime.run("Checks.exe", "Fields", engine.name) == "ok\n"


def test_package_of_nuget_is_complete(sdk: Path, runtime: Runtime, tmp_path: Path) -> None:
    """A client runs with the package's files beside it, without LD_LIBRARY_PATH."""
    with zipfile.ZipFile(next((sdk / "csharp").glob("*.nupkg"))) as package:
        for file in package.namelist():
            if file.endswith(("Tandem.dll", "libtandem.so.1")):
                (tmp_path / Path(file).name).write_bytes(package.read(file))
    client = shutil.copy(runtime.programs / "Client.exe", tmp_path)
    without = {name: value for name, value in runtime.environment.items() if name != "LD_LIBRARY_PATH"}
    with tandem.launch_engine(server=REFERENCE, num_envs=3) as engine:
        assert "1000 steps, return 500" in run(*runtime.command, client, engine.name, environment=without)


@pytest.mark.parametrize("program", ["Client.exe", "CounterEngine.exe"])
def test_missing_library_is_named_with_the_next_action(runtime: Runtime, program: str) -> None:
    """Without LD_LIBRARY_PATH."""
    without = {name: value for name, value in runtime.environment.items() if name != "LD_LIBRARY_PATH"}
    refused = subprocess.run(runtime.of(program), env=without, capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused.stderr
    assert "libtandem.so.1" in refused.stderr and "LD_LIBRARY_PATH" in refused.stderr, refused.stderr


def test_help_of_the_client_is_printed(runtime: Runtime) -> None:
    """Without an engine."""
    assert runtime.run("Client.exe", "--help").startswith("Usage: ")


def test_killed_engine_is_gone_for_a_client_in_csharp(counter: Path, runtime: Runtime) -> None:
    """It ends with the error's text."""
    with tandem.launch_engine(server=counter, flags=("--tick_hz=20",)) as engine:
        command, pipe = runtime.of("Client.exe", engine.name), subprocess.PIPE
        with subprocess.Popen(command, env=runtime.environment, stdout=pipe, stderr=pipe, text=True) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "attached: 1 environments\n"
            os.kill(engine.pid, signal.SIGKILL)
            assert "PeerGone: " in client.communicate(timeout=60)[1]
            assert client.returncode == 1
