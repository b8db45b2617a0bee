"""What a viewer of a live scene gets: the segment, read by docs/protocol.md, "The live scene"."""

import contextlib
import json
import mmap
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tandem
from tandem._native import MethodId
from tandem.services.caller import Caller
from tandem.services.streams import Stream


class Snapshot(NamedTuple):
    """Poses of `envs`, float32[envs, nodes, 7], and their numbers."""

    exchange: int
    envs: list[int]
    episodes: list[int]
    steps: list[int]
    times: list[float]
    poses: NDArray[np.float32]


class LiveScene:
    """A watched scene. `items` is the engine's stream, whose end ends the watch."""

    def __init__(self, items: Stream[dict[str, Any]]) -> None:
        """Awaits the scene."""
        self.items = items
        self._seen = 0
        self.attach()

    def attach(self) -> dict[str, Any]:
        """Awaits the next item, and reads its segment from then on."""
        item = self.items.next()
        path = Path("/dev/shm", item["segment"])
        (self.generation, _, self.nodes, _, self._row_bytes) = struct.unpack_from("<5I", path.read_bytes(), 12)
        glb, glb_bytes, self._ring, _ = struct.unpack_from("<4Q", path.read_bytes(), 32)
        self.glb = path.read_bytes()[glb : glb + glb_bytes]
        with path.open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._seen = 0
        return item

    @property
    def gltf(self) -> dict[str, Any]:
        """The JSON of the GLB."""
        found: dict[str, Any] = json.loads(self.glb[20 : 20 + struct.unpack_from("<I", self.glb, 12)[0]])
        return found

    def next(self) -> Snapshot:
        """Awaits the next snapshot."""
        while True:
            capacity, slot_bytes = struct.unpack_from("<2I", self._memory, self._ring + 12)
            (head,) = struct.unpack_from("<Q", self._memory, self._ring + 40)
            at = self._ring + 80 + (head - 1) % capacity * slot_bytes
            slot = self._memory[at : at + slot_bytes]
            if head > self._seen and struct.unpack_from("<Q", self._memory, at)[0] == 2 * head + 2:
                self._seen = head
                return self._read(slot[16:])
            time.sleep(0.001)

    def _read(self, frame: bytes) -> Snapshot:
        exchange, _, rows = struct.unpack_from("<2QI", frame)
        heads = [struct.unpack_from("<2I2Qd", frame, 32 + row * self._row_bytes) for row in range(rows)]
        poses = [
            np.frombuffer(frame, np.float32, 7 * self.nodes, 80 + row * self._row_bytes).reshape(-1, 7)
            for row in range(rows)
        ]
        envs, _, episodes, steps, times = map(list, zip(*heads, strict=True))
        return Snapshot(exchange, envs, episodes, steps, times, np.array(poses))


def glb_of(gltf: dict[str, Any]) -> bytes:
    """Returns a GLB without a binary part."""
    text = json.dumps(gltf).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<4s3I4s", b"glTF", 2, 20 + len(text), len(text), b"JSON") + text


@contextlib.contextmanager
def watched(name: str, *env_ids: int, hz: float = 60) -> Iterator[LiveScene]:
    """Watches some environments of a region's engine; of none: the first 64."""
    with tandem.Attendant(name, label="viewer", timeout=60) as panel:
        caller = Caller(panel._native)
        with caller.stream(MethodId.WatchScene, None, lambda item: item, env_ids=list(env_ids), hz=hz) as items:
            yield LiveScene(items)
