"""Writes unbroken lines to a descriptor that other threads and processes write to as well."""

import fcntl
import io
import os
import stat
import sys
import threading
from typing import IO, Any

from tandem.arguments import shown
from tandem.errors import InvalidArgument, SystemCallFailed


class LineOutput:
    """Writes each line by one write, at the start of a line of the output. Safe to use from any thread.

    Other threads, libraries and child processes may leave half a line at the end of the output; Python's own print
    writes a text and its newline one after the other. So a newline is written first if another writer may have written
    since the last line: the file has grown, now or earlier, or this program has other threads. (One case is left: a
    child process's first output between the check of the size and the write.) A pipe or a terminal has no size: there a
    newline is written first if the program has other threads.

    Standard output is made line-buffered, which keeps the program's own prints unbroken and in order.
    """

    def __init__(self, stream: IO[Any] | None) -> None:
        """Takes an open file's descriptor, or else its `write`; None: sys.stdout. InvalidArgument: not writable."""
        self._name = "stream" if stream is not None else "stream, which is sys.stdout"
        self._stream: IO[Any] = sys.stdout if stream is None else stream
        if not callable(getattr(self._stream, "write", None)):
            raise self._wrong()
        self._check_open()
        try:
            self._descriptor: int | None = self._stream.fileno()
        except (AttributeError, OSError):  # an io.StringIO, or what a notebook prints to
            self._descriptor = None
        if self._descriptor is None:
            if isinstance(self._stream, io.RawIOBase | io.BufferedIOBase):
                raise self._wrong(", which takes no text")
        elif not _takes_writes(self._descriptor):
            raise self._wrong(f", whose descriptor {self._descriptor} is closed or for reading only")
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(line_buffering=True)
        self._lock = threading.Lock()
        self._end = 0  # of the file, after our last line
        self._shared = False  # whether others were seen writing to it

    def write(self, line: bytes) -> None:
        """Writes a line, which ends with a newline; the system has it when this returns.

        InvalidArgument: The stream was closed. SystemCallFailed: The system refused, as when a disk is full; a part of
        the line may be written.
        """
        with self._lock:
            self._check_open()  # otherwise the descriptor may belong to another file by now
            if self._descriptor is None:
                self._stream.write(line.decode())
                self._stream.flush()
                return
            try:
                self._write(self._descriptor, line)
            except OSError as error:
                raise SystemCallFailed(
                    f"write of an event of {len(line)} bytes to descriptor {self._descriptor}: {error.strerror}"
                ) from error

    def _check_open(self) -> None:
        try:
            closed = getattr(self._stream, "closed", False)
        except ValueError:  # its buffer was detached
            closed = True
        if closed:
            raise self._wrong(", which is closed; nothing was printed")

    def _wrong(self, what: str = "") -> InvalidArgument:
        return InvalidArgument(f"{self._name}: expected a file open for writing, found {shown(self._stream)}{what}")

    def _write(self, descriptor: int, line: bytes) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            self._shared |= status.st_size != self._end
        if self._shared or threading.active_count() > 1:
            line = b"\n" + line
        self._end = status.st_size + len(line)
        written = os.write(descriptor, line)
        while written < len(line):
            written += os.write(descriptor, line[written:])


def _takes_writes(descriptor: int) -> bool:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:  # it is closed
        return False
