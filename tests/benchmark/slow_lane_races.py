"""ThreadSanitizer's reports on the daemon's own code.

gRPC, protobuf and Abseil are system libraries, compiled without ThreadSanitizer, which does not see how they
synchronise. Its own suppressions drop a report if any frame fits, and gRPC calls most of the daemon's code. This module
drops a report if such a library itself accessed the memory, on either side: if the innermost frame that is not of the
sanitizer or std is not in a source file of Tandem.
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
    """Picks the reports that count.

    Args:
      text: What ThreadSanitizer wrote.

    Returns:
      Data races on memory that Tandem's own code touched on both sides; and all reports of other kinds.
    """
    return [report for report in _REPORT.findall(text) if _counts(report)]


def races_in(folder: Path) -> list[str]:
    """Picks them from all files of a folder.

    Args:
      folder: With the files of TSAN_OPTIONS' log_path.

    Returns:
      As `races_of`.
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
    return True  # its stack is lost
