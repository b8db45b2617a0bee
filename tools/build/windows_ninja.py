"""Writes build.ninja: the core and the SDK for Windows, by Debian's mingw-w64, and their tests, run by Wine.

Abseil and GoogleTest come from Debian's source packages, as tools/setup unpacks them. The sources stand in archives,
from which each program links what it needs. ninja builds and runs what has changed: a passed test is not run again.

  tests/NAME.exe.passed   a test program, and that it has passed; NAME.exe.passed.log is its output
  sdk/libtandem-1.dll     the SDK's library; beside it the import library of mingw-w64 and tandem.def for MSVC's `lib`
  wheel/                  the extension modules and the engine's program, for windows_wheel.py
"""

import argparse
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

# Patterns of git.
_CORE = ("base/*.cc", "schema/*.cc", "transport/*.cc")
_SDK = (
    *(
        f":(glob)engine_adapter/{folder}/*.cc"
        for folder in ("core", "frames", "host", "ports", "rpc", "scene", "services")
    ),
    "program/program_flags.cc",
    ":(glob)sdk/*.cc",
    "transport/gpu/cuda_driver.cc",
    "transport/gpu/exported_arrays.cc",
    "transport/gpu/imported_arrays.cc",
    "transport/gpu/region_copies.cc",
)
_MODULES = {"_native": ":(glob)client_py/bindings/*.cc", "_engine": ":(glob)client_py/engine_bindings/*.cc"}
_SERVER = tuple(
    f":(glob)engine_adapter/{folder}/*.cc" for folder in ("classic_control", "frames/windows", "mujoco/**", "server")
)
_INSPECTOR = (
    "program/screen.cc",
    "program/windows/*.cc",
    "viz/core/engine_control.cc",
    "viz/core/quantities.cc",
    ":(glob)viz/inspect/inspect*.cc",
    "viz/inspect/windows/*.cc",
)
_TESTS = ("tests/windows/*.cc", "tests/faults/counting_peers.cc")
# Parts of paths of sources that Windows has no use for, or has another one instead; windows_tests.txt has tests.
_LEFT_OUT = {
    "/additions_only": "FlatBuffers' parser",
    "/allocation_counter": "glibc",
    "/fuzz_": "fuzz targets",
    "/generate": "writes golden samples",
    "/linux/": "Linux",
    "/macos/": "macOS",
    "/posix/": "both",
    "base/guarded": "glibc's cancellation of threads",
    "base/images/image_files": "libjpeg and libpng",
    "frames/canvas": "AGG",
    "render/egl_context": "EGL",
    "sdk/codec_stderr": "libjpeg and libpng",
    "sdk/write_cart": "a tool of the build",
}
_POSIX = "base/os/windows/testing/posix"  # for tests

_COMPILER = "x86_64-w64-mingw32-g++-posix"
_OURS = (
    "-Wall -Wextra -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Wshadow -Wimplicit-fallthrough "
    "-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Werror"
)
_OF_TESTS = "-Wall -Wextra -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Werror"
_RULES = f"""
root = {{root}}
flags = -std=c++20 -D_WIN32_WINNT=0x0A00 -DNOMINMAX -I{{root}} -Igenerated -isystem {{abseil}} -isystem include $
    -isystem {{googletest}}/googletest/include -isystem {{googletest}}/googlemock/include $
    -fno-semantic-interposition -ffp-contract=off --param=ggc-min-heapsize=524288
libraries = -ladvapi32 -ldbghelp -lntdll -lsynchronization -lz
rule compile
  command = {_COMPILER} $flags $own -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
  description = compile $in
rule archive
  command = rm -f $out && x86_64-w64-mingw32-gcc-ar rcs $out $in
rule link
  command = {_COMPILER} -static -o $out -Wl,--start-group $in -Wl,--end-group $libraries
  description = link $out
rule run
  command = cd {{root}} && $
    timeout 900 tools/windows {{build}}/$in --gtest_brief=1 "--gtest_filter=-$left_out" >{{build}}/$out.log 2>&1 && $
    touch {{build}}/$out || {{{{ tail -n 60 {{build}}/$out.log; false; }}}}
  description = run $in
  pool = runs
pool runs
  depth = 2
# GCC puts some inline constants into .data here, into .rdata there, and the linker takes those for two.
rule library
  command = {_COMPILER} -shared -static -Wl,--allow-multiple-definition $
    -o sdk/libtandem-1.dll sdk/tandem.def $
    -Wl,--out-implib,sdk/libtandem.dll.a $api -Wl,--start-group $archives -Wl,--end-group $libraries
  description = link $out
# ld takes names of functions from the other's DLL itself.
rule module
  command = {_COMPILER} $shared -static -Wl,--allow-multiple-definition -s -o $out $
    -Wl,--start-group $in -Wl,--end-group $libraries
  description = link $out
# Words and files' names are UTF-8 in a program that has it.
rule code_page
  command = echo '1 24 "$in"' | x86_64-w64-mingw32-windres -o $out
  description = code page of programs
rule copy
  command = cp $in $out
rule example
  command = {_COMPILER} -I{{root}}/sdk -Igenerated -x $language $in -x none -static -o $out $
    sdk/libtandem.dll.a
  description = link $out
"""
_FOR_CSHARP = "csharp/libtandem.so.1.dll"  # the library by the name that Tandem.dll has
_ABSEIL_FOLDERS = (
    "base container debugging flags hash numeric profiling status strings synchronization time types".split()
)
_ABSEIL_APART = {"absl/strings/numbers.cc", "absl/time/format.cc", "absl/time/internal/cctz/src/time_zone_posix.cc"}
_EXAMPLES = {
    "c_client": ("c_client/client.c", "c"),
    "c_engine": ("c_engine/engine.c", "c"),
    "cpp_engine": ("cpp_engine/engine.cc", "c++ -std=c++20"),
}


def _listed(patterns: Iterable[str]) -> list[str]:
    """Returns the sources among git's files, new ones included, that are built for Windows."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    paths = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    paths = [path for path in paths if not path.endswith(("_fuzz.cc", "_benchmark.cc"))]
    return [path for path in paths if "/windows/" in path or not any(part in path for part in _LEFT_OUT)]


def _write(path: Path, text: str) -> None:
    """Leaves a file alone that has this text: ninja compares times."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _left_out(text: str) -> list[str]:
    """Returns the names of tests and of their sources."""
    return [line.split()[0] for line in text.splitlines() if line and not line.startswith("#")]


def _abseil(source: Path, build: Path) -> Iterable[Path]:
    """Yields Abseil's sources, a folder as one source where private names allow it."""
    for folder in _ABSEIL_FOLDERS:
        files = sorted(str(path.relative_to(source)) for path in (source / "absl" / folder).rglob("*.cc"))
        files = [f for f in files if not any(word in f for word in ("test", "benchmark", "_main.cc", "print_hash_of"))]
        unit = build / "abseil" / f"{folder}.cc"
        _write(unit, "".join(f'#include "{source / f}"\n' for f in files if f not in _ABSEIL_APART))
        yield unit
        yield from (source / f for f in files if f in _ABSEIL_APART)


class _Ninja:
    def __init__(self, root: Path, build: Path, abseil: Path, googletest: Path) -> None:
        self._build = build
        self._lines = [_RULES.format(root=root, build=build, abseil=abseil, googletest=googletest)]

    def add(self, made: str, rule: str, needs: str, **variables: str) -> str:
        """Returns `made`."""
        own = "".join(f"\n  {name} = {value}" for name, value in variables.items())
        self._lines.append(f"build {made}: {rule} {needs}{own}\n")
        return made

    def objects(self, sources: Iterable[Path | str], own: str, header: str = "") -> list[str]:
        """Compiles sources; `header` is precompiled, and comes first in each."""
        made = []
        for source in sources:
            name = "o/" + str(source).removeprefix(str(self._build)).strip("/").replace("/", ".") + ".o"
            path = str(source) if Path(source).is_absolute() else f"$root/{source}"
            if header:
                made.append(self.add(name, "compile", f"{path} | {header}.h.gch", own=f"{own} -include {header}.h"))
            else:
                made.append(self.add(name, "compile", path, own=own))
        return made

    def write(self) -> None:
        _write(self._build / "build.ninja", "\n".join(self._lines))


def main() -> None:
    """Writes build.ninja."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--abseil", type=Path, required=True, help="folder of Abseil's source")
    parser.add_argument("--googletest", type=Path, default=Path("/usr/src/googletest"), help="folder of GoogleTest's")
    parser.add_argument("--python", type=Path, required=True, help="folder of Python for Windows and its packages")
    parser.add_argument("--pybind11", type=Path, required=True, help="folder of pybind11's headers")
    parser.add_argument("build", type=Path, help="folder for build.ninja and what it builds")
    options = parser.parse_args()
    root, build, google = Path.cwd(), options.build, options.googletest
    ninja = _Ninja(root, build, options.abseil, google)

    for name, headers in {"most": ["most"], "tests": ["most", "most_tests"]}.items():
        text = "".join(f'#include "{root}/tools/build/precompiled/{header}.h"\n' for header in headers)
        _write(build / f"{name}.h", text + ("#include <posix.h>\n" if name == "tests" else ""))
        own = f"-O2 {_OURS}" if name == "most" else f"-O1 {_OF_TESTS}"
        ninja.add(f"{name}.h.gch", "compile", f"{name}.h", own=f"{own} -isystem {root}/{_POSIX} -x c++-header")
    ninja.add("abseil.a", "archive", " ".join(ninja.objects(_abseil(options.abseil, build), "-O2 -w")))

    core = [path for path in _listed(_CORE) if "/gpu/" not in path]
    tests = [path for path in core + _listed(_TESTS) if path.endswith("_test.cc")]
    helpers = [path for path in core + _listed(_TESTS) if path not in tests and re.search("/testing/|^tests/", path)]
    core = [path for path in core if path not in tests and path not in helpers]
    ninja.add("core.a", "archive", " ".join(ninja.objects(core, f"-O2 {_OURS}", "most")))
    of_google = [google / "googletest/src/gtest-all.cc", google / "googlemock/src/gmock-all.cc"]
    helping = ninja.objects(helpers, f"-O1 {_OF_TESTS} -isystem $root/{_POSIX}")
    helping += ninja.objects(of_google, f"-O1 -w -I{google}/googletest -I{google}/googlemock")
    ninja.add("gtest.a", "archive", " ".join(helping))
    left_out = _left_out(Path("tools/build/windows_tests.txt").read_text("utf-8"))
    names = ":".join(name for name in left_out if "/" not in name or "*" in name)
    for test in tests:
        if test in left_out:
            continue
        (made,) = ninja.objects([test], f"-O1 {_OF_TESTS} -isystem $root/{_POSIX}", "tests")
        program = "tests/" + test.removesuffix(".cc").replace("/", ".") + ".exe"
        ninja.add(program, "link", f"{made} core.a gtest.a abseil.a")
        # The SDK's test runs the examples.
        examples = (
            "| " + " ".join([f"sdk/{name}.exe" for name in _EXAMPLES] + [_FOR_CSHARP]) if "/sdk_test" in test else ""
        )
        ninja.add(f"{program}.passed", "run", f"{program} {examples}", left_out=names)

    exports = Path("sdk/exports.txt").read_text("utf-8").split()
    _write(build / "sdk/tandem.def", "LIBRARY libtandem-1.dll\nEXPORTS\n" + "".join(f"  {name}\n" for name in exports))
    sdk = [path for path in _listed(_SDK) if "/testing/" not in path and not path.endswith("_test.cc")]
    api = ninja.objects([path for path in sdk if path.startswith("sdk/")], f"-O2 {_OURS}", "most")
    inside = ninja.objects([path for path in sdk if not path.startswith("sdk/")], f"-O2 {_OURS}", "most")
    ninja.add("inside.a", "archive", " ".join(inside))
    archives = "inside.a core.a abseil.a"
    needs = f"{' '.join(api)} {archives} sdk/tandem.def"
    ninja.add("sdk/libtandem-1.dll | sdk/libtandem.dll.a", "library", needs, api=" ".join(api), archives=archives)
    ninja.add(_FOR_CSHARP, "copy", "sdk/libtandem-1.dll")
    for example, (source, language) in _EXAMPLES.items():
        ninja.add(
            f"sdk/{example}.exe", "example", f"$root/sdk/examples/{source} | sdk/libtandem.dll.a", language=language
        )

    python, packages = options.python, options.python / "packages"
    archives = "inside.a core.a abseil.a"
    own = f"-O2 {_OURS} -isystem {options.pybind11} -isystem include/python"
    native, engine = (ninja.objects(_listed([pattern]), own, "most") for pattern in _MODULES.values())
    bindings = ninja.add("bindings.a", "archive", " ".join(native))
    for name, objects in (("_native", native), ("_engine", [*engine, bindings])):
        needs = f"{' '.join(objects)} {archives} {python}/python311.dll"
        ninja.add(f"wheel/{name}.cp311-win_amd64.pyd", "module", needs, shared="-shared")
    in_utf8 = ninja.add("utf8.o", "code_page", "$root/tools/build/windows_utf8.manifest")
    own = f"-O2 {_OURS} -isystem {packages}/mujoco/include -isystem include/agg2"
    server = [path for path in _listed(_SERVER) if "/testing/" not in path and not path.endswith("_test.cc")]
    needs = f"{in_utf8} {' '.join(ninja.objects(server, own, 'most'))} {archives} {packages}/mujoco/mujoco.dll"
    ninja.add("wheel/engine_server.exe", "module", needs)
    inspector = [path for path in _listed(_INSPECTOR) if not path.endswith("_test.cc")]
    needs = f"{in_utf8} {' '.join(ninja.objects(inspector, f'-O2 {_OURS}', 'most'))} {archives}"
    ninja.add("wheel/tandem-inspect.exe", "module", needs)
    ninja.write()


if __name__ == "__main__":
    main()
