"""`WorkerPool`: the supervisor and the workers of a vector environment, as the trainer process hears of them."""

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any

from tandem._native import NEXT_OF_ENVIRONMENTS
from tandem.engine.process import Log
from tandem.errors import PeerGone, how_it_ended
from tandem.workers.channel import Channel
from tandem.workers.worker_handle import WorkerHandle

NEWS_SECS = 5.0  # for the supervisor to start a worker again, or to say why it ends
_STACK_SECS = 5.0  # for a worker to write its stacks
_IMPORT_SECS = 600.0  # by which imports extend a time-out at most

_IMPORTS = '"<frozen importlib._bootstrap>"'  # in the stack of a process that imports

# Channels to supervisors and workers. When this process's end closes, a supervisor knows that the trainer is gone. A
# forked child must not keep it open.
_channels: "weakref.WeakSet[Channel]" = weakref.WeakSet()


def _close_channels_in_child() -> None:
    for channel in list(_channels):
        channel.close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_channels_in_child)


class Deadline:
    """The end of a wait for workers, whose imports extend it: `WorkerPool.extended`."""

    def __init__(self, secs: float, *, extends: bool = True) -> None:
        """Takes the time-out, and whether imports extend it."""
        self.secs, self.at, self.in_import = secs, time.monotonic() + secs, False
        self.last = self.at + (_IMPORT_SECS if extends else 0.0)  # no import extends it further

    def left(self) -> float:
        """Returns the seconds that are left."""
        return max(self.at - time.monotonic(), 0.0)


class WorkerPool:
    """The processes of workers, in their order, and of the supervisor, and what they have said.

    `imports` is the descriptor of `worker.Files.imports`. `log` is what the supervisor's interpreter writes before the
    supervisor works; `reason` why it ends, such as a worker that `ended`, and how; "": it has said nothing of its end.
    """

    def __init__(
        self, workers: Sequence[WorkerHandle], started: tuple["subprocess.Popen[bytes]", Channel, Log], imports: int
    ) -> None:
        """Takes workers without channels, which come as news; what `launched` has returned; and `imports`."""
        process, supervisor, log = started
        self.workers, self.process, self.supervisor, self.reason = workers, process, supervisor, ""
        self.log, self.imports = log, imports
        self.ended: int | None = None
        self._owner = os.getpid()
        _channels.add(supervisor)

    def message_workers(self, what: str) -> None:
        """Lets the supervisor order all workers to read the trainer's latest request, for the call `what`."""
        self.take_news(what)
        try:
            self.supervisor.send(("message",))
        except OSError:  # it has ended meanwhile
            self.take_news(what)  # has the reason
            raise self._gone(what, self.how_it_ended()) from None

    def take_news(self, what: str) -> None:
        """Takes what the supervisor has said, without waiting; PeerGone, for the call `what`: it has ended."""
        while self.supervisor.is_readable():
            try:
                message, fds = self.supervisor.receive()
            except (EOFError, ConnectionError):
                raise self._gone(what, self.how_it_ended()) from None
            self.note_news(message, fds)

    def note_news(self, message: Any, fds: list[int]) -> None:
        """Notes a message of the supervisor's; others than these two are the caller's."""
        if message[0] == "worker":
            _, index, before = message
            worker = self.workers[index]
            if worker.channel is not None:
                worker.channel.close()
            worker.channel, worker.last_end = Channel.of_fd(fds[0]), before
            _channels.add(worker.channel)
        elif message[0] == "ended":
            self.reason, self.ended = message[1:]

    def note(self, worker: WorkerHandle, message: Any, fds: list[int]) -> None:
        """Notes what a worker's process says of itself."""
        if message[0] == "hello":
            worker.pid, worker.answered = message[1:]
            worker.close()
            worker.stacks, worker.answers = fds
            with contextlib.suppress(OSError):  # it has ended
                worker.process = os.pidfd_open(worker.pid)
        elif message[0] == "made":
            worker.report = message[1]

    def await_replacement(self, what: str, worker: WorkerHandle) -> None:
        """Waits for the process that replaces a worker's process, which has ended; PeerGone: there is none."""
        channel, deadline = worker.channel, time.monotonic() + NEWS_SECS
        while worker.channel is channel:
            if self.reason or not wait([self.supervisor.fileno()], max(deadline - time.monotonic(), 0.0)):
                raise self._gone(what, self.reason or f"a worker ({worker}) ended")
            self.take_news(what)

    def _gone(self, what: str, found: str) -> PeerGone:
        error = PeerGone(f"{what}: expected processes that answer, found that {found}; {NEXT_OF_ENVIRONMENTS}")
        self._add_worker(error)
        return error

    def name_worker(self, error: PeerGone) -> None:
        """Sets the attributes of an error of the region: the worker whose end the supervisor has announced."""
        if self._owner == os.getpid():
            with contextlib.suppress(PeerGone):
                self.take_news("")
        self._add_worker(error)

    def _add_worker(self, error: PeerGone) -> None:
        if self.ended is not None:
            worker = self.workers[self.ended]
            error.worker, error.env_ids = self.ended, tuple(range(worker.first_env, worker.first_env + worker.num_envs))

    def replaced(self, what: str, worker: WorkerHandle) -> PeerGone:
        """Returns the error for a call that a worker has not answered since its process was replaced."""
        return PeerGone(
            f"{what}: expected an answer, found that {worker.last_end or 'its process ended'}; it was started again, "
            "with new environments, which are not called: call again"
        )

    def how_it_ended(self) -> str:
        """Returns how the supervisor ended, or the worker whose death was the reason."""
        if self.reason:
            return self.reason
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        code = self.process.returncode
        if code is None:
            return "the supervisor closed its channel"
        said = self.log.tail()
        return f"the supervisor {how_it_ended(code)}" + (f"; the end of what it wrote:\n{said}" if said else "")

    def stacks(self, workers: Sequence[int] | None = None) -> str:
        """Returns the Python stacks of workers, None: of all that have begun, for an error; "": there are none.

        A process that is stopped, or that the kernel holds in a system call, writes none.
        """
        if self._owner != os.getpid():
            return ""
        chosen = range(len(self.workers)) if workers is None else workers
        asked = [index for index in chosen if self.workers[index].ask_for_stack()]
        deadline = time.monotonic() + _STACK_SECS
        return "".join(
            f"\nworker {index} ({self.workers[index]}){self._import_of(index, stack)}: {stack}"
            for index in asked
            for stack in [self.workers[index].stack(deadline)]
        )

    def _import_of(self, index: int, stack: str) -> str:
        """Returns what a worker with this stack imports, for an error message."""
        if _IMPORTS not in stack:
            return ""
        file = re.search(r'File "([^"]+)", line \d+ in <module>', stack)
        secs = time.monotonic() - self._last_import(index)
        return f", importing {file[1] if file else 'a module'}, no other for {secs:.0f} s"

    def _last_import(self, index: int) -> float:
        """Returns the time at which a worker began its last import; 0: none."""
        return float(struct.unpack("d", os.pread(self.imports, 8, 8 * index))[0])

    def extended(self, deadline: Deadline, late: Sequence[int]) -> bool:
        """Extends a deadline that is over if the workers that are late import something; returns whether it has.

        The time-out starts again with each module that a worker begins to import, while it imports one, and once after.
        """
        now = time.monotonic()
        if now >= deadline.last:
            return False
        at = max(map(self._last_import, late)) + deadline.secs
        if at > deadline.at:
            deadline.in_import = True  # one has begun meanwhile, and may have lasted until now
        if at <= now:
            begun = all(self.workers[index].process >= 0 for index in late)  # else the supervisor imports
            before, deadline.in_import = deadline.in_import, not begun or _IMPORTS in self.stacks(late)
            at = now + deadline.secs if before or deadline.in_import else at
        deadline.at = max(deadline.at, min(at, deadline.last))
        return deadline.at > now

    def end(self, secs: float) -> None:
        """Ends all processes: lets the environments close for so many seconds, then kills them."""
        with contextlib.suppress(OSError):
            self.supervisor.send(("close", secs))
            self.process.send_signal(signal.SIGCONT)  # it may be stopped
        try:
            self.process.wait(secs + 2.0)
        except subprocess.TimeoutExpired:  # a debugger has stopped it
            self.process.kill()  # the kernel kills the workers with it
            self.process.wait()

    def release(self) -> None:
        """Closes all descriptors; the supervisor then ends. A second call has no effect."""
        self.supervisor.close()
        self.log.close()
        for worker in self.workers:
            if worker.channel is not None:
                worker.channel.close()
            worker.close()
