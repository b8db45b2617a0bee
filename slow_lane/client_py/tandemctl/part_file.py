"""`replaced`: writes a file atomically, also if a signal ends the process meanwhile.

remove_on_signals()  # before any other thread is there with replaced("steps.csv") as write:
    write(b"...")  # into a new file beside it, which gets its name at the end
"""

import contextlib
import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tandemctl.output import Failed

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
# A name may have 255 bytes, and a part's is longer than its file's.
_LONGEST_STEM = 200

_parts: set[Path] = set()  # removed on a signal
_parts_lock = threading.Lock()


def remove_on_signals() -> None:
    """Makes signals that end the process remove the part first. Ignored signals stay ignored, as nohup wants it."""
    signals = {number for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait() -> None:
        number = signal.sigwait(signals)
        _parts_lock.acquire()  # for good: no part is made any more
        for part in _parts:
            with contextlib.suppress(OSError):
                part.unlink()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def replaced(path: str) -> Iterator[Callable[[bytes], None]]:
    """Makes a file, or replaces one, whose mode stays; of a symbolic link its final target.

    Yields the function that writes to it. Once the block has ended, the file is on the disk under its name; if the
    block raises, nothing has changed. Failed: the path is not a file's, or the system refused.
    """
    with _failures(path):
        mode = _mode_of(path)
        target = Path(os.path.realpath(path))
        stem = os.fsdecode(os.fsencode(target.name)[:_LONGEST_STEM])
        part = target.with_name(f"{stem}.part-{secrets.token_hex(8)}")
        with _parts_lock:
            file = part.open("xb", buffering=0)
            _parts.add(part)

    def write(data: bytes) -> None:
        left = memoryview(data)
        with _failures(path):
            while left:
                left = left[file.write(left) :]

    try:
        with file:
            if mode is not None:
                with _failures(path):
                    os.fchmod(file.fileno(), mode)
            yield write
            with _failures(path):
                os.fsync(file.fileno())
        with _failures(path), _parts_lock:
            part.rename(target)
            _parts.remove(part)
        with _failures(path):
            _sync_folder(target.parent)
    finally:
        with _parts_lock:
            if part in _parts:
                part.unlink(missing_ok=True)
                _parts.remove(part)


@contextlib.contextmanager
def _failures(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failed(f"--out: expected to write the file, found: {error.strerror}: {path}") from error


def _mode_of(path: str) -> int | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Failed(
            "--out: expected a new file, or one to replace, found something else; without --out the CSV goes to "
            f"standard output: {path}"
        )
    return stat.S_IMODE(found.st_mode) & 0o777


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
