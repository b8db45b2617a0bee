"""`SharedValue`: the latest value of one process, for others that read it whenever they need it.

    value = SharedValue.new()  # the descriptor of its memory file goes to the other processes
    number = value.write({"x": 1})
    SharedValue(fd).read()  # in another process: number, {"x": 1}
    value.close()

A value is a record of the file: its number, its length, its pickle. The first word of the file is the place of the
latest record. Earlier records stay, so a reader that is late reads an old value, never a part of a new one.
"""

import mmap
import os
import pickle
import struct
from typing import Any

import cloudpickle

from tandem.handles import ClosesOnExit

_RECORD = struct.Struct("<QQ")
_FULL_BYTES = 2**26  # then the records begin again at the start


def new_memory_file(name: str, count: int) -> int:
    """Makes a memory file of so many bytes and returns its descriptor; `name` is for people who look into /proc."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        os.truncate(fd, count)
    except BaseException:
        os.close(fd)
        raise
    return fd


class SharedValue(ClosesOnExit):
    """One writer, any number of readers, which trust the writer: they unpickle what it writes."""

    def __init__(self, fd: int) -> None:
        """Takes over the descriptor of a value's memory file."""
        self.fd = fd
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)
        self._place = memoryview(self._memory).cast("Q")  # its first word
        self._end = mmap.PAGESIZE
        self._number = 0

    @classmethod
    def new(cls, name: str) -> "SharedValue":
        """Makes a memory file, as `new_memory_file`."""
        return cls(new_memory_file(name, mmap.PAGESIZE))

    def write(self, value: Any) -> int:
        """Pickles a value and returns its number, from 1 on. If pickling raises, the earlier value stays."""
        data = cloudpickle.dumps(value, protocol=5)
        if self._end > _FULL_BYTES:
            self._end = mmap.PAGESIZE
        self._number += 1
        os.pwrite(self.fd, _RECORD.pack(self._number, len(data)) + data, self._end)
        self._place[0] = self._end
        self._end += (_RECORD.size + len(data) + 7) // 8 * 8
        return self._number

    def read(self) -> tuple[int, Any]:
        """Returns number and value; 0 and None before the first."""
        number, place, length = self._latest()
        return number, pickle.loads(os.pread(self.fd, length, place)) if number else None

    def number(self) -> int:
        """Returns the number of the latest value."""
        return self._latest()[0]

    def _latest(self) -> tuple[int, int, int]:
        """Returns the number, and the place and length of the pickle."""
        place = self._place[0]
        number, length = _RECORD.unpack(os.pread(self.fd, _RECORD.size, place)) if place else (0, 0)
        return number, place + _RECORD.size, length

    def close(self) -> None:
        """Closes the file and its mapping, of this process. A second call has no effect."""
        if not self._memory.closed:
            self._place.release()
            self._memory.close()
            os.close(self.fd)
