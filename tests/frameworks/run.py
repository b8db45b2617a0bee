"""Runs the tests of this folder with pytest and counts them; `tools/frameworks_test` calls it."""

import os
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent
_FACE_OF_SB3 = _FOLDER.parent / "learning" / "sb3_face_test.py"


class _Counter:
    """Counts pytest's reports."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts a passed test, or a failed test, set-up or tear-down.

        Args:
          report: Pytest's report.
        """
        self.failed += report.failed
        self.passed += report.passed and report.when == "call"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Counts a file that pytest cannot import.

        Args:
          report: Pytest's report.
        """
        self.failed += report.failed


def main() -> None:
    """Prints the count, and exits with pytest's exit code."""
    os.environ["SDL_VIDEODRIVER"] = "dummy"  # pygame opens no window
    os.environ["MUJOCO_GL"] = "egl"
    counter = _Counter()
    settings = ["-c", "/dev/null", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={_FOLDER}"]
    files = [str(path) for path in [*sorted(_FOLDER.glob("*_test.py")), _FACE_OF_SB3]]
    code = pytest.main([*settings, *files, *sys.argv[1:]], plugins=[counter])
    print(f"{counter.passed} passed, {counter.failed} failed", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
