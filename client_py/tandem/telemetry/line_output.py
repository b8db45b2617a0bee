"""Whole lines to a descriptor that others write to as well."""

import os
import stat
import sys
import threading
from io import TextIOWrapper
from typing import IO, Any

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
        self._stream: IO[Any] = sys.stdout if stream is None else stream
        if not callable(getattr(self._stream, "write", None)):
            raise InvalidArgument(f"stream: expected an open file, found {self._stream!r}")
        if isinstance(self._stream, TextIOWrapper):
            self._stream.reconfigure(line_buffering=True)
        try:
            self._descriptor: int | None = self._stream.fileno()
        except (AttributeError, OSError):  # an io.StringIO, or what a notebook prints to
            self._descriptor = None
        self._lock = threading.Lock()
        self._end = 0  # of the file, after our last line
        self._shared = False  # whether others were seen writing to it

    def write(self, line: bytes) -> None:
        """Writes a line, which is with the system when this returns.

        Args:
          line: With its newline.

        Raises:
          SystemCallFailed: The system refused, as when a disk is full; a part of the line may be there.
        """
        with self._lock:
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
