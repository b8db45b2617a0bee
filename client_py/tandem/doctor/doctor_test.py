"""The doctor reports real defects of an installation, and does not crash on them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.doctor.child import run_python
from tandem.doctor.finding import Level, size
from tandem.doctor.gpu import check_gpu
from tandem.doctor.machine import MemoryLimit, cpu_quota, memory_limit
from tandem.testing import cuda_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    TRIVIAL_ENGINE,
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.shared_memory import with_shared_memory
from tandem.testing.standin import LIBRARY

_DOCTOR = ("-m", "tandem.doctor")
_MEMORY_LIMITS = Path("base/os/testdata/memory_limits.json")


def _run(*command: str, path: list[Path] | None = None, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command with this process's module search path, or with the given folders."""
    folders = [str(folder) for folder in path] if path is not None else list(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def _report(*command: str, code: int, path: list[Path] | None = None, **variables: str) -> dict[str, dict[str, Any]]:
    """Runs `... tandem.doctor --json`, checks the exit code, and returns the worst finding for each subject."""
    outcome = _run(*command, *_DOCTOR, "--json", path=path, **variables)
    assert outcome.returncode == code, outcome.stdout + outcome.stderr
    report: dict[str, dict[str, Any]] = {}
    for finding in json.loads(outcome.stdout):
        assert bool(finding["next_step"]) == (finding["level"] != "OK"), finding
        known = report.setdefault(finding["about"], finding)
        if ("OK", "WARN", "FAIL").index(finding["level"]) > ("OK", "WARN", "FAIL").index(known["level"]):
            report[finding["about"]] = finding
    return report


def _levels(report: dict[str, dict[str, Any]], level: str) -> set[str]:
    return {about for about, finding in report.items() if finding["level"] == level}


def _package(tmp_path: Path) -> Path:
    """Copies the package without its tests, and returns the folder to import it from."""
    folder = tmp_path / "copy"
    shutil.copytree(
        Path(tandem.__file__).parent, folder / "tandem", ignore=shutil.ignore_patterns("testing", "*_test.py")
    )
    return folder


def test_nothing_fails_here_and_a_real_engine_steps() -> None:
    """The text report has no FAIL; the doctor's engine made 1000 steps and left no region."""
    outcome = _run(sys.executable, *_DOCTOR)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "made 1000 steps" in outcome.stdout and "left nothing behind" in outcome.stdout
    assert f"OK    tandem: {tandem.__version__}" in outcome.stdout
    assert outcome.stdout.splitlines()[-1].endswith(" 0 FAIL")
    assert not list(Path("/dev/shm").glob("*tandem-doctor-*"))


def test_a_gpu_and_the_paths_of_regions_are_named() -> None:
    """With the stand-in driver: its device, and the path that a region offers; one without has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))
        engine = tandem.launch_engine(name=unique_name(), num_envs=1, server=cuda_engine.__file__, timeout=60)
    with engine, tandem.launch_engine("CartPole-v1", name=unique_name()) as plain:
        outcome = _run(sys.executable, *_DOCTOR, TANDEM_CUDA_LIBRARY=str(LIBRARY))
    assert f"OK    GPU path: region {engine.name}: CUDA IPC" in outcome.stdout
    assert f"region {plain.name}: none, the engine writes in the region only" in outcome.stdout
    assert "OK    GPU: CUDA driver 13.0" in outcome.stdout and "0 stand-in (GPU-74616e64-" in outcome.stdout


@pytest.mark.parametrize(
    ("variables", "level", "fact"),
    [
        ({"TANDEM_CUDA": "no"}, Level.OK, "none: the CUDA driver is switched off by TANDEM_CUDA=no"),
        ({"TANDEM_STANDIN_VERSION": "11020"}, Level.WARN, "GpuDriverTooOld"),
        ({"TANDEM_STANDIN_FAIL": "cuInit=304"}, Level.WARN, "CUDA_ERROR_OPERATING_SYSTEM"),
        ({"TANDEM_CUDA": "require", "TANDEM_CUDA_LIBRARY": "/no/libcuda.so"}, Level.WARN, "/no/libcuda.so"),
    ],
)
def test_the_reason_for_no_gpu_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], level: Level, fact: str
) -> None:
    """It is a warning, unless the driver is missing and not required."""
    for name, value in {"TANDEM_CUDA_LIBRARY": str(LIBRARY), **variables}.items():
        monkeypatch.setenv(name, value)
    (found,) = (finding for finding in check_gpu() if finding.about == "GPU")
    assert found.level == level and fact in found.found


def test_help_describes_the_program() -> None:
    """The help describes the options; no check runs."""
    outcome = _run(sys.executable, *_DOCTOR, "--help")
    assert outcome.returncode == 0 and "--json" in outcome.stdout and "OK    " not in outcome.stdout


def test_a_missing_server_fails_and_names_the_variable() -> None:
    """TANDEM_ENGINE_SERVER is a path that does not exist."""
    report = _report(sys.executable, code=1, TANDEM_ENGINE_SERVER="/nonexistent")
    assert _levels(report, "FAIL") == {"engine's program"}
    assert "/nonexistent" in report["engine's program"]["found"]
    assert "unset TANDEM_ENGINE_SERVER" in report["engine's program"]["next_step"]


def test_a_program_that_is_not_an_engine_fails_with_its_exit_code() -> None:
    """The server is /bin/false, which exits at once."""
    report = _report(sys.executable, code=1, TANDEM_ENGINE_SERVER="/bin/false")
    assert _levels(report, "FAIL") == {"engine"}
    assert "ended with exit code 1" in report["engine"]["found"]


def test_one_core_is_a_warning_against_spinning() -> None:
    """The report has a warning about `spin`; the engine still runs."""
    core = min(os.sched_getaffinity(0))
    report = _report("taskset", "--cpu-list", str(core), sys.executable, code=0)
    assert report["cores"]["level"] == "WARN" and "1 of" in report["cores"]["found"]
    assert "spin" in report["cores"]["next_step"]


def test_a_file_size_limit_below_a_region_fails() -> None:
    """With RLIMIT_FSIZE below a region's size, the limit, the files in /dev/shm and the engine each fail."""
    report = _report("prlimit", "--fsize=1000000", sys.executable, code=1)
    assert {"file size", "files in /dev/shm", "engine"} <= _levels(report, "FAIL")


@pytest.mark.parametrize(
    ("mount", "code", "level", "expected"),
    [
        ("-o size=64m", 0, "WARN", "--shm-size"),
        ("-o size=1m", 1, "FAIL", "--shm-size"),
    ],
)
def test_a_small_shared_memory_is_reported_with_the_flag_that_fixes_it(
    mount: str, code: int, level: str, expected: str
) -> None:
    """A tmpfs of 64 MiB, Docker's default, is a warning; one of 1 MiB, too small for an engine, fails."""
    report = _report(*with_shared_memory(mount), sys.executable, code=code)
    assert report["/dev/shm"]["level"] == level
    assert expected in report["/dev/shm"]["next_step"]
    assert ("engine" in _levels(report, "FAIL")) == (code == 1)


def test_a_shared_memory_that_no_user_may_write_fails() -> None:
    """/dev/shm is mounted read-only."""
    report = _report(*with_shared_memory("-o ro"), sys.executable, code=1)
    assert "O_TMPFILE" in report["files in /dev/shm"]["found"]


def test_a_broken_extension_fails_and_other_checks_run(tmp_path: Path) -> None:
    """The extension's file is not a shared object."""
    folder = _package(tmp_path)
    (folder / "tandem" / "_native.so").unlink()
    (folder / "tandem" / "_native.so").write_bytes(b"no shared object")
    others = [Path(entry) for entry in sys.path if entry]
    report = _report(sys.executable, code=1, path=[folder, *others])
    assert _levels(report, "FAIL") == {"extension"}
    assert "ImportError" in report["extension"]["found"]
    assert report["NumPy"]["level"] == "OK"


def test_a_source_folder_is_distinguished_from_a_broken_package(tmp_path: Path) -> None:
    """The package has no extension file."""
    folder = _package(tmp_path)
    (folder / "tandem" / "_native.so").unlink()
    others = [Path(entry) for entry in sys.path if entry]
    report = _report(sys.executable, code=1, path=[folder, *others])
    assert "source folder" in report["extension"]["next_step"]


def test_a_python_without_packages_fails_and_names_them(tmp_path: Path) -> None:
    """The interpreter is that of an empty virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    report = _report(str(tmp_path / "venv" / "bin" / "python"), code=1, path=[_package(tmp_path)])
    assert _levels(report, "FAIL") == {"NumPy", "Gymnasium", "extension"}
    assert "No module named 'numpy'" in report["NumPy"]["found"]
    assert "No module named 'numpy'" in report["extension"]["found"]


# Runs in its own /dev/shm: an engine of another test would also remove the dead region.
_DEAD_AND_LIVE = """
import os, signal, subprocess, sys, tandem
server = sys.argv[1]
with tandem.launch_engine(name="live", server=server), tandem.launch_engine(name="dead", server=server) as dead:
    os.kill(dead.pid, signal.SIGKILL)
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    print(os.listdir("/dev/shm"))
    subprocess.run([sys.executable, "-m", "tandem.doctor"], check=True)
    print(os.listdir("/dev/shm"))
"""


def test_dead_and_live_regions_are_distinguished() -> None:
    """The start of the doctor's own engine removes the dead region."""
    outcome = _run(*with_shared_memory("-o size=64m"), sys.executable, "-u", "-c", _DEAD_AND_LIVE, str(TRIVIAL_ENGINE))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    before, *lines, after = outcome.stdout.splitlines()
    assert "'dead'" in before and "'live'" in before
    assert [line for line in lines if line.startswith("WARN  regions: 1 whose engines are dead: dead (")], lines
    assert [line for line in lines if line.startswith("OK    regions: 1 in use: live (engine ")], lines
    assert "dead" not in after and "'live'" in after


def test_regions_of_others_are_listed_with_their_owner() -> None:
    """A region of another user is reported with its uid; the doctor does not remove it."""
    link = Path("/dev/shm", f".{unique_name()}.tandem")
    link.touch()
    try:
        os.chown(link, 54321, -1)
    except OSError:
        pytest.skip("this user may not give files away (chown)")
    else:
        assert "uid 54321 has some" in _run(sys.executable, *_DOCTOR).stdout
        assert link.exists()
    finally:
        link.unlink()


def test_a_child_that_crashes_is_an_outcome() -> None:
    """The outcome names the signal, the exception with its full text, or the exit code."""
    assert run_python("-c", "import os; os.kill(os.getpid(), 11)").trouble == "crashed by SIGSEGV"
    assert run_python("-c", "raise RuntimeError('one\\ntwo')").trouble == "RuntimeError: one\ntwo"
    assert run_python("-c", "raise SystemExit(3)").trouble == "ended with exit code 3"
    assert run_python("-c", "print(1)").output == "1"


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, None),
        ("0::/gone\n", {}, None),
        (
            "4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n",
            {
                "cpu/x/cpu.cfs_quota_us": "-1\n",
                "cpu/x/cpu.cfs_period_us": "100000\n",
                "cpu/cpu.cfs_quota_us": "50000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
    ],
    ids=["version 2, in a container", "version 2, nested", "version 2, the host's path", "version 1"],
)
def test_cpu_quotas_are_read(tmp_path: Path, groups: str, files: dict[str, str], cores: float | None) -> None:
    """The smallest quota among the control group and its ancestors counts."""
    _write(tmp_path, {"proc": groups, **{f"cgroup/{name}": text for name, text in files.items()}})
    assert cpu_quota(tmp_path / "proc", tmp_path / "cgroup") == cores


@pytest.mark.parametrize("case", json.loads(_MEMORY_LIMITS.read_text("utf-8")), ids=lambda case: case["name"])
def test_memory_limits_are_read_as_the_engine_reads_them(tmp_path: Path, case: dict[str, Any]) -> None:
    """The cases are those of memory_limit_test.cc."""
    process = {} if case["process"] is None else {"proc": case["process"]}
    _write(tmp_path, {**process, **{f"cgroup/{name}": text for name, text in case["files"].items()}})
    found = memory_limit(tmp_path / "proc", tmp_path / "cgroup")
    if case["limit"] is None:
        assert found is None
        return
    assert found == MemoryLimit(case["limit"], case["used"], case["reclaimable"], tmp_path / "cgroup" / case["file"])
    assert found.available == max(0, case["limit"] - case["used"] + case["reclaimable"])


def test_sizes_have_a_readable_unit() -> None:
    """The unit changes at 1024 of the smaller unit."""
    assert [size(count) for count in (0, 1023, 1024, 64 << 20, 3 << 39)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "64.0 MiB", "1.5 TiB",
    ]  # fmt: skip
