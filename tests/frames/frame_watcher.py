"""A reader of a region's frames in plain Python, written from the documented layouts only."""

import fcntl
import json
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tests.interop.foreign_fast_lane import HEADER, SLOT

# schema/goldens/lrbc_v1.txt, flan_v1.txt
_FLAN_OFFSET = 720
_HEAD = 40  # offset in the ring
_READERS_LOCK_BYTE = 48  # offset in the ring
_WATCHDOG_SECS = 150  # the render thread takes only what other processes leave
_F_OFD_SETLK = 37  # Linux's number; Python's fcntl module has no name for it


@dataclass(frozen=True)
class Frame:
    """A frame with its metadata and metrics."""

    number: int
    pixels: NDArray[np.uint8]
    metadata: dict[str, Any]
    last_reward: float
    rolling_return: float
    step_rate_hz: float


class FrameWatcher:
    """Reads the frames of a region while it is open."""

    def __init__(self, name: str, *, is_reader: bool = True) -> None:
        """Maps the region.

        Args:
          name: The region's name.
          is_reader: Whether to take the readers' lock, by which the engine detects a reader.
        """
        self._file = os.open(Path("/dev/shm", name), os.O_RDONLY | os.O_CLOEXEC)
        self._map = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
        (self._at,) = struct.unpack_from("<Q", self._map, _FLAN_OFFSET)
        if is_reader:
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, self._at + _READERS_LOCK_BYTE, 1, 0)
            fcntl.fcntl(self._file, _F_OFD_SETLK, lock)

    @property
    def head(self) -> int:
        """The number of frames published so far. A slice is copied in one piece; struct would read byte by byte."""
        at = self._at + _HEAD
        return int.from_bytes(self._map[at : at + 8], "little")

    @property
    def invalidated(self) -> bool:
        """Whether the writer has invalidated the ring."""
        return bool(HEADER.unpack_from(self._map, self._at)[2] & 1)

    def latest(self) -> Frame | None:
        """Returns the newest frame; None if there is none, or if it may be overwritten (with one slot, always)."""
        head = self.head
        magic, version, _, capacity, slot_size, _, width, height, channels, _, _, _, *metrics = HEADER.unpack_from(
            self._map, self._at
        )
        assert (magic, version) == (b"FLAN", 1)
        if head == 0:
            return None
        slot = self._at + HEADER.size + (head - 1) % capacity * slot_size
        seq, frame_len, metadata_len = SLOT.unpack_from(self._map, slot)
        assert frame_len == width * height * channels
        at = slot + SLOT.size
        frame = self._map[at : at + frame_len]
        metadata = self._map[at + frame_len : at + frame_len + metadata_len]
        seq_again, _, _ = SLOT.unpack_from(self._map, slot)
        if seq != 2 * head + 2 or seq_again != seq or self.head > head + capacity - 2:
            return None
        pixels = np.frombuffer(frame, np.uint8).reshape(height, width, channels)
        return Frame(head, pixels, json.loads(metadata), *metrics)

    def wait(self, after: int = 0) -> Frame:
        """Waits for a frame with a number above `after`, and returns it."""
        deadline = time.monotonic() + _WATCHDOG_SECS
        while (frame := self.latest()) is None or frame.number <= after:
            assert time.monotonic() < deadline, "no frame came"
            time.sleep(0.001)
        return frame

    def close(self) -> None:
        """Unmaps the region and releases the lock."""
        self._map.close()
        os.close(self._file)

    def __enter__(self) -> Self:
        """Returns the watcher."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Closes the watcher."""
        self.close()
