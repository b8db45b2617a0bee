"""The wheel in clean virtual environments: it contains all that it needs, and no file depends on the build tree.

The test has no package index. NumPy and Gymnasium are the locked packages, linked into the environment one by one: only
the requirements of the wheel's metadata, and mujoco where a test needs it. tools/test --with wheel uses an index.
"""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import urllib.request
import uuid
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import cpython_tags

import tandem
from tests.wheel.clean_environment import CleanEnvironment, audited_platform, check_installed, tags

# Package indexes and slow lines bear larger files, but users wait.
_BYTES_AT_MOST = 40_000_000


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Returns the path of the built wheel."""
    (found,) = Path("client_py/wheel").glob("*.whl")
    return found.absolute()


@pytest.fixture
def environment(tmp_path: Path, wheel: Path) -> CleanEnvironment:
    """Creates a clean environment with the wheel and its requirements."""
    made = CleanEnvironment.create(tmp_path / "venv", sys.executable, pip=False)
    made.pip("install", "--no-deps", str(wheel))
    made.link(*made.requirements())
    return made


@pytest.fixture(scope="session")
def complete(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> CleanEnvironment:
    """Creates an environment with the wheel and the packages of [telemetry], which tests only use."""
    made = CleanEnvironment.create(tmp_path_factory.mktemp("complete") / "venv", sys.executable, pip=False)
    made.pip("install", "--no-deps", str(wheel))
    required = map(Requirement, made.requirements())
    made.link(*(each.name for each in required if not each.marker or each.marker.evaluate({"extra": "telemetry"})))
    return made


def test_works_without_the_mujoco_package(environment: CleanEnvironment) -> None:
    """`pip check` finds no missing requirement."""
    environment.pip("check")
    assert not list(environment.site_packages.glob("mujoco*"))
    check_installed(environment, tandem.__version__)


def test_works_beside_the_mujoco_package(environment: CleanEnvironment) -> None:
    """The engine uses its bundled library, also if the trainer has imported the package."""
    alone = check_installed(environment, tandem.__version__)
    environment.link("mujoco")
    assert check_installed(environment, tandem.__version__, modules=("mujoco",)) == alone


def test_serves_an_engine_in_python(complete: CleanEnvironment) -> None:
    """The engine's module and its codecs are the wheel's; a trainer does not load them."""
    program = """
import sys, threading
import tandem
from gymnasium import spaces
class Still(tandem.Engine):
    num_envs, observation_space, action_space = 2, spaces.Box(-1, 1, (3,)), spaces.Box(-1, 1, (1,))
    def reset(self, envs, seeds, arrays):
        arrays.obs[envs] = 0
    def step(self, envs, arrays):
        arrays.obs[envs] = 1
assert "tandem._engine" not in sys.modules
stop = threading.Event()
thread = threading.Thread(target=tandem.serve, args=[Still()], kwargs={"name": sys.argv[1], "stop": stop})
thread.start()
with tandem.SharedMemoryClient(sys.argv[1]) as client:
    assert client.step(client.actions)[0].min() == 1
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}), sep="\\n")
stop.set()
thread.join()
"""
    files = [
        Path(line)
        for line in complete.run("python", "-c", program, f"wheel-{uuid.uuid4().hex}").splitlines()
        if "/" in line
    ]
    ours = [file for file in files if file.name.startswith(("_engine", "_native", "libjpeg", "libpng"))]
    assert {file.name.partition("-")[0].partition(".")[0] for file in ours} >= {"_engine", "libjpeg", "libpng16"}
    assert all(file.is_relative_to(complete.folder) for file in ours), ours


def test_trainer_client_needs_the_extras_packages(environment: CleanEnvironment) -> None:
    """Without the extra's packages, EventWriter and `tandemctl --help` work."""
    program = """
import tandem.telemetry as telemetry
telemetry.EventWriter(timestamps=False).lifecycle("printed")
try:
    telemetry.TrainerClient("unix:no-daemon.sock").runs()
except (ModuleNotFoundError, telemetry.DaemonUnreachable) as error:
    print(type(error).__name__)
"""
    printed = '{"event":"printed"}\n'
    assert environment.run("python", "-c", program) == f"{printed}ModuleNotFoundError\n"
    assert environment.run("tandemctl", "--help").startswith("Usage: tandemctl")
    required = map(Requirement, environment.requirements())
    environment.link(*(each.name for each in required if each.marker and each.marker.evaluate({"extra": "telemetry"})))
    assert environment.run("python", "-c", program) == f"{printed}DaemonUnreachable\n"
    for command in ("tandemctl", "python -m tandemctl"):
        assert "tandem-daemon --data_dir" in environment.fail(*command.split(), "--daemon=unix:none.sock", "list")


def test_view_starts_the_daemon_that_runs_a_job(complete: CleanEnvironment) -> None:
    """`tandem-view --daemon` starts the wheel's daemon and serves the page; `tandemctl` submits a run to the daemon."""
    with tempfile.TemporaryDirectory() as folder:  # a short path: a socket's has at most 107 characters
        daemon = f"unix:{folder}/daemon.sock"
        view = complete.start(
            "tandem-view", "--listen=127.0.0.1:0", "--daemon", f"--daemon_target={daemon}", f"--data_dir={folder}/data"
        )
        try:
            assert view.stdout is not None
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            address = view.stdout.readline().strip()
            browser.open(address).close()
            with browser.open(address.partition("?")[0]) as page:
                assert b"<title>" in page.read()
            run_id = complete.run("tandemctl", f"--daemon={daemon}", "submit", "--", "echo", "done").strip()
            assert "done" in complete.run("tandemctl", f"--daemon={daemon}", "logs", "--follow", run_id)
            complete.check_libraries(view.pid)
            pid = int(Path(folder, "data", "daemon.pid").read_text())
            complete.check_libraries(pid)
            os.kill(pid, signal.SIGTERM)
        finally:
            view.terminate()
            view.communicate()


def test_inspector_names_itself(complete: CleanEnvironment) -> None:
    """Its messages name the wheel's command."""
    assert complete.fail("tandem-inspect", f"wheel-{uuid.uuid4().hex}").endswith("Next: tandem-inspect list\n")


def test_has_the_c_interface(complete: CleanEnvironment, tmp_path: Path) -> None:
    """A program in C is compiled and linked by the flags of `python -m tandem.sdk`, and finds the library."""
    source = tmp_path / "program.c"
    source.write_text("#include <stdio.h>\n#include <tandem.h>\nint main(void) { puts(tandem_version()); return 0; }\n")
    flags = complete.run("python", "-m", "tandem.sdk", "--cflags", "--libs").split()
    subprocess.run(["gcc", "-o", tmp_path / "program", source, *flags], check=True)
    assert subprocess.check_output([tmp_path / "program"], text=True) == f"{tandem.__version__}\n"
    cmake = Path(complete.run("python", "-m", "tandem.sdk", "--cmake").strip())
    assert (cmake / "TandemConfig.cmake").is_file()


def test_has_examples_and_the_suite(complete: CleanEnvironment, tmp_path: Path) -> None:
    """A copied engine passes rules of the suite, run by the environment's Python."""
    listed = complete.run("python", "-m", "tandem.examples").splitlines()
    sources = {file.stem for file in Path("client_py/examples").rglob("*.py") if not file.stem.endswith("_test")}
    assert {line.split()[0] for line in listed} == sources
    copied = complete.run("python", "-m", "tandem.examples", "pendulum_engine", str(tmp_path)).strip()
    assert Path(copied).read_bytes() == Path("client_py/examples/pendulum_engine.py").read_bytes()
    assert "move it" in complete.fail("python", "-m", "tandem.examples", "pendulum_engine", str(tmp_path))
    suite = ("-m", "tandem.conformance", "--limit_flag=max_episode_steps", "--filter=Steps.")
    report = complete.run("python", *suite, copied, "--gravity=9")
    assert "ok       Steps.AStepStepsEveryEnvironment\n" in report and " 0 failed, 0 skipped\n" in report, report


def test_uninstall_removes_all_files(environment: CleanEnvironment) -> None:
    """Neither a file nor the command remains."""
    environment.pip("uninstall", "--yes", "tandem-shm")
    assert not list(environment.folder.rglob("*tandem*"))


def test_tags_equal_those_of_the_audit_and_the_interpreter(wheel: Path) -> None:
    """Checks the tags of the platform, the Python and its ABI."""
    version, python, abi, platform = tags(wheel)
    tag = next(cpython_tags())
    assert (version, python, abi) == (tandem.__version__, tag.interpreter, tag.abi)
    assert platform.startswith("manylinux_2_") and platform == audited_platform(wheel)


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_platform_is_the_documented_one(wheel: Path, page: str) -> None:
    """A newer symbol of a system library would exclude some of the documented systems."""
    assert f"-{tags(wheel)[3]}.whl" in Path(page).read_text("utf-8")


def test_contents_are_the_package_the_engine_and_the_notices(wheel: Path) -> None:
    """The wheel has no file that only tests need; its programs are executable."""
    with zipfile.ZipFile(wheel) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    info = f"tandem_shm-{tandem.__version__}.dist-info"
    package = Path(tandem.__file__).parent
    sources = {path.relative_to(package.parent).as_posix() for path in package.rglob("*.py*")}
    sources = {path for path in sources if path.endswith((".py", ".pyi")) and "_test" not in path}
    assert sources <= modes.keys()
    assert {
        "tandem/_native.so",
        "tandem/_programs/tandem-conformance",
        "tandem/_programs/tandem-daemon",
        "tandem/_programs/tandem-gateway",
        "tandem/_programs/tandem-inspect",
        "tandem/_programs/tandem-view",
        "tandem/engine_server",
        "tandem/examples/pendulum_engine.py",
        "tandem/examples/train_sb3.py",
        "tandem/py.typed",
        "tandem/assets/half_cheetah.xml",
        f"{info}/licenses/LICENSE",
        f"{info}/licenses/third_party/abseil/copyright",
        f"{info}/licenses/third_party/gymnasium/LICENSE",
        f"{info}/licenses/third_party/agg/copyright",
        f"{info}/licenses/third_party/libjpeg/copyright",
        f"{info}/licenses/third_party/libpng/copyright",
        f"{info}/licenses/third_party/mujoco/LICENSE",
        f"{info}/licenses/third_party/mujoco/LICENSES_THIRD_PARTY.md",
        f"{info}/licenses/third_party/nlohmann_json/copyright",
        f"{info}/licenses/third_party/pybind11/LICENSE",
    } <= modes.keys()
    libraries = "boost c_ares flatbuffers grpc libmd openssl protobuf re2 simdjson sqlite3 three utf8cpp".split()
    assert {f"{info}/licenses/third_party/{library}/copyright" for library in libraries} <= modes.keys()
    # tandem-conformance has googletest inside.
    assert [path for path in modes if "test" in path and "/gtest/" not in path] == []
    for program in ("engine_server", "_programs/tandem-daemon", "_programs/tandem-inspect", "_programs/tandem-view"):
        assert modes[f"tandem/{program}"] & stat.S_IXOTH
    assert not modes["tandem/client.py"] & stat.S_IXUSR
    assert wheel.stat().st_size < _BYTES_AT_MOST
    assert {path.split("/")[0] for path in modes} == {"tandem", "tandemctl", "tandem_shm.libs", info}
