"""A child process on Linux: its log, and the pipe by which it sees the end of its launcher."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
from collections.abc import Sequence

# The kernel's MAX_ARG_STRLEN, of which one byte is the NUL at the end.
MOST_WORD_BYTES = 32 * os.sysconf("SC_PAGESIZE")
RAISE_LIMITS = "raise `ulimit -n` or `ulimit -u`"
_LIMITS = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

# Launchers' ends of pipes. A forked child must not keep them open.
_open_ends: set[int] = set()


def _drop_ends_in_child() -> None:
    for end in _open_ends:
        os.close(end)
    _open_ends.clear()


os.register_at_fork(after_in_child=_drop_ends_in_child)


class LogFile:
    """A file that a child writes and its launcher reads. It has no name, and ends with its last user."""

    def __init__(self) -> None:
        """Makes the file; OSError: this process has too many open files."""
        self._file = os.memfd_create("tandem-log")

    def fileno(self) -> int:
        """Returns the descriptor, for a child process."""
        return self._file

    def end(self, most: int) -> tuple[bytes, bool]:
        """Returns the last `most` bytes, and whether there are more before them; the child's offset stays."""
        size = os.fstat(self._file).st_size
        start = max(0, size - most)
        return os.pread(self._file, size - start, start), start > 0

    def close(self) -> None:
        """Closes this process's descriptor."""
        os.close(self._file)


class LauncherPipe:
    """A pipe whose end in the child ends with this process, however that ends."""

    def __init__(self) -> None:
        """Makes it; OSError: this process has too many open files."""
        with contextlib.ExitStack() as low, contextlib.ExitStack() as made:
            pipe, ends = os.pipe(), []
            for end in pipe:
                low.callback(os.close, end)
            for end in pipe:  # neither is a standard stream, which Popen would replace
                ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))
                made.callback(os.close, ends[-1])
            made.pop_all()
        self._childs, self._own = ends
        _open_ends.add(self._own)

    def start(self, command: Sequence[str], variables: dict[str, str], log: LogFile) -> "subprocess.Popen[bytes]":
        """Starts a child in a session of its own, with `--launcher_fd`. Once only; OSError: it cannot be run."""
        try:
            return subprocess.Popen(
                [*command, f"--launcher_fd={self._childs}"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log.fileno(),
                stderr=log.fileno(),
                pass_fds=(self._childs,),
                start_new_session=True,
            )
        finally:
            os.close(self._childs)

    def ask_to_stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Asks the child to end."""
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)  # a stopped process cannot answer

    def close(self) -> None:
        """Closes this process's end. Once only."""
        _open_ends.discard(self._own)
        os.close(self._own)


def met_limit(error: OSError) -> bool:
    """Returns whether a child could not be started for a limit on processes, files or memory."""
    return error.errno in _LIMITS


def too_long(error: OSError, command: Sequence[str]) -> str | None:
    """Returns what was expected, found, and what to do, if the child's arguments are too long; None: they are not."""
    if error.errno != errno.E2BIG:
        return None
    taken = sum(len(os.fsencode(word)) + 1 for word in command)
    others = sum(len(name) + len(value) + 2 for name, value in os.environb.items())
    return (
        "expected arguments and environment variables within the kernel's limit, a quarter of `ulimit -s`, "
        f"found {taken} bytes of arguments and {others} bytes of environment variables; raise `ulimit -s`, "
        "or shorten them"
    )
