"""A Fast Lane writer and reader in pure Python, written only from the documented table.

They use only the standard library, and work as MOSAIC's programs do. The writer packs the complete header with each
frame, and the reader uses only the sequence numbers.
"""

import struct
import sys
import zlib
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

HEADER = struct.Struct("<4sIIIIIIIIIQQddd")
SLOT = struct.Struct("<QII")
INVALIDATED = 1


def segment_name(run_id: str) -> str:
    """Returns the name of a run's segment."""
    return "mosaic.fastlane." + run_id.replace("/", "_")


def buffer_of(memory: SharedMemory) -> memoryview:
    """Returns the segment's bytes, which are valid until it is closed."""
    assert memory.buf is not None
    return memory.buf


class ForeignWriter:
    """Publishes frames."""

    def __init__(self, run_id: str, width: int, height: int, channels: int, capacity: int, metadata_size: int) -> None:
        """Creates the segment."""
        payload = width * height * channels + metadata_size
        self.sizes = (capacity, SLOT.size + payload, payload, width, height, channels)
        self.format = zlib.crc32(b"RGB" if channels == 3 else b"RGBA")
        self.capacity, self.slot_size, self.metadata_size = capacity, SLOT.size + payload, metadata_size
        self.head = 0
        size = HEADER.size + capacity * self.slot_size
        self.memory = SharedMemory(segment_name(run_id), create=True, size=size)
        self.pack_header(0, (0.0, 0.0, 0.0))

    def pack_header(self, flags: int, metrics: tuple[float, float, float]) -> None:
        """Writes all fields of the header."""
        HEADER.pack_into(buffer_of(self.memory), 0, b"FLAN", 1, flags, *self.sizes, self.format, self.head, 0, *metrics)

    def publish(self, frame: bytes, metrics: tuple[float, float, float], metadata: bytes = b"") -> int:
        """Writes a slot, then the header."""
        metadata = metadata[: self.metadata_size]
        at = HEADER.size + self.head % self.capacity * self.slot_size
        self.head += 1
        buffer = buffer_of(self.memory)
        SLOT.pack_into(buffer, at, 2 * self.head + 1, len(frame), len(metadata))
        start = at + SLOT.size
        buffer[start : start + len(frame)] = frame
        start += len(frame)
        buffer[start : start + len(metadata)] = metadata
        SLOT.pack_into(buffer, at, 2 * self.head + 2, len(frame), len(metadata))
        self.pack_header(0, metrics)
        return self.head

    def close(self) -> None:
        """Invalidates and unlinks the segment."""
        self.pack_header(INVALIDATED, (0.0, 0.0, 0.0))
        self.memory.close()
        self.memory.unlink()


class ForeignReader:
    """Reads the newest frame."""

    def __init__(self, run_id: str, *, track: bool) -> None:
        """Attaches; Python's resource tracker unlinks the segment at exit if it tracks it."""
        self.memory = SharedMemory(segment_name(run_id))
        if not track:
            resource_tracker.unregister("/" + segment_name(run_id), "shared_memory")

    def header(self) -> tuple[bytes, tuple[int, ...], tuple[float, ...]]:
        """Returns the header: magic, integers from version to tail, metrics."""
        magic, *rest = HEADER.unpack_from(buffer_of(self.memory), 0)
        return magic, tuple(rest[:11]), tuple(rest[11:])

    def latest(self) -> tuple[int, bytes, bytes] | None:
        """Returns the newest frame's number, pixels and metadata; None if there is none or it was torn."""
        _, (_, _, capacity, slot_size, *_, head, _), _ = self.header()
        if head == 0:
            return None
        at = HEADER.size + (head - 1) % capacity * slot_size
        before, frame_len, metadata_len = SLOT.unpack_from(buffer_of(self.memory), at)
        if before % 2 == 1:
            return None
        start = at + SLOT.size
        pixels = bytes(buffer_of(self.memory)[start : start + frame_len])
        metadata = bytes(buffer_of(self.memory)[start + frame_len : start + frame_len + metadata_len])
        after, _, _ = SLOT.unpack_from(buffer_of(self.memory), at)
        return ((before - 2) // 2, pixels, metadata) if before == after else None

    def close(self) -> None:
        """Unmaps the segment."""
        self.memory.close()


def main() -> None:
    """Runs as a program: `look RUN_ID` prints the newest frame's number; `publish RUN_ID CAPACITY FRAMES` publishes."""
    if sys.argv[1] == "look":
        reader = ForeignReader(sys.argv[2], track=True)
        found = reader.latest()
        print(0 if found is None else found[0])
        reader.close()
        return
    writer = ForeignWriter(sys.argv[2], 64, 64, 3, int(sys.argv[3]), 32)
    print("ready", flush=True)
    for number in range(1, int(sys.argv[4]) + 1):
        writer.publish(bytes([number % 256]) * (64 * 64 * 3), (float(number), 0.0, 0.0), str(number).encode())
    writer.close()


if __name__ == "__main__":
    main()
