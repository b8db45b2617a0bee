"""`WorkerHandle`: a worker's process, as the trainer process sees it."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass

from tandem.workers.channel import Channel
from tandem.workers.worker import STACK_SIGNAL, Report

_PART_BYTES = 2**30  # of one read, which the kernel limits to 2 GiB


@dataclass
class WorkerHandle:
    """What the trainer knows of a worker, its channel and its process; `pid` is 0 before its first message.

    `stacks` and `answers` are the files that get these; its process answers requests after `answered`. `last_end`:
    which process had its place before, and how that ended; "": none.
    """

    first_env: int
    num_envs: int
    channel: Channel | None = None
    pid: int = 0
    process: int = -1
    stacks: int = -1
    answers: int = -1
    answered: int = 0
    report: Report | None = None
    last_end: str = ""

    def stack(self, deadline: float) -> str:
        """Awaits the Python stacks that its process was asked to write, and returns them; or why there are none."""
        size = -1
        while True:
            before, size = size, os.fstat(self.stacks).st_size
            if size > 0 and size == before:
                return os.pread(self.stacks, size, 0).decode(errors="replace").rstrip()
            late = time.monotonic() > deadline or _state_of(self.pid)[:1] in "Tt"
            if late and before == size:
                return f"no stack in time; its state is {_state_of(self.pid)!r}"
            time.sleep(0.005)

    def ask_for_stack(self) -> bool:
        """Asks its process to write its stacks; False: there is no process."""
        if self.process < 0:
            return False
        os.truncate(self.stacks, 0)
        os.lseek(self.stacks, 0, os.SEEK_SET)
        try:
            signal.pidfd_send_signal(self.process, STACK_SIGNAL)
        except OSError:  # it has ended
            return False
        return True

    def read_answer(self, count: int) -> bytes:
        """Returns its last answer, of so many bytes."""
        parts = bytearray()
        while len(parts) < count:
            parts += os.pread(self.answers, min(count - len(parts), _PART_BYTES), len(parts))
        return bytes(parts)

    def close(self) -> None:
        """Closes the descriptors of its process. A second call has no effect."""
        for fd in (self.process, self.stacks, self.answers):
            if fd >= 0:
                os.close(fd)
        self.process = self.stacks = self.answers = -1

    def __str__(self) -> str:
        """Returns "pid 4711, environments 4 to 7", for error messages."""
        last = self.first_env + self.num_envs - 1
        envs = f"environment {last}" if self.num_envs == 1 else f"environments {self.first_env} to {last}"
        return f"pid {self.pid}, {envs}"


def _state_of(pid: int) -> str:
    """Returns a process's state as the kernel names it, such as "T (stopped)"."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("State:"):
                    return line.partition(":")[2].strip()
    return "ended"
