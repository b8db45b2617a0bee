"""Engines and clients in C#, on Mono: the assembly of sdk/csharp with the library of the archive."""

import os
import re
import shutil
import signal
import subprocess
import uuid
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tandem
from tests.sdk.commands import SUITE, run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

PROGRAMS = Path("sdk/csharp").absolute()
REFERENCE = Path("engine_adapter/reference/server").absolute()
FIELDS = Path("sdk/pair_server").absolute()


def _checks() -> list[str]:
    return run("mono", PROGRAMS / "Checks.exe", environment=dict(os.environ)).split()


@pytest.fixture(scope="module")
def environment(sdk: Path) -> dict[str, str]:
    """Variables by which Mono finds the library. It writes no files of its own to /dev/shm."""
    return os.environ | {"LD_LIBRARY_PATH": str(sdk / "lib"), "MONO_DISABLE_SHARED_AREA": "1"}


@pytest.fixture(scope="module")
def counter(sdk: Path) -> Path:
    """A program that starts the engine of the samples."""
    script = sdk.parent / "counter_engine"
    script.write_text(
        "#!/bin/sh\n"
        f"export LD_LIBRARY_PATH='{sdk}/lib' MONO_DISABLE_SHARED_AREA=1\n"
        f"exec mono '{PROGRAMS}/CounterEngine.exe' \"$@\"\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("check", _checks())
def test_check_passes(environment: dict[str, str], check: str) -> None:
    """A check of sdk/csharp/testing: errors, Dispose, the garbage collector, the classes of the plan."""
    name = f"tandem-test-csharp-{uuid.uuid4().hex[:12]}"
    assert run("mono", PROGRAMS / "Checks.exe", check, name, environment=environment) == "ok\n"
    left = [path for path in (Path("/dev/shm", name), Path(f"/dev/shm/.{name}.tandem")) if path.exists()]
    # As after a crash: without Dispose, its file stays until an engine starts, perhaps another test's.
    assert not left or check == "ACollectedEngineDoesNotCrash"
    for path in left:
        path.unlink(missing_ok=True)


def test_structs_are_those_of_the_header(sdk: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """In size, and in the offsets of their fields."""
    found = run("mono", PROGRAMS / "Checks.exe", "Structs", environment=environment)
    program = '#include <stddef.h>\n#include <stdio.h>\n#include "tandem.h"\nint main(void) {\n'
    for line in found.splitlines():
        struct, _, *fields = line.split()
        names = [field.split(":")[0] for field in fields]
        offsets = "".join(f', "{name}", offsetof({struct}, {name})' for name in names)
        program += f'  printf("{struct} %zu{" %s:%zu" * len(fields)}\\n", sizeof({struct}){offsets});\n'
    source = tmp_path / "structs.c"
    source.write_text(program + "  return 0;\n}\n", encoding="utf-8")
    run("gcc", "-o", tmp_path / "structs", f"-I{sdk}/include", source, environment=environment)
    assert found == run(tmp_path / "structs", environment=environment)
    header = (sdk / "include/tandem.h").read_text()
    declared = set(re.findall(r"^} (tandem_\w+);", header, re.MULTILINE))
    assert declared == {line.split()[0] for line in found.splitlines()} | {"tandem_reset"}


def test_compiled_messages_are_those_of_the_command(tmp_path: Path) -> None:
    """`tools/generate_csharp` writes the source that the assembly contains."""
    run("tools/generate_csharp", tmp_path, environment=dict(os.environ))
    (written,) = tmp_path.iterdir()
    assert written.read_bytes() == (PROGRAMS / written.name).read_bytes()


@pytest.mark.parametrize("flags", [[], ["--tick_hz=1000", "--ticks=3"]], ids=["called", "with a loop"])
def test_engine_passes_the_suite(counter: Path, flags: list[str]) -> None:
    """All of engine_adapter/conformance."""
    run(SUITE, "--limit_flag=truncate_after", counter, *flags, environment=dict(os.environ))


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


def test_wrong_flag_is_named(counter: Path) -> None:
    """Also one that the engine's Prepare refuses."""
    for flag, text in {"--ticks=many": "expected a number", "--ticks=0": "expected 1 or more"}.items():
        refused = subprocess.run([counter, flag], capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and f"--ticks: {text}" in refused.stderr, refused.stderr


def test_client_steps_the_reference_engine(environment: dict[str, str]) -> None:
    """And calls an RPC; without an engine it reports the error."""
    client = PROGRAMS / "Client.exe"
    with tandem.launch_engine(server=REFERENCE, num_envs=3) as engine:
        seen = run("mono", client, engine.name, environment=environment).splitlines()
        assert seen == [
            "attached: 3 environments",
            "1000 steps, return 500 of the first environment",
            "agent_0: 4 observations, 1 actions",
        ]
        with tandem.SharedMemoryClient(engine.name, timeout=60):
            command: list[str | Path] = ["mono", client, engine.name]
            second = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert second.returncode == 1 and "AlreadyAttached: " in second.stderr


def test_client_reads_typed_fields(environment: dict[str, str]) -> None:
    """By the element types of their dtypes; another type is refused."""
    with tandem.launch_engine(server=FIELDS, num_envs=2) as engine:
        assert run("mono", PROGRAMS / "Checks.exe", "Fields", engine.name, environment=environment) == "ok\n"


def test_package_of_nuget_is_complete(sdk: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """A client runs with the package's files beside it, without LD_LIBRARY_PATH."""
    with zipfile.ZipFile(next((sdk / "csharp").glob("*.nupkg"))) as package:
        for file in package.namelist():
            if file.endswith(("Tandem.dll", "libtandem.so.1")):
                (tmp_path / Path(file).name).write_bytes(package.read(file))
    client = shutil.copy(PROGRAMS / "Client.exe", tmp_path)
    without = {name: value for name, value in environment.items() if name != "LD_LIBRARY_PATH"}
    with tandem.launch_engine(server=REFERENCE, num_envs=3) as engine:
        assert "1000 steps, return 500" in run("mono", client, engine.name, environment=without)


@pytest.mark.parametrize("program", ["Client.exe", "CounterEngine.exe"])
def test_missing_library_is_named_with_the_next_action(environment: dict[str, str], program: str) -> None:
    """Without LD_LIBRARY_PATH."""
    without = {name: value for name, value in environment.items() if name != "LD_LIBRARY_PATH"}
    command: list[str | Path] = ["mono", PROGRAMS / program]
    refused = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert refused.returncode == 1, refused.stderr
    assert "libtandem.so.1" in refused.stderr and "LD_LIBRARY_PATH" in refused.stderr, refused.stderr


def test_help_of_the_client_is_printed(environment: dict[str, str]) -> None:
    """Without an engine."""
    assert run("mono", PROGRAMS / "Client.exe", "--help", environment=environment).startswith("Usage: ")


def test_killed_engine_is_gone_for_a_client_in_csharp(counter: Path, environment: dict[str, str]) -> None:
    """It ends with the error's text."""
    with tandem.launch_engine(server=counter, flags=("--tick_hz=20",)) as engine:
        command: list[str | Path] = ["mono", PROGRAMS / "Client.exe", engine.name]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "attached: 1 environments\n"
            os.kill(engine.pid, signal.SIGKILL)
            assert "PeerGone: " in client.communicate(timeout=60)[1]
            assert client.returncode == 1
