"""Helpers for tests of the Python client: engines with known behaviour, and a watchdog."""

import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tandem.engine.process import EngineProcess, launch_engine

TRIVIAL_ENGINE = Path(__file__).parent / "trivial_engine"
# tools/arm64 sets it: an emulator runs this process, ten times slower or more.
EMULATED = "TANDEM_EMULATED" in os.environ
WATCHDOG_SECS = 3000 if EMULATED else 200
needs_hardware = pytest.mark.skipif(
    EMULATED, reason="the emulator starts too slowly, or needs the memory that the test limits"
)

# The prefix of this process's region names. It is not the pid: tests share /dev/shm, but not a pid namespace.
_PREFIX = f"tandem-test-{uuid.uuid4().hex[:12]}"

# First actions that make the trivial engine misbehave; see trivial_engine.cc.
FAIL, EXIT, HANG, EXIT_TALKING = -1001.0, -1002.0, -1003.0, -1004.0


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Ends a test that hangs, and prints the stacks of all threads."""
    faulthandler.dump_traceback_later(WATCHDOG_SECS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Runs processes that compute without a pause."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Checks that a test leaves no region with a name from `unique_name` in /dev/shm."""
    yield
    assert [path.name for path in Path("/dev/shm").iterdir() if _PREFIX in path.name] == []


def unique_name() -> str:
    """Makes a region name that is unique and that `nothing_left_behind` checks.

    Returns:
      The name.
    """
    return f"{_PREFIX}-{uuid.uuid4().hex[:12]}"


def launch_trivial(num_envs: int = 2, name: str | None = None, **options: int) -> EngineProcess:
    """Starts the trivial engine.

    Args:
      num_envs: Number of environments.
      name: The region's name; None: a unique one.
      options: Flags of the engine, such as obs_size=4.

    Returns:
      The running engine.
    """
    flags = tuple(f"--{flag}={value}" for flag, value in options.items())
    return launch_engine(
        "Trivial-v0", num_envs=num_envs, name=name or unique_name(), server=TRIVIAL_ENGINE, flags=flags
    )


def stop(pid: int) -> None:
    """Stops a process by SIGSTOP, and returns when all its threads are stopped."""
    os.kill(pid, signal.SIGSTOP)
    for task in Path(f"/proc/{pid}/task").iterdir():
        while (task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)


def start_python(program: str | Path, *arguments: str) -> "subprocess.Popen[str]":
    """Starts a Python interpreter with this process's module search path.

    Args:
      program: The program's source, or the path of its file.
      arguments: The program's sys.argv[1:].

    Returns:
      The process, with pipes to its standard streams.
    """
    return subprocess.Popen(
        [sys.executable, *([program] if isinstance(program, Path) else ["-c", program]), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(program: str | Path, *arguments: str) -> str:
    """Runs a Python interpreter to its end, and checks that its exit code is 0.

    Args:
      program: The program's source, or the path of its file.
      arguments: The program's sys.argv[1:].

    Returns:
      The program's standard output.
    """
    process = start_python(program, *arguments)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def in_forked_child(action: Callable[[], str]) -> str:
    """Calls a function in a forked child.

    Args:
      action: The function to call in the child.

    Returns:
      The function's result, or the repr of its exception.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            outcome = action()
        except BaseException as error:
            outcome = repr(error)
        os.write(write_end, outcome.encode())
        os._exit(0)
    os.close(write_end)
    with open(read_end, encoding="utf-8") as pipe:
        outcome = pipe.read()
    os.waitpid(pid, 0)
    return outcome
