"""Compares the prototypes of the CUDA driver with the toolkit's cuda.h, where it is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent


def _toolkit() -> Path | None:
    """Returns the toolkit's folder: CUDA_HOME, else the usual one."""
    for folder in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if folder and (Path(folder) / "include" / "cuda.h").is_file():
            return Path(folder)
    return None


@pytest.fixture(name="toolkit")
def _installed() -> Path:
    toolkit = _toolkit()
    if toolkit is None:
        pytest.skip("the CUDA toolkit is not installed")
    return toolkit


def _compile(toolkit: Path, source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("g++")
    assert compiler
    command = [compiler, "-std=c++20", f"-I{toolkit}/include", f"-I{_ROOT}", str(source), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_prototypes_are_those_of_cuda_h_and_link_against_libcuda(toolkit: Path, tmp_path: Path) -> None:
    """The comparison compiles, and the program links with each function's name."""
    program = tmp_path / "check"
    stubs = next(folder for folder in (toolkit / "lib64" / "stubs", toolkit / "lib64") if folder.is_dir())
    done = _compile(toolkit, _HERE / "testing" / "cuda_header_check.cc", f"-L{stubs}", "-lcuda", "-o", str(program))
    assert done.returncode == 0, done.stderr
    assert program.is_file()


def test_a_wrong_prototype_does_not_compile(toolkit: Path, tmp_path: Path) -> None:
    """The comparison finds a parameter of another size."""
    source = (_HERE / "testing" / "cuda_header_check.cc").read_text("utf-8")
    header = (_HERE / "cuda_prototypes.h").read_text("utf-8")
    right = "cuMemAlloc_v2, (CudaPointer * pointer, size_t bytes)"
    wrong = header.replace(right, "cuMemAlloc_v2, (CudaPointer * pointer, int bytes)")
    assert wrong != header
    (tmp_path / "wrong.h").write_text(wrong, "utf-8")
    (tmp_path / "wrong.cc").write_text(source.replace("transport/gpu/cuda_prototypes.h", "wrong.h"), "utf-8")
    done = _compile(toolkit, tmp_path / "wrong.cc", f"-I{tmp_path}", "-fsyntax-only")
    assert done.returncode != 0
    assert "differs from cuda.h in cuMemAlloc_v2" in done.stderr
