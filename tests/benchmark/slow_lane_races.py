"""ThreadSanitizer's reports on the daemon's own code.

gRPC, protobuf and Abseil are system libraries, compiled without ThreadSanitizer, which does not see their
synchronisation. ThreadSanitizer's suppressions drop a report if any frame matches, and gRPC calls most of the daemon's
code. This module drops a report if such a library itself made one of the two accesses: if the innermost frame outside
the sanitizer and std is not in a source file of Tandem.
"""

import re
from pathlib import Path

_REPORT = re.compile(r"^WARNING: ThreadSanitizer: (.*?)^={18}$", re.MULTILINE | re.DOTALL)
_ACCESS = re.compile(
    r"^  (?:Previous )?(?:[Aa]tomic )?(?:[Rr]ead|[Ww]rite) of size .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL
)
_FRAME = re.compile(r"^    #(\d+) (.*)$", re.MULTILINE)
_OWN = re.compile(r" (?:\S*/)?(?:slow_lane|transport)/[\w/]+\.(?:cc|h):\d+")
_NO_SOURCE, _STD, _OTHERS = "<null>", "/include/c++/", "/external/"


def races_of(text: str) -> list[str]:
    """Selects the reports that count.

    Args:
      text: ThreadSanitizer's output.

    Returns:
      Data races in which Tandem's own code made both accesses, and all reports of other kinds.
    """
    return [report for report in _REPORT.findall(text) if _counts(report)]


def races_in(folder: Path) -> list[str]:
    """Selects the reports that count from all files of a folder.

    Args:
      folder: The folder with the files of TSAN_OPTIONS' log_path.

    Returns:
      The reports, as in `races_of`.
    """
    return [race for log in sorted(folder.iterdir()) for race in races_of(log.read_text("utf-8", errors="replace"))]


def _counts(report: str) -> bool:
    if not report.startswith("data race"):
        return True
    accesses = _ACCESS.findall(report)
    return not accesses or all(_is_own(access) for access in accesses)


def _is_own(access: str) -> bool:
    for number, frame in _FRAME.findall(access):
        if _STD in frame or (number == "0" and _NO_SOURCE in frame):  # such as free and memcpy
            continue
        return _OTHERS not in frame and _OWN.search(frame) is not None
    return True  # the report has no stack
