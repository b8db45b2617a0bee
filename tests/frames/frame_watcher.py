"""A viewer in plain Python, which reads a region's frames by the documents alone."""

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
_HEAD = 40  # of the ring
_READERS_LOCK_BYTE = 48  # of the ring
_WATCHDOG_SECS = 60
_F_OFD_SETLK = 37  # of Linux; Python's fcntl has no name for it


@dataclass(frozen=True)
class Frame:
    """One frame and what came with it."""

    number: int
    pixels: NDArray[np.uint8]
    told: dict[str, Any]
    last_reward: float
    rolling_return: float
    step_rate_hz: float


class FrameWatcher:
    """Looks at the frames of a region for as long as it is open."""

    def __init__(self, name: str, *, looks: bool = True) -> None:
        """Maps the region.

        Args:
          name: The region's.
          looks: Whether the engine is to know.
        """
        self._file = os.open(Path("/dev/shm", name), os.O_RDONLY | os.O_CLOEXEC)
        self._map = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
        (self._at,) = struct.unpack_from("<Q", self._map, _FLAN_OFFSET)
        if looks:
            lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, self._at + _READERS_LOCK_BYTE, 1, 0)
            fcntl.fcntl(self._file, _F_OFD_SETLK, lock)

    @property
    def head(self) -> int:
        """Frames published so far. A slice is copied in one piece; what is unpacked is read byte by byte."""
        at = self._at + _HEAD
        return int.from_bytes(self._map[at : at + 8], "little")

    @property
    def invalidated(self) -> bool:
        """Whether the writer said that it has left."""
        return bool(HEADER.unpack_from(self._map, self._at)[2] & 1)

    def latest(self) -> Frame | None:
        """The newest frame; None: there is none, or it may have been overwritten meanwhile (with one slot, always)."""
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
        """The newest frame once its number is beyond `after`."""
        deadline = time.monotonic() + _WATCHDOG_SECS
        while (frame := self.latest()) is None or frame.number <= after:
            assert time.monotonic() < deadline, "no frame came"
            time.sleep(0.001)
        return frame

    def close(self) -> None:
        """Looks no longer."""
        self._map.close()
        os.close(self._file)

    def __enter__(self) -> Self:
        """Returns the watcher."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()
