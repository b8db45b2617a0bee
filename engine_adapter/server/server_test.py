"""The server's own flags; engine_adapter/conformance tests the behaviour that all servers share."""

import json
import mmap
import os
import re
import signal
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_SERVER = Path("engine_adapter/server/server")
_PENDULUM = Path("engine_adapter/mujoco/testdata/pendulum.xml")
_CHEETAH = ("--task=HalfCheetah-v5",)
_SECONDS = 60  # a watchdog


def _run(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_SERVER, "--name=tandem_server_test", *flags], capture_output=True, text=True, timeout=_SECONDS, check=False
    )


def _error(*flags: str) -> tuple[int, str]:
    ended = _run(*flags)
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.returncode, ended.stderr


@contextmanager
def _serving(*flags: str, launcher: tuple[str, ...] = (), end: str = "TERM") -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a server, and checks that it exits with code 0 on SIGTERM, or on the signal `end`."""
    name = f"server_test_{uuid.uuid4().hex}"
    server = subprocess.Popen([*launcher, _SERVER, f"--name={name}", *flags])
    try:
        deadline = time.monotonic() + _SECONDS
        while not Path("/dev/shm", name).exists():
            assert server.poll() is None and time.monotonic() < deadline, "it did not serve"
            time.sleep(0.001)
        yield server
    finally:
        # The server may be the launcher's child: the launcher may not have executed it in its own process.
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split()
        for pid in children or [str(server.pid)]:
            subprocess.run(["kill", f"-{end}", pid], check=True)
        assert server.wait(_SECONDS) == 0
    assert not Path("/dev/shm", name).exists()


def _catches(pid: int, number: signal.Signals) -> bool:
    (caught,) = re.findall(r"^SigCgt:\t(\w+)$", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_signal_ends_the_first_rendering_of_many_large_images() -> None:
    """The rendering takes minutes without a graphics card; afterwards no region is left."""
    name = f"server_test_{uuid.uuid4().hex}"
    images = ("--num_envs=256", "--images=640x480")
    with subprocess.Popen([_SERVER, f"--name={name}", *_CHEETAH, *images], stderr=subprocess.PIPE, text=True) as server:
        deadline = time.monotonic() + _SECONDS
        while not _catches(server.pid, signal.SIGTERM):  # the handler is installed when the region exists
            assert server.poll() is None and time.monotonic() < deadline, "it did not begin"
            time.sleep(0.001)
        server.terminate()
        assert server.stderr is not None
        log = server.stderr.read()
        assert server.wait(_SECONDS) == 0, log
    assert log.count("\n") == 1 and log.endswith(": Terminated\n")
    assert not list(Path("/dev/shm").glob(f"*{name}*"))


@pytest.mark.parametrize("end", ["HUP", "INT"])
def test_each_stop_signal_removes_the_region(end: str) -> None:
    """SIGHUP comes from a terminal or an SSH connection that closes."""
    with _serving(*_CHEETAH, end=end):
        pass


def test_a_server_under_nohup_survives_its_terminal() -> None:
    """It leaves an ignored SIGHUP ignored."""
    with _serving(*_CHEETAH, launcher=("sh", "-c", 'trap "" HUP; exec "$@"', "sh")) as server:
        assert not _catches(server.pid, signal.SIGHUP)
        server.send_signal(signal.SIGHUP)


def _holds_an_unnamed_file(pid: int) -> bool:
    """Returns whether a process has a file in /dev/shm that has no name yet."""
    with suppress(FileNotFoundError):  # of a descriptor that was closed meanwhile
        return any(str(fd.readlink()).startswith("/dev/shm/#") for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_a_signal_ends_the_reservation_of_a_large_region() -> None:
    """The server has no handler yet, so the signal interrupts the system call. Tries again if the signal came late."""
    deadline = time.monotonic() + _SECONDS
    code = 0
    while code != -signal.SIGTERM:
        assert time.monotonic() < deadline, "no signal came in time"
        name = f"server_test_{uuid.uuid4().hex}"
        with subprocess.Popen([_SERVER, f"--name={name}", *_CHEETAH, "--image_slot_bytes=16777216"]) as server:
            while not _holds_an_unnamed_file(server.pid):
                assert server.poll() is None, "it did not begin"
            server.terminate()
            code = server.wait(_SECONDS)
        assert not list(Path("/dev/shm").glob(f"*{name}*"))


def test_lists_its_tasks() -> None:
    """--list_tasks prints one name a line, in alphabetical order, and exits."""
    ended = _run("--list_tasks")
    assert (ended.returncode, ended.stderr) == (0, "")
    tasks = ended.stdout.splitlines()
    assert {"CartPole-v1", "HalfCheetah-v5", "Pendulum-v1"} <= set(tasks)
    assert tasks == sorted(set(tasks))


def test_saves_the_scene_of_a_model(tmp_path: Path) -> None:
    """--save_scene writes glTF, and exits; a wrong place, and a model of another version, are named."""
    glb = tmp_path / "pendulum.glb"
    ended = _run(f"--model={_PENDULUM}", f"--save_scene={glb}")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert glb.read_bytes().startswith(b"glTF")
    code, error = _error(f"--model={_PENDULUM}", f"--save_scene={tmp_path}/no/folder.glb")
    assert code == 2 and "--save_scene: expected a file to write" in error
    code, error = _error(f"--model={_PENDULUM}", f"--save_scene={glb}", "--compiled_by=3.3.7")
    assert code == 1 and re.search(r"expected a model of MuJoCo \d\S+, found one of MuJoCo 3\.3\.7", error)


def test_help_names_every_flag_with_its_default() -> None:
    """--help prints to stdout, with the flags that all servers share."""
    ended = _run("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    for flag in ("task", "num_envs", "launcher_fd", "frame_camera"):
        assert f"\n  --{flag}\n" in ended.stdout
    assert "default: adaptive" in ended.stdout
    assert "\n  tandem-engine --task HalfCheetah-v5 " in ended.stdout and "server --" not in ended.stdout


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ((), "neither"),
        (("--task=HalfCheetah-v5", f"--model={_PENDULUM}"), "both"),
        (("--model=no/such.xml",), "no/such.xml"),
        (("--task=HalfCheetah-v5", "--assets=/nowhere"), "/nowhere"),
        (("--task=HalfCheetah-v5", '--task_options={"reset_noise_scale": -1}'), "-1"),
        (("--task=HalfCheetah-v5", '--task_options={"reset_noise_scale": "inf"}'), "inf"),
        (
            ("--task=CartPole-v1", '--task_options={"g": 1}'),
            "InvalidArgument: --task_options: unknown option: expected one",
        ),
        (("--task=Nope-v1",), "InvalidArgument: --task: unknown task: expected one of Ant-v5, "),
        (("--task=Pendulum-v1", "--task_options={g: 1}"), "{g: 1}"),
        (("--task=Pendulum-v1", "--task_options="), "JSON object"),
        (("--task=Pendulum-v1", "--max_episode_steps=-1"), "-1"),
        ((f"--model={_PENDULUM}", '--task_options={"healthy_reward": 1}'), "healthy_reward"),
        ((*_CHEETAH, "--frames=320"), "'320'"),
        ((*_CHEETAH, "--frames=8x8", "--frame_envs=0,1"), "found 1"),
        (
            (*_CHEETAH, "--frames=8x8", "--frame_priority=mine"),
            "--frame_priority: expected steps or complete, found 'mine'",
        ),
        (
            (*_CHEETAH, "--frames=8x8", "--frame_camera=mine"),
            "follow, gymnasium or one of the model's (track), found 'mine'",
        ),
        ((*_CHEETAH, "--frame_envs=0"), "--frames"),
    ],
)
def test_an_invalid_flag_is_refused_in_one_line(flags: tuple[str, ...], found: str) -> None:
    """The exit code is 2; the line has the found value."""
    code, text = _error(*flags)
    assert code == 2
    assert "expected" in text and found in text


def test_a_broken_model_fails_with_mujocos_message(tmp_path: Path) -> None:
    """The exit code is 1; the line has MuJoCo's message and the path."""
    model = tmp_path / "broken.xml"
    model.write_text("<mujoco><worldbody><geom type='foo'/></worldbody></mujoco>")
    code, text = _error(f"--model={model}")
    assert code == 1
    assert "invalid keyword" in text and str(model) in text


def test_models_come_only_from_the_assets_folder(tmp_path: Path) -> None:
    """A file in the folder is used; a missing one is an error, although the package contains it."""
    (tmp_path / "half_cheetah.xml").write_text("<mujoco><nonsense/></mujoco>")
    code, text = _error("--task=HalfCheetah-v5", f"--assets={tmp_path}")
    assert code == 1 and f"{tmp_path}/half_cheetah.xml" in text and "nonsense" in text
    code, text = _error("--task=Hopper-v5", f"--assets={tmp_path}")
    assert code == 2 and "hopper.xml" in text and f"looked in {tmp_path})" in text


@pytest.mark.parametrize("frames", [(), ("--frames=320x240",)])
def test_no_graphics_library_is_loaded(frames: tuple[str, ...]) -> None:
    """Frames were not requested, or there is no viewer, so the engine needs no display."""
    with _serving(*_CHEETAH, *frames) as server:
        mapped = Path(f"/proc/{server.pid}/maps").read_text(encoding="utf-8")
    assert "libmujoco" in mapped
    assert not any(library in mapped for library in ("libEGL", "libGL", "libOSMesa", "libX11"))


@pytest.mark.parametrize("value", ["-1", str(2**32), str(2**63), str(2**64), "1e3", ""])
@pytest.mark.parametrize(
    ("flag", "bound"), [("num_envs", "1 to 16777216"), ("threads", "at most 4096"), ("frame_slots", "1 to 1024"),
                        ("rpc_ring_kib", "4 to 1048576")]
)  # fmt: skip
def test_counts_are_refused_with_their_bounds(flag: str, bound: str, value: str) -> None:
    """Numbers beyond the flag's type are refused in the same way."""
    code, line = _error("--task=CartPole-v1", f"--{flag}={value}")
    assert code == 2 and f"--{flag}: expected" in line and bound in line and f"found '{value}'" in line


def test_a_log_line_escapes_control_characters() -> None:
    """A command line may contain any characters."""
    code, line = _error("--task=\x1b[31m\u202e\u00fcbung\nx")
    assert code == 2 and "found '\\x1b[31m\\xe2\\x80\\xae\u00fcbung" in line and line.count("\n") == 1


def _launched(frame_skip: int) -> tuple["subprocess.Popen[str]", Path, int]:
    """Starts a server with slow steps; returns it, its region, and the launcher's end of the pipe."""
    name = f"server_test_{uuid.uuid4().hex}"
    engine_end, launcher_end = os.pipe()
    options = json.dumps({"frame_skip": frame_skip})
    server = subprocess.Popen(
        [_SERVER, "--task=Hopper-v5", f"--name={name}", f"--task_options={options}", f"--launcher_fd={engine_end}"],
        pass_fds=[engine_end],
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(engine_end)
    return server, Path("/dev/shm", name), launcher_end


def test_exits_with_its_launcher_during_the_load_of_a_model() -> None:
    """The load of a model may take minutes."""
    server, region, launcher_end = _launched(frame_skip=2_000_000_000)
    os.close(launcher_end)
    assert "launcher has left" in server.communicate(timeout=_SECONDS)[1]
    assert server.returncode == 0 and not region.exists()


def test_exits_with_its_launcher_during_a_step() -> None:
    """The step takes longer than the engine's time to stop; the region is removed as well."""
    server, region, launcher_end = _launched(frame_skip=300_000)
    deadline = time.monotonic() + 5 * _SECONDS  # the load takes as long as a step
    while not region.exists():
        assert server.poll() is None and time.monotonic() < deadline, "it did not serve"
        time.sleep(0.01)
    with region.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as header:
        struct.pack_into("<Q", header, 256, 1)  # action_seq
        # Before the step the engine would stop cleanly. 4: Phase::kStepping in the top bits of engine_phase.
        while struct.unpack_from("<Q", header, 1920)[0] >> 60 != 4:
            assert server.poll() is None and time.monotonic() < deadline, "it did not step"
            time.sleep(0.01)
    os.close(launcher_end)
    assert "in the middle of a step" in server.communicate(timeout=_SECONDS)[1]
    assert server.returncode == 1 and not region.exists()
    assert not region.with_name(f".{region.name}.tandem").exists()


def test_process_1_exits_on_sigterm() -> None:
    """In a container, the kernel does not deliver a signal without a handler to process 1."""
    launcher = ("unshare", "--user", "--map-root-user", "--pid", "--fork")
    if subprocess.run([*launcher, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine forbids user namespaces")
    with _serving("--task=CartPole-v1", launcher=launcher):
        pass
