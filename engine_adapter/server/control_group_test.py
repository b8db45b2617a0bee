"""The server in a control group with a memory limit: it refuses environments for which the kernel would kill it."""

import re
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

_SERVER = Path("engine_adapter/server/server")
_GROUPS = Path("/sys/fs/cgroup")
_MIB = 1 << 20
_SECONDS = 60  # a watchdog


def _start(*command: str, num_envs: int, task: str) -> "subprocess.Popen[str]":
    name = f"control_group_test_{uuid.uuid4().hex}"
    flags = (f"--task={task}", f"--num_envs={num_envs}", f"--name={name}")
    return subprocess.Popen([*command, _SERVER, *flags], stderr=subprocess.PIPE, text=True)


def _outcome(server: "subprocess.Popen[str]") -> tuple[str, int]:
    """Returns the server's first line and its exit code; stops the server if it serves."""
    assert server.stderr is not None
    with server:
        line = server.stderr.readline()
        if "serving" in line:  # a server that refuses exits by itself
            server.send_signal(signal.SIGTERM)
        return line, server.wait(_SECONDS)


def _in_a_tree(folder: Path, limit: int, used: int) -> tuple[str, ...]:
    """Returns the prefix of a command that makes it see a control group with the given limit."""
    for version, names in (
        (folder, ("memory.max", "memory.current")),
        (folder / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ):
        version.mkdir(exist_ok=True)
        for name, number in zip(names, (limit, used), strict=True):
            (version / name).write_text(f"{number}\n", "ascii")
    script = f'mount --rbind {folder} {_GROUPS} && exec "$@"'
    command = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let its user mount in a namespace of their own (unshare, mount)")
    return command


def test_environments_beyond_the_limit_are_refused_with_every_figure() -> None:
    """A number of environments within the limit is served."""
    with tempfile.TemporaryDirectory() as folder:
        command = _in_a_tree(Path(folder), limit=150 * _MIB, used=10 * _MIB)
        line, code = _outcome(_start(*command, num_envs=3000, task="HalfCheetah-v5"))
        assert code == 1
        assert "error: OutOfSharedMemory: 3000 environments need" in line
        for part in (
            f"{140 * _MIB} are available",
            str(150 * _MIB),
            str(10 * _MIB),
            "fewer environments",
            str(_GROUPS),
        ):
            assert part in line
        line, code = _outcome(_start(*command, num_envs=300, task="HalfCheetah-v5"))
        assert (code, "serving" in line) == (0, True), line


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_small_environments_count_as_well(task: str) -> None:
    """A million small environments exceed the limit."""
    with tempfile.TemporaryDirectory() as folder:
        command = _in_a_tree(Path(folder), limit=150 * _MIB, used=0)
        line, code = _outcome(_start(*command, num_envs=1_000_000, task=task))
        assert code == 1 and "error: OutOfSharedMemory: 1000000 environments need" in line


def test_the_region_counts_against_the_limit() -> None:
    """The region is in /dev/shm, and counts as memory."""
    with tempfile.TemporaryDirectory() as folder:
        command = _in_a_tree(Path(folder), limit=_MIB, used=_MIB // 2)
        line, code = _outcome(_start(*command, num_envs=1, task="CartPole-v1"))
        assert code == 1 and "error: OutOfSharedMemory: the region needs" in line


@pytest.fixture
def limited_group() -> Iterator[Path]:
    """Makes a real control group with a limit of 150 MiB, in version 1 or 2."""
    found = re.search(r"^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$|^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.M)
    assert found is not None
    own = _GROUPS / "memory" / found[1].lstrip("/") if found[1] else _GROUPS / (found[2] or "").lstrip("/")
    group = own / f"tandem_test_{uuid.uuid4().hex}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"this machine does not let its user make a control group: {error}")
    try:
        limit = group / ("memory.limit_in_bytes" if found[1] else "memory.max")
        if not limit.exists():
            pytest.skip("this machine's control groups do not limit memory here")
        limit.write_text(f"{150 * _MIB}\n", "ascii")
        yield group
    finally:
        group.rmdir()


@pytest.mark.parametrize("task", ["HalfCheetah-v5", "Humanoid-v5", "Pendulum-v1"])
def test_no_number_of_environments_gets_the_server_killed(limited_group: Path, task: str) -> None:
    """For each number of environments, the server serves or refuses."""
    enter = ("sh", "-c", f'echo $$ >"{limited_group}/cgroup.procs" && exec "$@"', "sh")
    served = refused = 0
    small = (200_000, 500_000, 600_000, 800_000, 3_000_000)
    large = (300, 600, 650, 700, 750, 3000)
    for num_envs in small if task == "Pendulum-v1" else large:
        line, code = _outcome(_start(*enter, num_envs=num_envs, task=task))
        if "serving" in line:
            assert code == 0
            served += 1
        else:
            assert code == 1 and "error: OutOfSharedMemory" in line, (num_envs, code, line)
            assert str(limited_group) in line
            refused += 1
    assert served and refused
