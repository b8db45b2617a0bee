"""Measures the peers in Python, each at every size where it exists, and kills them in the midst of it.

Their interpreters are not among what tools/test makes, so this is run by hand:

    tools/extra_env peers && tools/extra_env torch
    tools/bazel test --test_env=HOME //tests/benchmark:peers_test
"""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from tests.benchmark.engine_process import cpu_nanos_of
from tests.benchmark.measurement import ROWS, SIZES, Row, Size
from tests.benchmark.python_rows import measure_row
from tools.testing import pytest_main

T = TypeVar("T")
_PREFIX = f"tandem-benchmark-{uuid.uuid4().hex}"
PEERS = [row for row in ROWS if row.interpreter]
CASES = [(row, size) for row in PEERS for size in SIZES if row.exists_at(size)]


@pytest.mark.parametrize(("row", "size"), CASES, ids=[f"{row.key}-{size.envs}" for row, size in CASES])
def test_row_is_measured(row: Row, size: Size) -> None:
    """It gives figures, and its engine's work takes CPU time."""
    before = files()
    group = measure_row(row, replace(size, exchanges=50), 1.0, new_name())
    print(f"{row.label}, {size}: {group}")
    assert group.exchanges >= 10
    assert 0 < group.step_p50 <= group.cycle_p50
    assert group.client_cpu > 0
    assert group.engine_cpu > 0
    assert files() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("row", PEERS, ids=[row.key for row in PEERS])
def test_end_by_a_signal_leaves_nothing(row: Row, number: signal.Signals) -> None:
    """A client that measures for ever is ended: its engine ends too, and no file is left."""
    before = files()
    size = replace(SIZES[0], exchanges=1_000_000_000)
    region = new_name()
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tests.benchmark import measurement, python_rows\n"
        f"row = next(r for r in measurement.ROWS if r.key == {row.key!r})\n"
        f"python_rows.measure_row(row, measurement.{size!r}, 1000.0, {region!r})\n"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen([sys.executable, "-P", "-c", code], env=variables, start_new_session=True)
    try:
        client = wait_for(lambda: client_with_an_engine(run.pid))
        measuring = cpu_nanos_of([client]) + 300_000_000
        wait_for(lambda: cpu_nanos_of([client]) > measuring)
        os.kill(run.pid, number)
        run.wait(timeout=60)
        wait_for(lambda: not processes_of(run.pid))
    finally:
        for pid in processes_of(run.pid):
            os.kill(pid, signal.SIGKILL)
    assert files() == before


def processes_of(session: int) -> dict[int, int]:
    """Finds the living processes of a session, and their parents."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent, _, its_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found[int(folder.name)] = int(parent)
    return found


def client_with_an_engine(session: int) -> int | None:
    """Finds the peer's client once it has started a process."""
    for parent in processes_of(session).values():
        with contextlib.suppress(OSError):
            if b"tests.benchmark.peer_client" in Path(f"/proc/{parent}/cmdline").read_bytes():
                return parent
    return None


def wait_for(found: Callable[[], T | None]) -> T:
    """Waits until there is something."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if it := found():
            return it
        time.sleep(0.01)
    raise TimeoutError("waited for 30 s")


def new_name() -> str:
    """Returns a name for a socket that no process here or in another namespace has."""
    return f"{_PREFIX}-{uuid.uuid4().hex[:8]}"


def files() -> list[str]:
    """Lists what the peers or their tools may leave in shared folders."""
    patterns = ("/dev/shm/iox2_*", "/tmp/iceoryx2*", "/dev/shm/pym-*", f"/dev/shm/*{_PREFIX}-*")
    return sorted(path for pattern in patterns for path in glob.glob(pattern))


if __name__ == "__main__":
    pytest_main.run(__file__)
