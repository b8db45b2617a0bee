"""Runs the tests of this folder with pytest and counts them; `tools/test --with frameworks` calls it."""

import os
import sys
from pathlib import Path

import pytest
import sb3s_tests

import tandem

sys.path.append(str(Path(__file__).parents[1] / "environments"))
from their_tests import TheirTests

_FOLDER = Path(__file__).parent
tandem.__path__.append(str(_FOLDER.parents[1] / "client_py/tandem"))  # tandem.testing, which no wheel has
_TESTS_OF_SB3 = Path(os.environ["SB3_TESTS"])


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
    files = [str(path) for path in sorted(_FOLDER.glob("*_test.py"))]
    files += [str(_TESTS_OF_SB3 / name) for name in sb3s_tests.TESTS]
    theirs = TheirTests(_TESTS_OF_SB3, sb3s_tests.replace, fails=sb3s_tests.FAILS, other_texts=sb3s_tests.OTHER_TEXTS)
    code = pytest.main([*settings, *files, *sys.argv[1:]], plugins=[counter, theirs])
    print(f"{counter.passed} passed, {counter.failed} failed", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
