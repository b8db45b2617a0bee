"""Runs a pytest file as a Bazel test: the main file of each py_test, which names the test file as first argument."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest


class _Shard:
    """The cases of one shard (`shard_count` of a py_test), by Bazel's variables: each n-th of all."""

    has_cases = False  # of any shard

    @pytest.hookimpl(trylast=True)  # after -k
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.has_cases = bool(items)
        if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
            Path(status).touch()
        items[:] = items[int(os.environ.get("TEST_SHARD_INDEX", "0")) :: int(os.environ.get("TEST_TOTAL_SHARDS") or 1)]


class _WithoutOpenGl:
    """Skips tests that need OpenGL, which the ARM64 root (tools/arm64) does not have."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        try:
            return (yield)
        except Exception as error:
            if "libEGL" in str(error):
                pytest.skip("the ARM64 root has no OpenGL")
            raise

    pytest_runtest_call = pytest_runtest_setup


def run(*paths: str) -> NoReturn:
    """Runs the tests in the given files and exits the process with pytest's code.

    The report goes where Bazel asks for it, so that every test case is counted. `--test_filter`, `--test_arg` and
    `shard_count` work.

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
    shard = _Shard()
    emulated = [_WithoutOpenGl()] if "TANDEM_EMULATED" in os.environ else []
    code = pytest.main([*arguments, *paths, *sys.argv[1:]], plugins=[shard, *emulated])
    raise SystemExit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED and shard.has_cases else code)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].endswith(".py"):
        sys.exit("pytest_main: expected the test file as first argument, as `bazel test` has it")
    run()
