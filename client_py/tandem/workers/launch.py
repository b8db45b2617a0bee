"""`launched`: starts the supervisor of worker processes, as a new program."""

import os
import socket
import subprocess
import sys

from tandem.errors import EngineStartFailed
from tandem.workers.channel import Channel

# Libraries that compute with as many threads as there are cores, in each process: several workers would share the
# cores with many times more threads.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# Supervisors, until they have ended: those of environments that were not closed end later than their owner.
_running: "list[subprocess.Popen[bytes]]" = []


def launched() -> tuple["subprocess.Popen[bytes]", Channel]:
    """Starts a supervisor; returns its process and the channel to it. EngineStartFailed: no process can be started."""
    _running[:] = [process for process in _running if process.poll() is None]
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(os.path.abspath(each) for each in sys.path)
    try:
        process = subprocess.Popen(
            [sys.executable, *_interpreter_flags(), "-m", "tandem.workers", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**environ(), "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in the trainer does not reach it
        )
    except OSError as error:
        ours.close()
        raise EngineStartFailed(f"workers: expected a process of {sys.executable!r}, found none: {error}") from error
    finally:
        theirs.close()
    _running.append(process)
    return process, Channel(ours)


def _interpreter_flags() -> list[str]:
    """Returns the options of this interpreter, such as -X dev, as `multiprocessing` passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def environ() -> dict[str, str]:
    """Returns the environment variables of workers."""
    return dict.fromkeys(_THREAD_VARIABLES, "1") | dict(os.environ)
