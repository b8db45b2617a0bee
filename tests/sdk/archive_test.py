"""The archive as an engine's author finds it: its examples are built outside of the project, and pass the suite."""

import os
import re
import signal
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import tandem
from tandem.testing.engines import unique_name
from tests.sdk.commands import run
from tools.checks.links import link_problems

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

VERSION = tandem.__version__
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def _run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    return run(*command, cwd=cwd, environment=ENVIRONMENT | environment)


@pytest.fixture(scope="module")
def by_cmake(sdk: Path) -> Path:
    """Builds all examples by CMake; returns their folder."""
    build = sdk.parent / "build"
    for example in sorted(path for path in (sdk / "examples").iterdir() if path.is_dir()):
        _run("cmake", "-S", example, "-B", build / example.name, f"-DCMAKE_PREFIX_PATH={sdk}")
        _run("cmake", "--build", build / example.name)
    return build


@pytest.fixture(scope="module")
def by_gcc(sdk: Path) -> Path:
    """Builds the engine in C by gcc and pkg-config, as the README says; returns the program."""
    short = sdk.parent.parent / "sdk"  # the shell splits what pkg-config prints at spaces
    short.symlink_to(sdk)
    command = "gcc -Wall -Wextra -Werror -o c_engine {0}/examples/c_engine/engine.c "
    command += "$(pkg-config --cflags --libs tandem) -Wl,-rpath,{0}/lib"
    _run("/bin/sh", "-c", command.format(short), cwd=short.parent, PKG_CONFIG_PATH=f"{short}/lib/pkgconfig")
    return short.parent / "c_engine"


@pytest.mark.parametrize(
    "compiler",
    [
        ("gcc", "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes"),
        ("g++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wold-style-cast"),
        ("g++", "-x", "c++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion"),
        ("clang-14", "-x", "c", "-std=c11", "-Weverything", "-Wno-padded", "-Wno-unused-macros"),
    ],
    ids=["C11", "C++11", "C++20", "clang"],
)
def test_header_compiles_without_warnings(sdk: Path, compiler: tuple[str, ...]) -> None:
    """Alone, in each language."""
    _run(*compiler, "-Werror", "-fsyntax-only", sdk / "include/tandem.h")


def test_cpp_header_compiles_without_warnings(sdk: Path) -> None:
    """Alone."""
    _run("g++", "-x", "c++", "-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-fsyntax-only",
         sdk / "include/tandem.hpp")  # fmt: skip


def test_exports_are_those_of_the_list(sdk: Path) -> None:
    """The library exports the functions of tandem.h, in the version TANDEM_1, and nothing else."""
    declared = set(re.findall(r"\b(tandem_\w+)\(", (sdk / "include/tandem.h").read_text()))
    listed = Path("sdk/exports.txt").read_text().split()
    symbols = _run("nm", "-D", "--defined-only", "--extern-only", sdk / "lib/libtandem.so.1").splitlines()
    exported = [symbol.split()[-1] for symbol in symbols if " A " not in symbol]
    assert sorted(exported) == [f"{name}@@TANDEM_1" for name in listed]
    assert declared == set(listed)


def test_files_name_the_version(sdk: Path) -> None:
    """pkg-config and CMake see the version of the Python package."""
    assert f"Version: {VERSION}\n" in (sdk / "lib/pkgconfig/tandem.pc").read_text()
    assert f'PACKAGE_VERSION "{VERSION}"' in (sdk / "lib/cmake/Tandem/TandemConfigVersion.cmake").read_text()


@pytest.mark.parametrize("file", ["bin/tandem-conformance", "lib/libtandem.so.1"])
def test_programs_need_only_debians_runtime(sdk: Path, file: str) -> None:
    """Abseil, FlatBuffers and googletest are inside."""
    needed = re.findall(r"NEEDED.*\[(.*)\]", _run("readelf", "-d", sdk / file))
    allowed = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"}
    assert {name for name in needed if not name.startswith("ld-linux")} <= allowed
    assert ("SONAME" in _run("readelf", "-d", sdk / file)) == file.startswith("lib/")


def test_links_of_the_pages_work(sdk: Path) -> None:
    """Those to what the archive lacks are plain text."""
    pages = {page.name: page for page in (sdk / "docs").glob("*.md")}
    assert {"glossary.md", "protocol.md", "sessions.md", "waiting.md"} <= pages.keys()
    assert [problem for page in pages.values() for problem in link_problems(page)] == []
    index = pages["protocol.md"].read_text("utf-8")
    assert "](lrbc_v1.txt)" in index and "](sessions.md)" in index


def test_nuget_package_has_the_assembly_and_the_library(sdk: Path) -> None:
    """In NuGet's layout. Its time stamps say nothing of this machine, so equal files make equal packages."""
    with zipfile.ZipFile(sdk / f"csharp/Tandem.{VERSION}.nupkg") as package:
        files = package.namelist()
        assert {"Tandem.nuspec", "[Content_Types].xml", "_rels/.rels", "lib/netstandard2.0/Tandem.dll"} <= set(files)
        (library,) = [file for file in files if file.startswith("runtimes/linux-")]
        assert library.endswith("/native/libtandem.so.1")
        assert package.read(library) == (sdk / "lib/libtandem.so.1").read_bytes()
        about = ElementTree.fromstring(package.read("Tandem.nuspec"))
        assert [element.text for element in about.iter() if element.tag.endswith("}version")] == [VERSION]
        listed = package.read("[Content_Types].xml").decode()
        assert all(f'"/{file}"' in listed for file in files if file[0] not in "[_")
        assert files == sorted(files) and {entry.date_time for entry in package.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("c_engine", []),
        ("c_engine", ["--tick_hz=10000", "--ticks=3"]),
        ("cpp_engine", []),
        ("cpp_engine", ["--tick_hz=10000"]),
    ],
    ids=["C", "C with a tick", "C++", "C++ with a tick"],
)
def test_engines_pass_the_suite(sdk: Path, by_cmake: Path, engine: str, flags: list[str]) -> None:
    """By the archive's own program, outside of the project, for the engines that CMake has built."""
    program = sdk / "bin/tandem-conformance"
    report = _run(program, "--limit_flag=truncate_after", by_cmake / engine / engine, *flags, cwd=sdk)
    assert "FAILED" not in report and re.search(r"\d\d passed, 0 failed, \d+ skipped\n$", report), report


def test_engine_built_by_gcc_serves_a_trainer(by_gcc: Path) -> None:
    """`launch_engine` starts it; the environments count."""
    with (
        tandem.launch_engine(server=by_gcc, num_envs=3, flags=("--truncate_after=4",)) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        assert (client.task, client.obs_size, client.act_size) == ("Counter", 2, 1)
        actions = np.array([[1], [2], [3]], np.float32)
        for step in range(1, 5):
            obs, rewards, dones = client.step(actions)
            assert rewards.tolist() == [1, 2, 3]
            assert (dones == (step == 4)).all()
        assert (obs[:, 0] == 0).all() and (client.final_obs[:, 0] == 4).all()


def test_client_in_c_steps_an_engine(by_cmake: Path) -> None:
    """And reports the error of a name without an engine."""
    with tandem.launch_engine(server=by_cmake / "c_engine/c_engine", num_envs=3) as engine:
        seen = _run(by_cmake / "c_client/c_client", engine.name)
        assert seen == "3 environments, 1000 steps, return 500 of the first\n"
    assert _run(by_cmake / "c_client/c_client", "--help").startswith("Usage: c_client [NAME]")


def test_client_in_cpp_reads_typed_fields(sdk: Path, tmp_path: Path) -> None:
    """By the element types of their dtypes; another type is refused."""
    program = tmp_path / "fields_client"
    _run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-o", program, f"-I{sdk}/include",
         Path("tests/sdk/fields_client.cc"), sdk / "lib/libtandem.so.1")  # fmt: skip
    with tandem.launch_engine(server=Path("sdk/pair_server").absolute(), num_envs=2) as engine:
        seen = _run(program, engine.name, LD_LIBRARY_PATH=str(sdk / "lib")).splitlines()
    assert seen == [
        "2 x 2: -7 -6 -5 -4",
        "reward 0.1",
        "reward 0.1",
        "obs/pair: InvalidArgument",
        "obs/deep: Unsupported",
    ]


def test_programs_of_today_run_with_longer_structs(by_cmake: Path) -> None:
    """A later library accepts the shorter structs of engine and client, and fills no more than their fields."""
    later = str(Path("sdk/longer").absolute())
    client, program = by_cmake / "c_client/c_client", by_cmake / "c_engine/c_engine"
    assert later in _run("ldd", client, LD_LIBRARY_PATH=later)
    name = unique_name()
    command = (program, f"--name={name}", "--tick_hz=9999")
    with subprocess.Popen(command, env=ENVIRONMENT | {"LD_LIBRARY_PATH": later}) as engine:
        assert "1 environments, 1000 steps, return 500" in _run(client, name, LD_LIBRARY_PATH=later)
        engine.terminate()
    assert engine.returncode == 0


def test_killed_engine_in_a_step_is_gone(by_cmake: Path) -> None:
    """Between next and done: the client gets PeerGone."""
    with (
        tandem.launch_engine(
            server=by_cmake / "c_engine/c_engine", flags=("--tick_hz=1000", "--ticks=1000000")
        ) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.send(client.actions)
        with pytest.raises(tandem.StepTimeout):
            client.recv(0.1)
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(tandem.PeerGone):
            client.recv()


def test_client_killed_in_a_step_is_replaced(by_cmake: Path) -> None:
    """The engine finishes the step, and serves the next client."""
    with tandem.launch_engine(server=by_cmake / "c_engine/c_engine", flags=("--tick_hz=1000", "--ticks=100")) as engine:
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                client = tandem.SharedMemoryClient(engine.name, timeout=60)
                client.send(client.actions)
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(pid, 0)
            with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
                assert client.step(client.actions)[0][0, 0] == 1


def test_wrong_flag_of_the_engine_is_named(by_cmake: Path, tmp_path: Path) -> None:
    """As for our engines, also in a file of flags; the help lists the engine's flags too."""
    program = by_cmake / "c_engine/c_engine"
    for flag, text in {"--ticks=many": "--ticks: expected a number", "--tick=3": "tick"}.items():
        refused = subprocess.run([program, flag], capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and text in refused.stderr, refused.stderr
    assert "--ticks" in refused.stderr  # among the flags that exist
    config = tmp_path / "config.json"
    config.write_text('{"ticks": "many"}', encoding="utf-8")
    refused = subprocess.run([program, f"--config={config}"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "--ticks: expected a number" in refused.stderr, refused.stderr
    helped = _run(program, "--help")
    assert "Environments that count." in helped and "--truncate_after" in helped and "--num_envs" in helped
