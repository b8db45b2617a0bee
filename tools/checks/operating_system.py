"""Checks that only the folders of base/os know the operating system, by conditions or its headers.

Of sources in C and C++. What differs by system stands behind the headers of base/os, with a folder of sources for each
system (docs/decisions/0081-one-layer-for-the-operating-system.md). A header `<name.h>` counts as the
system's unless the C standard, the compiler or a library of ours has it. Tests are free: they kill, stop and fork. So
are the exceptions below, each with its reason. Not found: names that a permitted header also has, such as nanosleep,
and paths in /proc.
"""

import argparse
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.checks.source_files import NO_COMPONENTS, source_files

EXCEPTIONS = {
    "base/os/end_with_parent.h": "programs for Linux, and tests, begin with it",
    "base/os/linux/": "the layer's sources",
    "base/os/macos/": "the same",
    "base/os/posix/": "the same, of Linux and macOS",
    "base/os/windows/": "the same",
    "engine_adapter/conformance/": "tests of an engine's server, which they stop and kill",
    "engine_adapter/mujoco/render/egl_context.cc": "EGL, from a library loaded when it is needed",
    "gateway/": "a program for LuckyEngine on Linux",
    "program/": "sockets and files of the programs for Linux",
    "sdk/codec_stderr.cc": "a variable of the C library that Debian's libpng and libjpeg address",
    "sdk/godot/": "the add-on for Godot: a stack for its fiber",
    "slow_lane/": "the daemon: process groups, epoll, signalfd",
    "transport/gpu/": "memory of a GPU crosses processes as descriptors",
    "viz/": "observers, whose sockets and child programs are those of Linux",
}

_PERMITTED = frozenset(
    f"{name}.h"
    for name in "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp stdalign stdarg "
    "stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype emmintrin "
    "immintrin x86intrin arm_neon cart_scene cxxabi jpeglib png zlib tandem".split()
)
_SYSTEM_FOLDER = re.compile(
    r"(?:arpa|asm|bits|dispatch|libkern|linux|mach(?:-o)?|net|netinet|os|security|sys)/", re.IGNORECASE
)
_INCLUDE = re.compile(r'^\s*#\s*(?:include|.*__has_include\s*\()\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_CONDITION = re.compile(
    r"^\s*#\s*(?:el)?if.*?\b(__\w*(?:linux|unix|GLIBC|CYGWIN|MINGW|BSD|APPLE|MACH|ANDROID)\w*|linux|unix|_*WIN(?:32|64)\w*|_MSC_\w+|ABSL_HAVE_\w+|MADV_\w+|TARGET_OS_\w+|_POSIX\w*)\b",
    re.MULTILINE | re.IGNORECASE,
)
_TESTS = re.compile(r"^tests/|/testing/|_(?:test|fuzz|benchmark)\.\w+$")


def _is_of_the_system(header: str) -> bool:
    header = posixpath.normpath(header)
    if _SYSTEM_FOLDER.match(header) or re.match("base/os/.*/", header) or header in ("csignal", *EXCEPTIONS):
        return True
    return "/" not in header and header.endswith(".h") and not (header in _PERMITTED or header.startswith("agg_"))


def exception_of(path: str) -> str:
    """Returns the row of EXCEPTIONS for a source; "" if it has none."""
    return next(filter(path.startswith, EXCEPTIONS), "")


def find_problems(path: str, text: str) -> Iterator[str]:
    """Yields a sentence for each place of a source that knows the operating system, unless it is a test.

    Args:
        path: Of the source, from the top of the tree.
        text: Of the source.
    """
    if _TESTS.search(path):
        return
    code = re.sub(r"(?m)/\*(?:.|\n)*?\*/|//(?![^<\n]*>).*", "", re.sub(r"\\\r?\n", " ", text))
    for found in _INCLUDE.finditer(code):
        if _is_of_the_system(found[1]):
            yield f"{path}: expected a header of base/os, found the operating system's {found[1]}"
    for found in _CONDITION.finditer(code):
        yield f"{path}: expected no condition on the operating system, found one on {found[1]}"


def main() -> int:
    """Checks the tree, prints the problems, and returns the exit code: 0 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("."), help="top of the source tree")
    root = parser.parse_args().root
    files = source_files(root, (".h", ".hh", ".hpp", ".inc", ".c", ".cc", ".cpp", ".cxx"), NO_COMPONENTS)
    found = {str(path): list(find_problems(str(path), (root / path).read_text("utf-8"))) for path in files}
    problems = [problem for path in found if not exception_of(path) for problem in found[path]]
    needed = {exception_of(path) for path in found if found[path]}
    for name in sorted(EXCEPTIONS.keys() - needed):
        problems.append(f"{name}: expected a source that needs this exception, found none")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
