"""`Channel`: messages with file descriptors between a trainer process, its supervisor and its workers.

    trainer, worker = Channel.pair()
    trainer.send(("call", "render"))
    worker.receive(timeout=1.0)  # ("call", "render"), []

Messages are pickled. Each end trusts the other: one process has started the other, and no third one has an end.
"""

import contextlib
import errno
import pickle
import select
import socket
import struct
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any

from tandem.errors import SystemCallFailed

_HEAD = struct.Struct("<QB")  # bytes of the pickle, number of descriptors
_MOST_FDS = 16


class Channel:
    """One end of a stream socket. A call of another thread waits for none: each end belongs to one thread."""

    def __init__(self, end: socket.socket) -> None:
        """Takes over a connected socket."""
        self._socket = end

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Returns two connected ends. A new program does not inherit them."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    @classmethod
    def of_fd(cls, fd: int) -> "Channel":
        """Takes over a descriptor, such as one that `receive` returned."""
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        """Returns the descriptor, for `select` and for a child process."""
        return self._socket.fileno()

    def send(self, message: Any, fds: Sequence[int] = ()) -> None:
        """Sends a message, with copies of at most 16 descriptors. OSError: The other end is closed."""
        data = pickle.dumps(message, protocol=5)
        self._socket.settimeout(None)
        socket.send_fds(self._socket, [_HEAD.pack(len(data), len(fds))], list(fds))
        self._socket.sendall(data)

    def receive(self, timeout: float | None = None) -> tuple[Any, list[int]]:
        """Returns the next message and its descriptors, within `timeout` seconds, None: no limit.

        Raises:
          TimeoutError: No message came in time. If only its beginning came, the channel is of no use any more.
          EOFError: The other end is closed.
          SystemCallFailed: This process has too many open files for the descriptors.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        head, fds, _, _ = socket.recv_fds(self._until(deadline), _HEAD.size, _MOST_FDS)
        head += self._exactly(_HEAD.size - len(head), deadline)
        size, count = _HEAD.unpack(head)
        if len(fds) < count:
            import resource  # Windows imports this module, too

            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            raise SystemCallFailed(
                errno.EMFILE,
                f"recvmsg: expected {count} descriptors, found {len(fds)}: this process may have {limit} open files; "
                "raise `ulimit -n`, or use fewer workers",
            )
        return pickle.loads(self._exactly(size, deadline)), fds

    def has_room(self) -> bool:
        """Returns whether `send` of a short message would not block."""
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(0))

    def is_readable(self) -> bool:
        """Returns whether a message has come, or the other end is closed."""
        return bool(wait([self.fileno()], 0))

    def other_end_is_closed(self) -> bool:
        """Returns whether the other end is closed and all its messages were received."""
        self._socket.settimeout(0)
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Closes this end. A second call has no effect."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _until(self, deadline: float | None) -> socket.socket:
        # 0 would mean: do not wait, with another exception.
        self._socket.settimeout(None if deadline is None else max(deadline - time.monotonic(), 1e-6))
        return self._socket

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._until(deadline).recv(min(count - len(parts), 2**20))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)
