"""Runs a pytest file as a Bazel test.

A test file has:

    from tools.testing import pytest_main
    ...
    if __name__ == "__main__":
        pytest_main.run(__file__)
"""

import os
import sys
from typing import NoReturn

import pytest


def run(*paths: str) -> NoReturn:
    """Runs the tests in the given files and exits the process with pytest's code.

    The report goes where Bazel asks for it, so that every test case is counted. `--test_filter` and `--test_arg` work.

    Args:
      *paths: Files to collect tests from; modules with doctests may be among them.

    Raises:
      SystemExit: Always, with pytest's exit code; no test found counts as failure.
    """
    arguments = ["-c", os.devnull, "-p", "no:cacheprovider", "--import-mode=importlib", "--doctest-modules"]
    if report := os.environ.get("XML_OUTPUT_FILE"):
        arguments.append(f"--junit-xml={report}")
    if only := os.environ.get("TESTBRIDGE_TEST_ONLY"):
        arguments += ["-k", only]
    raise SystemExit(pytest.main([*arguments, *paths, *sys.argv[1:]]))
