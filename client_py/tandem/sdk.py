"""`python -m tandem.sdk`: the compiler's flags for programs in C and C++ that use tandem.h."""

import argparse
import shlex
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "_sdk"
_LIBRARY = _FOLDER / "lib" / ("libtandem.dll.a" if sys.platform == "win32" else "libtandem.so.1")
_CMAKE = _FOLDER / "lib" / "cmake" / "Tandem"


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tandem.sdk",
        description="Prints where tandem.h, tandem.hpp and the library of this package are.",
        epilog="example: gcc -o engine engine.c $(python -m tandem.sdk --cflags --libs)",
        allow_abbrev=False,
    )
    parser.add_argument("--cflags", action="store_true", help="options for the compiler")
    parser.add_argument("--libs", action="store_true", help="options for the linker")
    parser.add_argument("--cmake", action="store_true", help="the folder of TandemConfig.cmake, for -DTandem_DIR=")
    parsed = parser.parse_args(words)
    if parsed.cmake == (parsed.cflags or parsed.libs):
        parser.error("expected --cflags, --libs or both, or --cmake alone")
    return parsed


def main(words: list[str] | None = None) -> int:
    """Prints the flags; returns the exit code: 1 if the package has no such files, as in a clone."""
    arguments = _arguments(words)
    wanted = _CMAKE if arguments.cmake else _LIBRARY
    if not wanted.exists():
        print(
            f"tandem: expected {wanted}, found none: only wheels have it"
            + ("; those for Windows have no CMake files\n" if arguments.cmake else "\n")
            + "Next: install the wheel, or in a clone: tools/bazel build //sdk",
            file=sys.stderr,
        )
        return 1
    if arguments.cmake:
        print(_CMAKE)
        return 0
    # shlex would quote backslashes.
    flags = [f"-I{(_FOLDER / 'include').as_posix()}"] if arguments.cflags else []
    if arguments.libs:
        # The linker finds the file by its name; libtandem.so, for -ltandem, is in the archive alone.
        flags.append(_LIBRARY.as_posix())
        if sys.platform != "win32":  # which looks for a DLL beside the program, and on PATH
            flags.append(f"-Wl,-rpath,{_LIBRARY.parent}")
    print(shlex.join(flags))
    return 0


if __name__ == "__main__":
    sys.exit(main())
