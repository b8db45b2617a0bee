"""What ThreadSanitizer said of the daemon's own code, among all that it said.

gRPC, protobuf and abseil are the system's, compiled without ThreadSanitizer, which so does not see how they order what
they hand from thread to thread. ThreadSanitizer's own suppressions drop a report if any of its frames fits, and most of
the daemon's frames stand on gRPC's. Here a report is dropped if the memory was touched by such a library itself, on
either side: if the innermost frame that is none of the sanitizer's or of std is not in a source file of Tandem's.
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
