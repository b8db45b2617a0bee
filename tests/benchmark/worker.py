"""A process that measures one row: `python -m tests.benchmark.worker MODULE SUITE KEY`.

Each line of standard input is a request in JSON; the process prints one line as the answer:

    {"case": 0, "name": NAME, "seconds": 0.5, "stay": false}  ->  {"figures": {"p50 us": 0.12}}

The first request opens the row, and a request with "stay": false closes it. The process exits at the end of the input,
or when its parent exits.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.benchmark.rows import RowUnavailable, Suite, Turn

_PR_SET_PDEATHSIG = 1
_LEAVING_SECS = 10.0
_ANSWER_SECS = 300.0


class RowFailed(RuntimeError):
    """A row was not measured; the text has the reason."""


class Worker:
    """The parent's side: starts such a process and sends requests."""

    def __init__(self, command: Sequence[str], variables: dict[str, str]) -> None:
        """Starts the process. Ctrl-C does not reach it.

        Args:
          command: The interpreter and its options, up to the module's name.
          variables: The process's environment variables.
        """
        self._process = subprocess.Popen(
            [*command, f"--parent={os.getpid()}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
            start_new_session=True,
        )

    def measure(self, **request: Any) -> dict[str, float]:
        """Runs a turn.

        Args:
          **request: The fields of the module's docstring.

        Returns:
          The turn's figures.

        Raises:
          RowUnavailable: The machine does not support the row.
          RowFailed: The row was not measured.
        """
        lines, answers = self._process.stdin, self._process.stdout
        assert lines is not None and answers is not None
        with contextlib.suppress(BrokenPipeError):
            lines.write(json.dumps(request) + "\n")
            lines.flush()
        if not select.select([answers], [], [], _ANSWER_SECS + 100 * request["seconds"])[0]:
            raise RowFailed(f"expected an answer in {_ANSWER_SECS:.0f} s, found none")
        answer = json.loads(answers.readline() or '{"error": "expected an answer, found that its process ended"}')
        if "unavailable" in answer:
            raise RowUnavailable(answer["unavailable"])
        if "error" in answer:
            raise RowFailed(answer["error"])
        figures: dict[str, float] = answer["figures"]
        return figures

    def close(self) -> None:
        """Ends the process, also during a turn."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()  # type: ignore[union-attr]
        for number in (None, signal.SIGINT, signal.SIGKILL):
            if number is not None:
                self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING_SECS if number else 1.0)
                break
        self._process.stdout.close()  # type: ignore[union-attr]


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """Makes the kernel send this process a signal when its parent exits.

    Args:
      number: The signal; sent at once if the parent has already exited.
      parent: The parent's process id.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _answer(suite: Suite, key: str, request: dict[str, Any], opened: contextlib.ExitStack, turn: list[Turn]) -> Any:
    try:
        if not turn:
            (row,) = [row for row in suite.cases[request["case"]].rows if row.key == key]
            turn.append(opened.enter_context(row.open(request["name"])))
        gc.collect()
        gc.disable()
        answer: dict[str, Any] = {"figures": turn[0](request["seconds"])}
    except RowUnavailable as error:
        answer = {"unavailable": str(error)}
    except Exception as error:  # the caller reports it, and measures the other rows
        answer = {"error": str(error) or type(error).__name__}
    gc.enable()
    if "figures" not in answer or not request["stay"]:
        turn.clear()
        opened.close()
    return answer


def main(arguments: Sequence[str]) -> None:
    """Answers requests until the end of the input.

    Args:
      arguments: Module, suite, key, and `--parent=PID`.
    """
    module, name, key, parent = arguments
    end_with_parent(signal.SIGINT, int(parent.removeprefix("--parent=")))
    suite: Suite = importlib.import_module(module).SUITES[name]
    # Libraries may print to standard output, so answers have a separate descriptor.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    turn: list[Turn] = []
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as opened:
        for line in sys.stdin:
            print(json.dumps(_answer(suite, key, json.loads(line), opened, turn)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
