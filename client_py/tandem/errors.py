"""The package's errors, one class for each situation of the user.

The classes are the rows of the table that C++ and Python share (schema/layout/error_codes.h). Each derives from
`TandemError` and from the standard library's class for the situation, if it has one. A message says what was expected,
what was found, where, and what to do next.
"""

from collections.abc import Callable
from typing import ClassVar


class TandemError(Exception):
    """Base of all errors of Tandem.

    Attributes:
      code: The situation's number in the table, for logs and comparisons; numbers never change their meaning.
    """

    code: ClassVar[int] = -1


class NotReady(TandemError, ConnectionError):
    """No engine serves a region of that name, and none appeared before the time-out. Start one, or check the name."""

    code = 1


class PeerGone(TandemError, ConnectionError):
    """The engine has stopped, died or was killed. Start it again and call `reconnect`, or `close`."""

    code = 2


class StepTimeout(TandemError, TimeoutError):
    """The engine did not answer in time. A step is still pending: `recv`, `reconnect` and `close` are legal.

    A late answer of an RPC is dropped; the engine may still have done what was asked. A stream is still open.
    """

    code = 3


class LayoutMismatch(TandemError):
    """The region has another version or is damaged; or, after a restart, its task or sizes differ from before."""

    code = 4


class AlreadyAttached(TandemError):
    """Another client uses this engine, or another engine serves this name. The message names the process."""

    code = 5


class StepPending(TandemError):
    """The last step or reset was not received. Call `recv` first, or `reconnect`."""

    code = 6


class NoStepPending(TandemError):
    """`recv` was called, but nothing was sent."""

    code = 7


class ConcurrentUse(TandemError):
    """Another thread is inside a call on the same client. Give each thread its own client and engine, or lock."""

    code = 8


class ForkedChild(TandemError):
    """The client belongs to the parent of this forked process. Make a client after the fork, or use `spawn`."""

    code = 9


class ClientClosed(TandemError):
    """The client was closed, or the session of a call or stream ended, by `close` or `reconnect`."""

    code = 10


class InvalidAction(TandemError, ValueError):
    """Actions of a wrong shape or dtype, not contiguous, or not finite. Nothing was sent."""

    code = 11


class InvalidArgument(TandemError, ValueError):
    """An invalid name, size, option or index."""

    code = 12


class BrokenPeer(TandemError, ConnectionError):
    """The other side broke the protocol. Another program may write to the region."""

    code = 13


class EngineFailed(TandemError, RuntimeError):
    """The engine reported a failure of its own in a step, reset or RPC. It still serves; only this call failed."""

    code = 14


class EngineStartFailed(TandemError, RuntimeError):
    """An engine that `launch_engine` started ended, or took too long, before it served its region.

    Attributes:
      exit_code: The process's exit code, negative for a signal's number; None if it never ran or had to be stopped.
      log_tail: The last lines of its standard error.
    """

    code = 15

    exit_code: int | None = None
    log_tail: str = ""


class AccessDenied(TandemError, PermissionError):
    """The region or the daemon belongs to another user; the message names that user."""

    code = 16


class OutOfSharedMemory(TandemError, MemoryError):
    """/dev/shm or memory has no room; the message has the figures. In a container: `--shm-size`, `--memory`."""

    code = 17


class Interrupted(TandemError):
    """A wait was interrupted; a step is still pending. Ctrl-C itself arrives as `KeyboardInterrupt`."""

    code = 18


class RingFull(TandemError):
    """The RPC ring has no room for the message now."""

    code = 19


class RingEmpty(TandemError):
    """The RPC ring holds no message now."""

    code = 20


class MessageTooLarge(TandemError, ValueError):
    """The message is larger than half the RPC ring, the limit of one entry."""

    code = 21


class Unsupported(TandemError, NotImplementedError):
    """This version, engine or machine does not support the call."""

    code = 22


class SystemCallFailed(TandemError, OSError):
    """A system call failed; the message names the call, the object and the reason."""

    code = 23


# Region name -> a function that returns the last lines of the engine that this process launched.
last_words: dict[str, Callable[[], str]] = {}


def from_native(class_name: str, message: str, region: str) -> TandemError:
    """Makes the exception for a row of the table; only the binding calls it.

    Args:
      class_name: The row's Python class.
      message: What happened and what to do.
      region: Name of the region that it is about, or "".

    Returns:
      The exception, to be raised.
    """
    error_class = globals()[class_name]
    if error_class is PeerGone and region in last_words and (words := last_words[region]()):
        message = f"{message}\nThe end of the engine's log:\n{words}"
    error: TandemError = error_class(message)
    return error
