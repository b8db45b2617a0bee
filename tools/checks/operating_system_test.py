"""Tests of the module operating_system."""

import pytest

from tools.checks.operating_system import exception_of, find_problems


@pytest.mark.parametrize(
    "line",
    [
        "#include <unistd.h>",
        '#include "fcntl.h"',
        "#include <sys/mman.h>",
        "  # include <Windows.h>",
        '#include "base/os/posix/region_paths.h"',
        '#include "base/os/windows/native.h"',
        "#include <mach-o/dyld.h>",
        "#include <csignal>",
        "#include <sys//mman.h>",
        '#include "base/os/end_with_parent.h"',
        "#if __has_include(<poll.h>)",
        "#ifdef __linux__",
        "#if defined(TANDEM) && \\\n    !defined(_WIN32)",
        "#elif defined(__APPLE__)",
        "#if TARGET_OS_MAC",
        "#ifdef _WIN32_WINNT",
        "/* a\n */ #include <poll.h>",
        "#ifdef _POSIX_TIMERS",
    ],
)
def test_only_the_layer_and_the_exceptions_know_the_system(line: str) -> None:
    """Each line is one problem; tests are free, and so are the exceptions."""
    text = f"#include <vector>\n{line}\n"
    (problem,) = find_problems("transport/ring/ring.cc", text)
    assert problem.startswith("transport/ring/ring.cc: expected")
    for free in ("transport/ring/ring_test.cc", "tests/faults/a.cc"):
        assert not list(find_problems(free, text))
    assert exception_of("slow_lane/runs/run_id.cc") == "slow_lane/"
    assert not exception_of("transport/ring/ring.cc")


def test_the_processor_and_the_standard_library_are_no_system() -> None:
    """Neither they nor comments are problems."""
    text = '#include <cerrno>\n#include <time.h>\n#include "base/os/machine.h"\n// #include <unistd.h>\n'
    text += "#if defined(__x86_64__)  // not on linux\n#endif\n"
    assert not list(find_problems("transport/ring/ring.cc", text))
