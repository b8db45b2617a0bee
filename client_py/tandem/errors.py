"""The package's errors, one class for each situation of the user.

The classes are the rows of the table that C++ and Python share (schema/layout/error_codes.h). Each derives from
`TandemError` and from the standard library's class for the situation, if it has one. A message says what was expected,
what was found, where, and what to do next.
"""

import signal
from collections.abc import Callable
from typing import ClassVar

# The classes, as a literal for type checkers.
__all__ = [
    "AccessDenied",
    "AlreadyAttached",
    "BrokenPeer",
    "ClientClosed",
    "ConcurrentUse",
    "EngineFailed",
    "EngineStartFailed",
    "EnvFailed",
    "ForkedChild",
    "GpuDriverMissing",
    "GpuDriverTooOld",
    "GpuFailed",
    "GpuOtherContext",
    "GpuOtherDevice",
    "GpuStaleHandle",
    "Interrupted",
    "InvalidAction",
    "InvalidArgument",
    "LayoutMismatch",
    "MessageTooLarge",
    "NoStepPending",
    "NotReady",
    "OutOfSharedMemory",
    "PeerGone",
    "RingEmpty",
    "RingFull",
    "StepPending",
    "StepTimeout",
    "SystemCallFailed",
    "TandemError",
    "Unsupported",
]


class TandemError(Exception):
    """Base of all errors of Tandem; `code` is the situation's number in the table, which never changes its meaning."""

    code: ClassVar[int] = -1

    def __init_subclass__(cls, *, code: int | None = None) -> None:
        """Takes the class's number; a class without one has that of its base."""
        super().__init_subclass__()
        if code is not None:
            cls.code = code


class NotReady(TandemError, ConnectionError, code=1):
    """No engine serves a region of that name, and none appeared before the time-out. Start one, or check the name."""


class PeerGone(TandemError, ConnectionError, code=2):
    """The engine has stopped, died or was killed. Start it again and call `reconnect`, or `close`.

    Attributes:
      worker: int, the index of the worker process that ended; None: it was none, or another program's.
      env_ids: tuple of int, this worker's environments.
    """

    worker: int | None = None
    env_ids: tuple[int, ...] = ()


class StepTimeout(TandemError, TimeoutError, code=3):
    """The engine did not answer in time. A step is still pending: `recv`, `reconnect` and `close` are legal.

    A late answer of an RPC is dropped; the engine may still have done what was asked. A stream is still open.

    Attributes:
      workers: tuple of int, the worker processes that did not answer; (): an engine without workers.
    """

    workers: tuple[int, ...] = ()


class LayoutMismatch(TandemError, code=4):
    """The region has another version or is damaged; or, after a restart, its task or sizes differ from before."""


class AlreadyAttached(TandemError, code=5):
    """Another client uses this engine, or another engine serves this name. The message names the process."""


class StepPending(TandemError, code=6):
    """The last step or reset was not received. Call `recv` first, or `reconnect`."""


class NoStepPending(TandemError, code=7):
    """`recv` was called, but nothing was sent."""


class ConcurrentUse(TandemError, code=8):
    """Another thread is inside a call on the same client. Give each thread its own client and engine, or lock."""


class ForkedChild(TandemError, code=9):
    """The client or attendant belongs to the parent of this forked process. Attach after the fork, or use `spawn`."""


class ClientClosed(TandemError, code=10):
    """The client was closed, or the session of a call or stream ended, by `close` or `reconnect`."""


class InvalidAction(TandemError, ValueError, code=11):
    """Actions of a wrong shape or dtype, not contiguous, or not finite. Nothing was sent."""


class InvalidArgument(TandemError, ValueError, code=12):
    """An invalid name, size, option or index.

    Attributes:
      argument: The name of what is refused; None: the message alone has it.
      reason: The message without the argument, if this is known.
      known: Of an unknown option of a task: the names of the known ones.
    """

    argument: str | None = None
    reason: str = ""
    known: tuple[str, ...] | None = None

    @classmethod
    def of(cls, argument: str, reason: str) -> "InvalidArgument":
        """Makes the error with the message "argument: reason"."""
        error = cls(f"{argument}: {reason}")
        error.argument, error.reason = argument, reason
        return error


class BrokenPeer(TandemError, ConnectionError, code=13):
    """The other side broke the protocol. Another program may write to the region."""


class EngineFailed(TandemError, RuntimeError, code=14):
    """The engine reported a failure of its own in a step, reset or RPC. It still serves; only this call failed."""


class EngineStartFailed(TandemError, RuntimeError, code=15):
    """An engine that `launch_engine` started ended, or took too long, before it served its region.

    Attributes:
      exit_code: The process's exit code, negative for a signal's number; None if it never ran or had to be stopped.
      log_tail: The last lines of its standard error.
    """

    exit_code: int | None = None
    log_tail: str = ""


class AccessDenied(TandemError, PermissionError, code=16):
    """The region or the daemon belongs to another user; the message names that user."""


class OutOfSharedMemory(TandemError, MemoryError, code=17):
    """/dev/shm or memory has no room; the message has the figures. In a container: `--shm-size`, `--memory`."""


class Interrupted(TandemError, code=18):
    """A wait was interrupted. A step that was sent is still pending. Ctrl-C itself raises `KeyboardInterrupt`."""


class RingFull(TandemError, code=19):
    """The RPC ring has no room for the message now."""


class RingEmpty(TandemError, code=20):
    """The RPC ring holds no message now."""


class MessageTooLarge(TandemError, ValueError, code=21):
    """The message is larger than the RPC rings carry: 64 MiB, or an entry of the ring if that is more."""


class Unsupported(TandemError, NotImplementedError, code=22):
    """This version, engine or machine does not support the call."""


class SystemCallFailed(TandemError, OSError, code=23):
    """A system call failed; the message names the call, the object and the reason."""


class EnvFailed(EngineFailed, code=24):
    """An environment raised an exception in its worker process. The message has its number and the traceback's end.

    Its rows are invalid until its next reset. The engine still serves. If several environments failed, the error is of
    the first one. An attribute is None if it is unknown, as that of an exception in `call`.

    Attributes:
      env_id: int, the environment.
      worker: int, the index of its worker process.
      episode: int, the number of its episode, from 0, since its process made the environment.
      step: int, the number of the failed step in this episode, from 0; None: its reset failed.
    """

    env_id: int | None = None
    worker: int | None = None
    episode: int | None = None
    step: int | None = None


class GpuFailed(TandemError, RuntimeError, code=25):
    """A call of the GPU driver failed; the message has both. The base of the other GPU errors."""


class GpuDriverMissing(GpuFailed, code=26):
    """There is no GPU driver or no GPU, or TANDEM_CUDA=no switches it off. The engine's CPU arrays still work."""


class GpuDriverTooOld(GpuFailed, code=27):
    """The GPU driver is older than Tandem needs; the message has both versions."""


class GpuOtherDevice(GpuFailed, code=28):
    """The engine's arrays are on a GPU that this process does not see. See CUDA_VISIBLE_DEVICES."""


class GpuStaleHandle(GpuFailed, code=29):
    """The engine has died, or freed its GPU memory. Start it again and call `reconnect`."""


class GpuOtherContext(GpuFailed, code=30):
    """A context other than the device's primary one is current in this thread. The primary one is that of torch."""


# Region name -> a function that adds to an error what this process knows of the region's engine or workers.
details: dict[str, Callable[[TandemError], None]] = {}


def from_native(class_name: str, message: str, region: str) -> TandemError:
    """Makes the exception for a row of the table, whose class has this name.

    `region` is the name of the region that the message is about, or "".
    """
    error: TandemError = globals()[class_name](message)
    if region in details:
        details[region](error)
    return error


# What to do about a process that was killed by SIGKILL.
OUT_OF_MEMORY = "the kernel kills processes when memory runs out (see dmesg); then use fewer environments"


def how_it_ended(code: int) -> str:
    """Returns text for an exit code; `subprocess` and `os.waitstatus_to_exitcode` have negative ones for signals.

    >>> how_it_ended(3), how_it_ended(0xC0000005), how_it_ended(-9)
    ('ended with exit code 3', 'ended with exit code 0xc0000005', 'was killed by SIGKILL')
    """
    if code >= 0:
        return f"ended with exit code {code if code < 1 << 31 else hex(code)}"  # Windows' own, such as 0xc0000005
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
