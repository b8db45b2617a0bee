"""`launched`: starts the supervisor of worker processes, as a new program."""

import errno
import os
import socket
import subprocess
import sys

from tandem.engine import program
from tandem.engine.process import Log
from tandem.errors import EngineStartFailed, SystemCallFailed
from tandem.workers.channel import Channel

# Libraries that compute with as many threads as there are cores, in each process: several workers would share the
# cores with many times more threads.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Supervisors, until they have ended: those of environments that were not closed end later than their owner.
_running: "list[subprocess.Popen[bytes]]" = []


def launched() -> tuple["subprocess.Popen[bytes]", Channel, Log]:
    """Starts a supervisor; returns its process, the channel, and its first log. EngineStartFailed: it cannot be run."""
    _running[:] = [process for process in _running if process.poll() is None]
    interpreter = program.interpreter()
    path = os.pathsep.join(os.path.abspath(each) for each in sys.path if isinstance(each, str))  # imports skip others
    ours, theirs = socket.socketpair()
    log = Log()
    try:
        stderr = os.dup(2)
    except OSError:  # it is closed
        stderr = os.open(os.devnull, os.O_WRONLY)
    fds = [theirs.fileno(), stderr]
    try:
        process = subprocess.Popen(
            [interpreter, *_interpreter_flags(), "-m", "tandem.workers", *map(str, fds)],
            stdin=subprocess.DEVNULL,
            stderr=log.fileno(),
            pass_fds=fds,
            env={**environ(), "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in the trainer does not reach it
        )
    except OSError as error:
        ours.close()
        log.close()
        raise EngineStartFailed(f"workers: expected a process of {interpreter!r}, found none: {error}") from error
    finally:
        theirs.close()
        os.close(stderr)
    _running.append(process)
    return process, Channel(ours), log


def make_room_for_files(count: int) -> None:
    """Raises the soft limit on open files for so many more; SystemCallFailed: the hard limit is lower."""
    import resource  # Windows imports this module, too

    soft, hard = (sys.maxsize if limit < 0 else limit for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    needed = count + len(os.listdir("/proc/self/fd"))
    if needed > hard:
        text = f"workers: expected that this process may have {needed} open files, found a limit of {hard}; "
        raise SystemCallFailed(errno.EMFILE, f"{text}raise `ulimit -n`, or use fewer workers")
    if needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _interpreter_flags() -> list[str]:
    """Returns the options of this interpreter, such as -X dev, as `multiprocessing` passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def environ() -> dict[str, str]:
    """Returns the environment variables of workers."""
    return dict.fromkeys(_THREAD_VARIABLES, "1") | program.inherited_variables()
