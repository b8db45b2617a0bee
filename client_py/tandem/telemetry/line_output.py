"""Whole lines to a descriptor that others write to as well."""

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
    """Writes each line by one write, so that it begins and ends a line of the output.

    Other threads, libraries and child processes may print to the same output, and leave half a line at its end;
    Python's own print writes a text and its newline one after the other. So a newline goes before ours where anyone
    else may have written since the last: the file has grown, it did so before, or this program has other threads. (What
    is left is a child process's very first words, between our look at the size and our write.) Where the output is a
    pipe or a terminal, which has no size, a newline goes before it when there are other threads.

    Standard output is set to be written line by line, which keeps what Python prints whole and in its place.

    Safe to use from any thread.
    """

    def __init__(self, stream: IO[Any] | None) -> None:
        """Takes a stream.

        Args:
          stream: What to write to: the descriptor beneath it, or its `write` where there is none. None: sys.stdout.

        Raises:
          InvalidArgument: Nothing that can be written to.
        """
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
        """Writes a line, which is with the system when this returns.

        Args:
          line: With its newline.

        Raises:
          InvalidArgument: The stream was closed.
          SystemCallFailed: The system refused, as when a disk is full; a part of the line may be there.
        """
        with self._lock:
            self._check_open()  # else the descriptor may be another file's by now
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
        except ValueError:  # what was beneath it was detached
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
