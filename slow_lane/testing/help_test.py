"""slow_lane/docs/slow_lane.md lists the daemon's flags as the daemon prints them."""

import subprocess
from pathlib import Path


def test_the_page_has_the_flags_of_help() -> None:
    """After a change of a flag, the page gets the new output of `tandem-daemon --help`."""
    shown = subprocess.run(
        ["slow_lane/daemon/tandem-daemon", "--help"], capture_output=True, text=True, check=True
    ).stdout
    flags = shown[shown.index("Flags:\n") :]
    assert f"```text\n{flags}```" in Path("slow_lane/docs/slow_lane.md").read_text(encoding="utf-8"), flags
