"""The wheel for Windows, run by CPython for Windows under Wine: a part of `tools/test --with windows`."""

import contextlib
import itertools
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import tandem
from tandem._native import engine_pid
from tests.windows.trajectory import ENVS, actions

assert sys.platform == "win32"  # type checkers of other systems read no further

FOLDER = Path(__file__).parent
FOLDER_OF_BUILD = Path(sys.executable).parents[1]  # that of tools/build/windows_ninja.py


def test_half_cheetah_equals_gymnasiums() -> None:
    """To 1e-6 over 200 steps of random actions, by the same MuJoCo. Prints the first step that differs from Linux's."""
    envs = tandem.make_vec("HalfCheetah-v5", ENVS)
    theirs = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("HalfCheetah-v5")] * ENVS)
    linux = np.load(FOLDER_OF_BUILD / "linux.npy")
    differ = []
    try:
        np.testing.assert_allclose(envs.reset(seed=3)[0], theirs.reset(seed=3)[0], atol=1e-6)
        for step, action in enumerate(actions()):
            results = envs.step(action)
            for ours, gymnasiums in zip(results[:4], theirs.step(action)[:4], strict=True):
                np.testing.assert_allclose(ours, gymnasiums, atol=1e-6)
            if not np.array_equal(results[0], linux[step]):
                differ.append(step)
    finally:
        envs.close()
        theirs.close()
    print(f"the first of {len(linux)} steps that differs from Linux's: {differ[0] + 1 if differ else 'none'}")


@pytest.mark.parametrize("task", tandem.list_tasks())
def test_each_task_runs_to_the_end_of_an_episode(task: str) -> None:
    """And its observations are in its space."""
    with contextlib.closing(tandem.make_vec(task, 3, options=tandem.TaskOptions(max_episode_steps=20))) as envs:
        observations, _ = envs.reset(seed=1)
        envs.action_space.seed(1)
        ends = 0
        for _ in range(45):
            observations, _, terminations, truncations, _ = envs.step(envs.action_space.sample())
            ends += int((terminations | truncations).sum())
        assert observations in envs.observation_space
        assert ends >= 3


def test_a_killed_engine_is_peer_gone_and_leaves_nothing() -> None:
    """Its name is free at once, and its log is in the error."""
    with tandem.launch_engine("Hopper-v5", num_envs=2, name="wheel-killed") as engine:
        client = tandem.SharedMemoryClient("wheel-killed")
        client.reset()
        os.kill(engine.pid, signal.SIGTERM)  # TerminateProcess
        with pytest.raises(tandem.PeerGone, match="serving 'wheel-killed'"):
            for _ in range(1000):
                client.step(np.zeros((2, 3), np.float32))
        with tandem.launch_engine("Hopper-v5", num_envs=2, name="wheel-killed"):
            client.close()
    with pytest.raises(tandem.NotReady):
        engine_pid("wheel-killed")


@pytest.mark.parametrize("end", ["sys.exit()", "1 / 0", "os._exit(3)", "os.abort()"])
def test_an_engine_ends_with_its_launcher(end: str) -> None:
    """However that ends."""
    program = f"import os, sys, tandem; tandem.launch_engine('Pendulum-v1', name='wheel-left'); {end}"
    subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            engine_pid("wheel-left")
        except tandem.NotReady:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_engine_of_a_name_is_refused() -> None:
    """By the name's engine's process id."""
    with tandem.launch_engine("Pendulum-v1", name="wheel-twice") as engine:
        with pytest.raises(tandem.AlreadyAttached, match=f"pid {engine.pid}"):
            tandem.launch_engine("Pendulum-v1", name="wheel-twice")
        with tandem.SharedMemoryClient("wheel-twice"), pytest.raises(tandem.AlreadyAttached):
            tandem.SharedMemoryClient("wheel-twice")
        with tandem.SharedMemoryClient(pid=engine.pid) as client:
            assert client.name == "wheel-twice"


def test_what_windows_lacks_is_unsupported_and_names_the_way() -> None:
    """Workers, the gateway and images."""
    with pytest.raises(tandem.Unsupported, match="WSL 2"):
        tandem.launch_engine("Hopper-v5", grpc="127.0.0.1:0")
    with pytest.raises(tandem.Unsupported, match="WSL 2"):
        tandem.make_vec("Taxi-v4", 2)
    for task in ("HalfCheetah-v5", "CartPole-v1"):
        with pytest.raises(tandem.Unsupported, match="WSL 2"):
            tandem.launch_engine(task, images=(32, 32))


def test_a_wrong_option_is_refused_as_on_linux() -> None:
    """By its name."""
    with pytest.raises(tandem.InvalidArgument, match="reset_noise"):
        tandem.make_vec("HalfCheetah-v5", 2, reset_noise=0.1)
    with pytest.raises(tandem.EngineStartFailed, match="nowhere"):
        tandem.launch_engine("HalfCheetah-v5", server=r"Z:\nowhere\engine.exe")


def test_paths_may_have_any_characters(tmp_path: Path) -> None:
    """Those of the package, of a model, of a task's option, and of flags."""
    folder = tmp_path / "a b \xfc \u4e2d"
    shutil.copytree(Path(tandem.__file__).parent, folder / "tandem")
    model = shutil.copy(folder / "tandem" / "assets" / "hopper.xml", folder / "h \xf6.xml")
    config = folder / "c \xf6.json"
    config.write_text('{"wait": "block"}')
    program = f"""
import sys
sys.path.insert(0, {str(folder)!r})
import tandem
assert tandem.__file__.startswith({str(folder)!r})
for options in (
    {{"task": "Hopper-v5", "flags": [{f"--config={config}"!r}]}},
    {{"task": "Hopper-v5", "task_options": {{"xml_file": {str(model)!r}}}}},
    {{"model": {str(model)!r}}},
):
    with tandem.launch_engine(**options) as engine, tandem.SharedMemoryClient(engine.name) as client:
        client.reset()
        print(client.num_envs)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("1\n1\n1\n", "", 0)


def test_another_programs_memory_keeps_the_name() -> None:
    """Until that program closes it."""
    with mmap.mmap(-1, 4096, tagname="wheel-foreign"):
        with pytest.raises(tandem.AlreadyAttached, match="end the program that has it"):
            tandem.launch_engine("Pendulum-v1", name="wheel-foreign")
        with pytest.raises(tandem.LayoutMismatch, match="magic"):
            tandem.SharedMemoryClient("wheel-foreign")
    tandem.launch_engine("Pendulum-v1", name="wheel-foreign").close()


def test_the_default_name_is_the_variables_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that of its start."""
    monkeypatch.setenv("LUCKY_SHM_NAME", "wheel-default")
    with tandem.launch_engine("Pendulum-v1", name="wheel-default"), tandem.SharedMemoryClient() as client:
        assert client.name == "wheel-default"


# Sends Ctrl-C in the console of a process, which becomes its own.
INTERRUPT = """
import ctypes, sys
ctypes.windll.kernel32.FreeConsole()
ctypes.windll.kernel32.SetConsoleCtrlHandler(None, True)
assert ctypes.windll.kernel32.AttachConsole(int(sys.argv[1]))
assert ctypes.windll.kernel32.GenerateConsoleCtrlEvent(0, 0)
"""


@pytest.mark.parametrize("end", ["interrupt", "kill"])
def test_the_command_tandem_engine_ends_as_its_engine_does(end: str) -> None:
    """And its engine with it."""
    command = [sys.executable, "-m", "tandem.engine.program", "--task=Pendulum-v1", "--name=wheel-command"]
    no_window = 0x08000000
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, creationflags=no_window) as process:
        assert process.stderr is not None
        assert "serving 'wheel-command'" in process.stderr.readline()
        if end == "kill":
            process.kill()
        else:
            subprocess.run([sys.executable, "-c", INTERRUPT, str(process.pid)], check=True)
        said = process.stderr.read()
    assert "stopped: " in said and "Traceback" not in said
    assert end == "kill" or process.returncode == 0
    with pytest.raises(tandem.NotReady):
        engine_pid("wheel-command")


def test_the_log_of_an_engine_in_python_has_its_lines() -> None:
    """Without the carriage returns of Windows' text files."""
    with pytest.raises(tandem.InvalidArgument) as failed:
        tandem.launch_engine(num_envs=3, server=FOLDER / "counting_engine.py", flags=["--nothing"])
    with pytest.raises(tandem.EngineStartFailed) as helped:
        tandem.launch_engine(num_envs=3, server=FOLDER / "counting_engine.py", flags=["--help"])
    assert "\r" not in helped.value.log_tail and "x0d" not in str(helped.value) + str(failed.value)


def test_an_engine_in_python_serves_clients_of_the_first_description() -> None:
    """One of `multiprocessing.shared_memory`, one of `mmap` with a tag name, and one of this package."""
    with tandem.launch_engine(num_envs=3, server=FOLDER / "counting_engine.py") as engine:
        foreign = [sys.executable, str(FOLDER.parent / "interop" / "foreign_client.py"), engine.name]
        assert "502 exchanges" in subprocess.run(foreign, check=True, capture_output=True, text=True).stdout
        steps_by_mmap(engine.name)
        with tandem.SharedMemoryClient(engine.name) as client:
            client.reset()
            assert (client.step(np.ones((3, 3), np.float32))[0] == [1, 1]).all()


def steps_by_mmap(name: str) -> None:
    """Steps a region by Windows' own way to find memory by its name, without a lock or a wait."""
    memory = mmap.mmap(-1, 4096, tagname=name, access=mmap.ACCESS_WRITE)
    num_envs, obs_size, act_size = struct.unpack_from("<III", memory, 20)
    obs_at, act_at = struct.unpack_from("<QQ", memory, 384)
    memory.close()
    memory = mmap.mmap(-1, act_at + 4 * num_envs * act_size, tagname=name, access=mmap.ACCESS_WRITE)
    obs = np.ndarray((num_envs, obs_size), np.float32, memory, obs_at)
    actions = np.ndarray((num_envs, act_size), np.float32, memory, act_at)
    before = obs[0, 0]
    actions[:] = 5
    (sent,) = struct.unpack_from("<Q", memory, 256)
    struct.pack_into("<Q", memory, 256, sent + 1)
    deadline = time.monotonic() + 60
    while struct.unpack_from("<Q", memory, 128)[0] != sent + 1:
        assert time.monotonic() < deadline
    assert obs[0].tolist() == [before + 1, 5]


def test_a_named_map_of_dotnet_and_one_of_python_step_each_other() -> None:
    """Without Tandem on either side: the description's own snippets."""
    csharp = FOLDER_OF_BUILD / "csharp"
    command = [csharp / "runtime" / "dotnet.exe", "exec", "--runtimeconfig", csharp / "runtimeconfig.json"]
    name = f"LuckyEngine_{os.getpid()}"
    program = [*command, csharp / "NamedMapEngine.exe", name]
    engine = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert engine.stdout is not None and engine.stdout.readline() == "ready\n"
        foreign = [sys.executable, str(FOLDER.parent / "interop" / "foreign_client.py"), name]
        assert "502 exchanges" in subprocess.run(foreign, check=True, capture_output=True, text=True).stdout
        steps_by_mmap(name)
        with pytest.raises(tandem.TandemError):  # it has no more than the first description
            tandem.SharedMemoryClient(name, attach_timeout=1)
    finally:
        engine.communicate()
    assert engine.returncode == 0


def test_the_inspector_prints_texts() -> None:
    """Of one region, of all, and each second."""
    (program,) = FOLDER_OF_BUILD.glob("wheel/unpacked/*.data/scripts/tandem-inspect.exe")

    def inspect(*words: str) -> str:
        return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout

    with tandem.launch_engine("Hopper-v5", num_envs=2, name="wheel-shown") as engine:
        assert f"pid {engine.pid}" in inspect("wheel-shown")
        assert "wheel-shown" in [entry["name"] for entry in json.loads(inspect("list", "--json"))["entries"]]
        with subprocess.Popen([program, "wheel-shown", "--watch"], stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert sum("wheel-shown" in line for line in itertools.islice(watching.stdout, 40)) >= 2
            watching.terminate()
    with pytest.raises(subprocess.CalledProcessError):
        inspect("wheel-shown")
    assert "caf\xe9" in subprocess.run([program, "caf\xe9"], capture_output=True, encoding="utf-8").stderr
    with subprocess.Popen([program, "list", "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None and watching.stderr is not None
        watching.stdout.readline()
        watching.stdout.close()
        assert watching.stderr.read() == b""
    assert watching.returncode == 0


def test_the_doctor_finds_a_working_package() -> None:
    """And says that Windows itself is untested."""
    doctor = subprocess.run([sys.executable, "-m", "tandem.doctor"], capture_output=True, text=True)
    assert doctor.returncode == 0, doctor.stdout
    assert "tested under Wine alone" in doctor.stdout and "mujoco.dll" in doctor.stdout
    assert "1 WARN, 0 FAIL" in doctor.stdout
