"""Programs that the benchmark talks to in lines: peers in a Python environment of their own, and C++ loops."""

import contextlib
import functools
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

_LEAVING_SECS = 10.0


@functools.cache
def peers_python() -> str:
    """Finds the Python that has the peers, and makes its environment where there is none yet.

    Returns:
      Its path: that in the variable TANDEM_PEERS_PYTHON, else what `tools/extra_env peers` prints.

    Raises:
      subprocess.SubprocessError: It could not be made; the tool's own message is on stderr.
    """
    named = os.environ.get("TANDEM_PEERS_PYTHON")
    if named:
        return named
    for folder in Path(__file__).resolve().parents:
        tool = folder / "tools" / "extra_env"
        if tool.exists():
            made = subprocess.run([str(tool), "peers"], stdout=subprocess.PIPE, check=True, text=True)
            return made.stdout.strip()
    raise FileNotFoundError(
        "expected tools/extra_env in a folder above this program, found none; set TANDEM_PEERS_PYTHON to a Python that "
        "has what tools/build/peers_requirements.in names"
    )


class Program:
    """A program that answers each line with one of JSON."""

    def __init__(self, command: Sequence[str], lines: IO[str], answers: IO[str]) -> None:
        """Takes its two ends; `talking_to` is what to call."""
        self._command, self._lines, self._answers = command, lines, answers

    def ask(self, line: str) -> dict[str, Any]:
        """Sends a line and waits for the answer.

        Raises:
          subprocess.SubprocessError: The program has ended; its own message is on stderr.
        """
        with contextlib.suppress(BrokenPipeError):
            self._lines.write(line + "\n")
            self._lines.flush()
        answer = self._answers.readline()
        if not answer:
            raise subprocess.SubprocessError(f"expected an answer to {line!r}, found that it ended: {self._command}")
        found: dict[str, Any] = json.loads(answer)
        return found


@contextlib.contextmanager
def talking_to(command: Sequence[str]) -> Iterator[Program]:
    """Runs a program, which ends as its standard input does; it has ended afterwards.

    Ctrl-C does not reach it, but for the end of its input, which it also gets if this process is killed.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield Program(command, process.stdin, process.stdout)
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_LEAVING_SECS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
