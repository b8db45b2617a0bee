"""Python in a child process, for code that may fail, crash or hang."""

import signal
import subprocess
import sys
from dataclasses import dataclass

_SECS = 60.0


@dataclass(frozen=True)
class Outcome:
    """A child's standard output, stripped, and why it failed; empty if it did not."""

    output: str
    trouble: str


def run_python(*arguments: str) -> Outcome:
    """Runs this Python with arguments such as "-c", "import numpy"; never raises, and waits a minute at most."""
    try:
        child = subprocess.run(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_SECS,
        )
    except subprocess.TimeoutExpired:
        return Outcome("", f"did not end within {_SECS:g} s")
    except (OSError, ValueError) as error:
        return Outcome("", f"{sys.executable or 'Python'} cannot be started: {error}")
    if child.returncode == 0:
        return Outcome(child.stdout.strip(), "")
    if child.returncode < 0:
        try:
            name = signal.Signals(-child.returncode).name
        except ValueError:
            name = f"signal {-child.returncode}"
        return Outcome("", f"crashed by {name}")
    return Outcome("", _exception(child.stderr) or f"ended with exit code {child.returncode}")


def _exception(stderr: str) -> str:
    """Returns the exception's text, of one or more lines, from the end of a traceback."""
    lines = stderr.rstrip().splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    text = lines[frames[-1] + 1 :] if frames else lines[-1:]
    while len(text) > 1 and text[0].startswith("    "):  # the line of source, and its markers
        del text[0]
    return "\n".join(text)
