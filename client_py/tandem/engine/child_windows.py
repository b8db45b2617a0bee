"""A child process on Windows: its log, and the pipe by which it sees the end of its launcher."""

import msvcrt
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

assert sys.platform == "win32"  # type checkers of other systems read no further

# CreateProcess takes 32,767 characters for the whole command line; UTF-8 has up to three bytes for each.
MOST_WORD_BYTES = 32_000
RAISE_LIMITS = "end other programs"
_NOT_ENOUGH_MEMORY, _COMMITMENT_LIMIT, _FILENAME_TOO_LONG = 8, 1455, 206
_FILE = os.O_BINARY | os.O_NOINHERIT | os.O_TEMPORARY


class LogFile:
    """A file that a child writes and its launcher reads. The system removes it with its last user."""

    def __init__(self) -> None:
        """Makes the file; OSError: the disk is full, or the folder for temporary files cannot be written."""
        file, path = tempfile.mkstemp(prefix="tandem-log-")
        os.close(file)
        # Two open files: each has an offset of its own, and the child's is the first one's.
        self._written = os.open(path, os.O_RDWR | _FILE)
        self._read = os.open(path, os.O_RDONLY | _FILE)

    def fileno(self) -> int:
        """Returns the descriptor, for a child process."""
        return self._written

    def end(self, most: int) -> tuple[bytes, bool]:
        """Returns the last `most` bytes, and whether there are more before them; the child's offset stays."""
        start = max(0, os.fstat(self._read).st_size - most)
        os.lseek(self._read, start, os.SEEK_SET)
        # Text streams end lines with CR LF; a program that copies another's lines adds a CR.
        return re.sub(rb"\r+\n", b"\n", os.read(self._read, most)), start > 0

    def close(self) -> None:
        """Closes this process's descriptors."""
        os.close(self._written)
        os.close(self._read)


class LauncherPipe:
    """A pipe whose end in the child ends with this process, however that ends."""

    def __init__(self) -> None:
        """Makes it; OSError: this process has too many open files."""
        self._childs, self._own = os.pipe()
        self._is_open = True

    def start(self, command: Sequence[str], variables: dict[str, str], log: LogFile) -> "subprocess.Popen[bytes]":
        """Starts a child without a window, with `--launcher_fd`, a handle. Once only; OSError: it cannot be run."""
        handle = msvcrt.get_osfhandle(self._childs)
        os.set_handle_inheritable(handle, True)
        try:
            return subprocess.Popen(
                [*command, f"--launcher_fd={handle}"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log.fileno(),
                stderr=log.fileno(),
                # Only these: another thread may start a child at this time.
                startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]}),
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
            )
        finally:
            os.close(self._childs)

    def ask_to_stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Asks the child to end: it does when its launcher's end of the pipe closes."""
        self.close()

    def close(self) -> None:
        """Closes this process's end. A second call has no effect."""
        if self._is_open:
            self._is_open = False
            os.close(self._own)


def run(program: str, words: Sequence[str], variables: dict[str, str]) -> int:
    """Runs an engine, which ends with this process, on its console and standard streams; returns the exit code."""
    childs, _ = os.pipe()  # the other end closes with this process
    handle = msvcrt.get_osfhandle(childs)
    os.set_handle_inheritable(handle, True)
    for event in (signal.SIGINT, signal.SIGBREAK):
        signal.signal(event, signal.SIG_IGN)  # the console sends it to the engine, too
    return subprocess.run([program, f"--launcher_fd={handle}", *words], env=variables, close_fds=False).returncode


def met_limit(error: OSError) -> bool:
    """Returns whether a child could not be started for a limit on memory."""
    return getattr(error, "winerror", None) in (_NOT_ENOUGH_MEMORY, _COMMITMENT_LIMIT)


def too_long(error: OSError, command: Sequence[str]) -> str | None:
    """Returns what was expected, found, and what to do, if the child's arguments are too long; None: they are not."""
    if getattr(error, "winerror", None) != _FILENAME_TOO_LONG:
        return None
    line = subprocess.list2cmdline(command)
    return f"expected a command line of at most 32766 characters, Windows' limit, found {len(line)}; shorten it"
