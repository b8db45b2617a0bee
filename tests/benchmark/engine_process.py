"""The engine's process of a client in Python: round_trip in C++, or a fork in Python. It ends when its client does."""

import contextlib
import ctypes
import multiprocessing
import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.benchmark.measurement import ROUND_TRIP, Size

_PR_SET_PDEATHSIG = 1
_ASK_AGAIN_SECS = 0.01
_ANSWER_SECS = 10.0


@dataclass(frozen=True)
class Engine:
    """The other process of a row.

    Attributes:
      pid: Its process id.
      cpu_answers: A pipe into which it writes its CPU time, nanoseconds as an int64, when SIGUSR1 asks for it.
    """

    pid: int
    cpu_answers: int

    def cpu_nanos(self) -> int:
        """Asks for its CPU time.

        Raises:
          RuntimeError: It has ended, or does not answer.
        """
        self._drop_answers()
        until = time.monotonic() + _ANSWER_SECS
        os.kill(self.pid, signal.SIGUSR1)
        # An engine in Python that was about to sleep in a library's call hears it when that call is interrupted.
        while not self._has_answer(_ASK_AGAIN_SECS):
            if time.monotonic() > until:
                raise RuntimeError(
                    f"expected the engine (pid {self.pid}) to tell its CPU time within {_ANSWER_SECS:.0f} s, found no "
                    "answer. Next: see whether it is stopped."
                )
            os.kill(self.pid, signal.SIGUSR1)
        answer = os.read(self.cpu_answers, 8)
        if len(answer) != 8:
            raise RuntimeError(
                f"expected 8 bytes of CPU time from the engine (pid {self.pid}), found {len(answer)}: it has ended. "
                "Next: see what it said above."
            )
        nanos: int = struct.unpack("=q", answer)[0]
        return nanos

    def _has_answer(self, secs: float) -> bool:
        return bool(select.select([self.cpu_answers], [], [], secs)[0])

    def _drop_answers(self) -> None:
        """Those to a question that was asked twice."""
        while self._has_answer(0) and os.read(self.cpu_answers, 8):
            pass


@contextlib.contextmanager
def serving(row: str, size: Size, *more: str, pass_fds: tuple[int, ...] = ()) -> Iterator[Engine]:
    """Runs the engine's side of a row in a process of its own; it has ended afterwards.

    Args:
      row: round_trip's --row.
      size: The payload.
      *more: More of round_trip's command line.
      pass_fds: File descriptors that it inherits.

    Yields:
      The process.
    """
    answers, answer = os.pipe()
    command = [str(ROUND_TRIP), "--serve", f"--row={row}", *size.flags(), f"--cpu_fd={answer}", *more]
    try:
        engine = subprocess.Popen(command, pass_fds=(answer, *pass_fds))
    finally:
        os.close(answer)
    try:
        yield Engine(engine.pid, answers)
    finally:
        engine.terminate()
        engine.wait()
        os.close(answers)


@contextlib.contextmanager
def forked(serve: Callable[[], None]) -> Iterator[Engine]:
    """Runs an engine in Python in a fork of this process; it is killed afterwards.

    Args:
      serve: What it does there.

    Yields:
      The process.
    """
    answers, answer = os.pipe()
    client = os.getpid()

    def run() -> None:
        end_with_parent(signal.SIGKILL, client)
        signal.signal(signal.SIGUSR1, lambda *_: os.write(answer, struct.pack("=q", time.process_time_ns())))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, question)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            serve()

    engine = multiprocessing.get_context("fork").Process(target=run, daemon=True)
    question = {signal.SIGUSR1}  # it would end an engine that has no handler for it yet
    before = signal.pthread_sigmask(signal.SIG_BLOCK, question)
    engine.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(answer)
    try:
        assert engine.pid is not None
        yield Engine(engine.pid, answers)
    finally:
        engine.kill()
        engine.join()
        os.close(answers)


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """Lets this process get that signal when the process that started it ends, however that ends.

    Args:
      number: The signal; it comes at once if that process has ended already.
      parent: That process's id, as it knew it itself.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def cpu_nanos_of(pids: Sequence[int]) -> int:
    """Sums the CPU time of processes, up to this very moment.

    Args:
      pids: Running processes of this user.

    Returns:
      Nanoseconds.
    """
    # clock_getcpuclockid(3), as the kernel numbers a process's clock.
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids)
