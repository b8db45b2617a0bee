"""Programs that answer in JSON: once, or a line for each that they are asked."""

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

_LEAVING_SECS = 10.0
_ANSWER_SECS = 120.0  # making many environments takes ten on an idle machine


class Program:
    """A program that answers each line with one of JSON."""

    def __init__(self, command: Sequence[str], lines: IO[str], answers: IO[str]) -> None:
        """Takes its two ends; `talking_to` is what to call."""
        self._command, self._lines, self._answers = command, lines, answers

    def ask(self, line: str, *, timeout_secs: float = _ANSWER_SECS) -> dict[str, Any]:
        """Sends a line and waits for the answer.

        Args:
          line: What to send.
          timeout_secs: How long to wait at most.

        Returns:
          The answer.

        Raises:
          subprocess.SubprocessError: The program has ended, its own message is on stderr; or it did not answer in time.
        """
        with contextlib.suppress(BrokenPipeError):
            self._lines.write(line + "\n")
            self._lines.flush()
        # Nothing of an earlier answer is buffered here: each question has one, which is written at once.
        if not select.select([self._answers], [], [], timeout_secs)[0]:
            raise subprocess.SubprocessError(
                f"expected an answer to {line!r} within {timeout_secs:g} s, found none: {self._command}"
            )
        answer = self._answers.readline()
        if not answer:
            raise subprocess.SubprocessError(f"expected an answer to {line!r}, found that it ended: {self._command}")
        found: dict[str, Any] = json.loads(answer)
        return found


def timeout_of(seconds: float) -> float:
    """Returns how long to wait at most for an answer that takes so many seconds on an idle machine."""
    return _ANSWER_SECS + 10 * seconds


def answer_of(
    command: Sequence[str],
    *,
    timeout_secs: float = _ANSWER_SECS,
    variables: Mapping[str, str] | None = None,
    shows_warnings: bool = True,
) -> Any:
    """Runs a program that prints JSON and ends.

    Args:
      command: The program and its arguments.
      timeout_secs: How long to wait at most; then it is killed.
      variables: Its environment variables; None: those of this process.
      shows_warnings: Whether what it writes to stderr is shown although it does not fail.

    Returns:
      What it printed.

    Raises:
      subprocess.SubprocessError: It failed, its own message is on stderr; or it did not end in time.
    """
    errors = None if shows_warnings else subprocess.PIPE
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables, timeout=timeout_secs
    )
    if ended.returncode != 0:
        print(ended.stderr or "", file=sys.stderr, end="")
    ended.check_returncode()
    return json.loads(ended.stdout)


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
