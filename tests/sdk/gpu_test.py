"""Engines with arrays on a GPU pass the suite of the archive, by the stand-in for the driver."""

import os
import sys
from pathlib import Path

import pytest

from tandem.testing import cuda_engine
from tandem.testing.standin import LIBRARY
from tests.sdk.commands import run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

_SOURCE = Path("sdk/testing/gpu_engine.c").resolve()
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",  # its threads reserve memory, which a rule limits
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    "TANDEM_CUDA_LIBRARY": str(LIBRARY),
}


@pytest.fixture(name="c_engine", scope="module")
def _c_engine(sdk: Path) -> Path:
    program = sdk.parent / "gpu_engine"
    flags = [f"-I{sdk}/include", f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib", "-ltandem", "-ldl"]
    run("gcc", "-Wall", "-Wextra", "-Werror", "-o", program, _SOURCE, *flags, environment=_ENVIRONMENT)
    return program


def _report(sdk: Path, *engine: str | Path) -> str:
    report = run(sdk / "bin/tandem-conformance", *engine, cwd=sdk, environment=_ENVIRONMENT)
    assert "ok       Gpu.ObservationsAreFiniteAfterEachStepAndReset\n" in report and " 0 failed, " in report, report
    return report


def test_an_engine_in_cpp(sdk: Path) -> None:
    """By `EngineHost`."""
    report = _report(sdk, Path("engine_adapter/conformance/gpu_server").absolute())
    assert "ok       GpuAndHost.BothHaveTheSameObservations\n" in report, report


def test_an_engine_in_c(sdk: Path, c_engine: Path) -> None:
    """With observations on both sides, which are equal."""
    report = _report(sdk, "--limit_flag=truncate_after", c_engine)
    assert "ok       GpuAndHost.BothHaveTheSameObservations\n" in report, report


def test_an_engine_in_c_with_the_gpu_only(sdk: Path, c_engine: Path) -> None:
    """Rules of the observations in the region are skipped."""
    assert "skipped  GpuAndHost." in _report(sdk, c_engine, "--gpu_only=1")


def test_an_engine_in_python(sdk: Path) -> None:
    """It writes on a stream of its own, later than its step returns."""
    report = _report(sdk, "--actions=-0.5,-0.1", sys.executable, cuda_engine.__file__)
    assert "ok       GpuAndHost.BothHaveTheSameObservations\n" in report, report
