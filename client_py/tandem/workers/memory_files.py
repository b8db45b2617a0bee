"""`MemoryFiles`: what the trainer process shares with the supervisor and the workers, beside the region.

    with MemoryFiles(info_bytes=2**16, import_bytes=64, failure_bytes=128) as files:
        channel.send(("start", start), files.fds)  # worker.Files has the same order

Only the trainer and the processes that it has started have descriptors of these files.
"""

import contextlib
import os

from tandem.handles import ClosesOnExit
from tandem.workers.shared_value import SharedValue, new_memory_file


class MemoryFiles(ClosesOnExit):
    """Files without names, which end with their last user: those of `worker.Files`; `fds` has their order."""

    def __init__(self, info_bytes: int, import_bytes: int, failure_bytes: int, frame_bytes: int = 0) -> None:
        """Makes the files; frame_bytes 0: without one for frames.

        OSError: This process has too many open files, or memory has no room.
        """
        self.fds: list[int] = []
        with contextlib.ExitStack() as made:
            self.infos = new_memory_file("tandem-infos", info_bytes)
            made.callback(os.close, self.infos)
            self.options = made.enter_context(SharedValue.new("tandem-options"))
            self.requests = made.enter_context(SharedValue.new("tandem-requests"))
            self.imports = new_memory_file("tandem-imports", import_bytes)
            made.callback(os.close, self.imports)
            self.failures = new_memory_file("tandem-failures", failure_bytes)
            made.callback(os.close, self.failures)
            fds = [self.infos, self.options.fd, self.requests.fd, self.imports, self.failures]
            for name in ("tandem-scene", "tandem-model"):
                fds.append(new_memory_file(name, 0))
                made.callback(os.close, fds[-1])
            self.scene = fds[-2]
            if frame_bytes:
                fds.append(new_memory_file("tandem-frames", frame_bytes))
                made.callback(os.close, fds[-1])
            self._made = made.pop_all()
        self.fds = fds

    def close(self) -> None:
        """Closes the files, and the mappings of the values. A second call has no effect."""
        self.fds = []
        self._made.close()
