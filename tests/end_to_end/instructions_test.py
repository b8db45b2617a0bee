"""The cost of an exchange as a count of instructions, measured by callgrind.

The counts are those of both sides. But those of "python" are of `SharedMemoryClient.step` alone, from the interpreter's
call of the binding to its return, for results that are there before the step.

The counts are those of an optimised x86-64 build by the compiler of this project's Debian release. They hold to 3 %,
regardless of the machine's load, so that a change's additional instructions are visible. After a change that is worth
its instructions, write the new counts here.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tandem.testing.engines import HANG, launch_trivial

_SESSION = Path("tests/end_to_end/one_thread_session")
_PYTHON_STEPS = Path("tests/end_to_end/python_steps.py")
_EXCHANGES = 2000
_TIMEOUT_SECS = 600.0  # the longest case takes about twenty seconds; Python and NumPy start slowly under callgrind

# Selects the C library's simplest memcpy and memset, regardless of the processor.
_PLAIN = (
    "glibc.cpu.hwcaps=-AVX2,-AVX512VL,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM"
    ":glibc.cpu.x86_non_temporal_threshold=0x10000000"
)

# Engine side, environments, values of an observation and of an action -> instructions of an exchange, without readings
# of the kernel's clock: valgrind makes system calls of them, so slow that TickClock does not use the counter.
_COUNTS = {
    ("sides", 1, 4, 1): 557,
    ("sides", 64, 32, 8): 1847,
    ("host", 1, 4, 1): 941,
    ("host", 64, 32, 8): 2321,
    ("host", 4096, 100, 12): 131656,
    ("attended", 1, 4, 1): 941,
    ("c", 1, 4, 1): 999,
    ("c", 4096, 100, 12): 131715,
    ("python", 1, 4, 1): 397,
}
_READINGS = 4


def _instructions(case: tuple[str, int, int, int], exchanges: int, folder: Path) -> int:
    engine, envs, obs, act = case
    if engine != "python":
        command = [str(_SESSION), *map(str, case), str(exchanges)]
        return _counted(command, "*CountedExchanges*", exchanges, folder)
    with launch_trivial(envs, obs_size=obs, act_size=act) as trivial:
        command = [sys.executable, str(_PYTHON_STEPS), trivial.name, str(HANG), str(exchanges)]
        # step_method.cc has the function.
        return _counted(command, "tandem::*::Step(_object*", exchanges, folder)


def _counted(command: Sequence[str], function: str, exchanges: int, folder: Path) -> int:
    """Returns the instructions of all calls of a C++ function in a program, without clock readings."""
    assert shutil.which("valgrind"), "expected valgrind on PATH; next: tools/setup"
    profiled = [
        "valgrind",
        "--tool=callgrind",
        "--fair-sched=yes",  # or one thread's spinning may take the other's time
        f"--callgrind-out-file={folder / 'callgrind'}",
        f"--toggle-collect={function}",
        *command,
    ]
    environment = os.environ | {
        "GLIBC_TUNABLES": _PLAIN,
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    ended = subprocess.run(
        profiled, capture_output=True, text=True, check=False, env=environment, timeout=_TIMEOUT_SECS
    )
    assert ended.returncode == 0, ended.stderr
    (counted,) = re.findall(r"Collected : (\d+)", ended.stderr)
    return int(counted) - _of_readings((folder / "callgrind").read_text(), exchanges)


def _of_readings(profile: str, exchanges: int) -> int:
    """Returns the instructions of the clock readings, and checks their number."""
    compare = re.search(r"\((\d+)\) \S*TickClock<\S*>::Compare\(\)", profile)
    assert compare, "expected TickClock's Compare in callgrind's profile, found none"
    called = re.findall(rf"^cfn=\({compare[1]}\).*\ncalls=(\d+) .*\n\S+ (\d+)$", profile, re.MULTILINE)
    assert sum(int(calls) for calls, _ in called) // exchanges <= _READINGS
    return sum(int(counted) for _, counted in called)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the counts are those of x86-64")
@pytest.mark.parametrize("case", _COUNTS, ids=lambda case: "x".join(map(str, case)))
def test_an_exchange_takes_no_more_instructions_than_before(case: tuple[str, int, int, int], tmp_path: Path) -> None:
    """The count is within 3 % of the recorded one; if it is smaller, record the smaller one."""
    found = _instructions(case, _EXCHANGES, tmp_path) / _EXCHANGES
    assert found == pytest.approx(_COUNTS[case], rel=0.03), (
        f"{case}: expected {_COUNTS[case]} instructions an exchange within 3 % (of -c opt), found {found:.0f}; "
        "what each function takes: callgrind_annotate --inclusive=yes of the same command"
    )


def test_an_engine_in_c_takes_few_more() -> None:
    """At most 60 instructions an exchange of the smallest size, and 1 % of a large one."""
    assert _COUNTS["c", 1, 4, 1] <= _COUNTS["host", 1, 4, 1] + 60
    assert _COUNTS["c", 4096, 100, 12] <= 1.01 * _COUNTS["host", 4096, 100, 12]


def test_an_idle_attendant_costs_nothing() -> None:
    """Nothing that the counts show."""
    assert _COUNTS["attended", 1, 4, 1] <= 1.01 * _COUNTS["host", 1, 4, 1]


def test_the_count_is_of_exchanges(tmp_path: Path) -> None:
    """Twice as many exchanges take twice the instructions; instructions before the first exchange do not count."""
    case = ("host", 1, 4, 1)
    assert _instructions(case, 2 * _EXCHANGES, tmp_path) == pytest.approx(
        2 * _instructions(case, _EXCHANGES, tmp_path), rel=0.01
    )
