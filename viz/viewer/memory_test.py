"""The viewer's memory stays constant with two tabs of 640x480 at 60 frames/s.

Run it by hand, since it is slow: bazel test //viz/viewer:memory_test --test_output=all --test_env=SECONDS=600
"""

import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from tools.testing import pytest_main
from viz.testing.virtual_display import virtual_display

_SECONDS = float(os.environ.get("SECONDS", "600"))
_WARM_UP_SECONDS = min(30.0, _SECONDS / 4)
_BOUND_KIB = 16 * 1024  # the permitted growth after the warm-up
_PUBLISH = Path("viz/testing/publish_pattern")
_VIEWER = Path("viz/viewer/viewer")


def _resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])


def _cpu_secs(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_memory_stays_constant(capsys: pytest.CaptureFixture[str]) -> None:
    """After the warm-up the resident memory grows by less than the bound."""
    runs = [f"memory-{uuid.uuid4().hex}" for _ in range(2)]
    writers = [subprocess.Popen([_PUBLISH, run, "segment", "640", "480", "3", "60"]) for run in runs]
    with virtual_display() as display:
        viewer = subprocess.Popen([_VIEWER, *(f"--run={run}" for run in runs)], env={**os.environ, "DISPLAY": display})
        try:
            time.sleep(_WARM_UP_SECONDS)
            warm, cpu, begin = _resident_kib(viewer.pid), _cpu_secs(viewer.pid), time.monotonic()
            most = warm
            while time.monotonic() - begin < _SECONDS - _WARM_UP_SECONDS:
                time.sleep(1)
                assert viewer.poll() is None
                most = max(most, _resident_kib(viewer.pid))
            share = (_cpu_secs(viewer.pid) - cpu) / (time.monotonic() - begin)
            with capsys.disabled():
                print(f"\nwarm {warm} KiB, at most {most} KiB in {_SECONDS:g} s; {share:.0%} of a core")
            assert most - warm < _BOUND_KIB
        finally:
            viewer.terminate()
            assert viewer.wait(60) == 0
            for writer in writers:
                writer.terminate()
                writer.wait(60)


if __name__ == "__main__":
    pytest_main.run(__file__)
