"""`ResetOptions`: the options of a reset, from the trainer to its workers.

    options = ResetOptions(info_file, offset)
    options.write({"x": 1})  # in the trainer, before it sends the reset
    options.read()  # in a worker, in that exchange: {"x": 1}

They lie behind the info areas, in the same file: a page with the length of the pickle, then the pickle. The exchange
publishes them, as all that the trainer writes.
"""

import mmap
import os
import pickle
from typing import Any

import cloudpickle
import numpy as np


class ResetOptions:
    """The place of the options in a file. Workers trust the trainer, which is the only one to write."""

    def __init__(self, file: int, offset: int) -> None:
        """Takes the file, and a multiple of the page size, where the file has a page."""
        self._file, self._data_offset = file, offset + mmap.PAGESIZE
        self._length = np.frombuffer(mmap.mmap(file, mmap.PAGESIZE, offset=offset), np.uint64, 1)

    def write(self, options: Any) -> None:
        """Sets the options of the following resets; None: none."""
        if options is None:
            self._length[0] = 0
            return
        data = cloudpickle.dumps(options)
        os.pwrite(self._file, data, self._data_offset)
        self._length[0] = len(data)

    def read(self) -> Any:
        """Returns a new object, or None."""
        length = int(self._length[0])
        return pickle.loads(os.pread(self._file, length, self._data_offset)) if length else None
