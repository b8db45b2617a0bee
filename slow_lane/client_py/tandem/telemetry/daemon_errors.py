"""Errors between a `TrainerClient` and the daemon, one class for each situation of the user.

The daemon answers with gRPC's status codes; `ERROR_TABLE` maps each to a class. The situations are not those of the
shared region, so the classes are no rows of `tandem.errors`; their base is the same, and three of its classes are used.
"""

from tandem.errors import AccessDenied, InvalidArgument, TandemError, Unsupported


class DaemonError(TandemError):
    """The daemon failed at a call, or its answer was invalid. Its log says more."""


class DaemonUnreachable(DaemonError, ConnectionError):
    """No daemon answers at the target, or the connection broke. Start one: `tandem-daemon`."""


class DaemonTimeout(DaemonError, TimeoutError):
    """The daemon did not answer in time. It may still do what was asked."""


class UnknownRun(DaemonError, LookupError):
    """The daemon has no run of that name. `runs()` lists its runs."""


class RunExists(DaemonError):
    """A run of that name has another configuration. Submit the run under another name, or under none."""


class WrongState(DaemonError):
    """The run's state does not allow this, or the worker has not registered."""


class BadSessionToken(DaemonError, PermissionError):
    """The session token is not the one of the worker; `register` gives a new one."""


class DaemonFull(DaemonError):
    """The daemon has no room for more, as with a full disk. Try again when it has room."""


# Name of a gRPC status code -> class.
ERROR_TABLE: dict[str, type[TandemError]] = {
    "CANCELLED": DaemonUnreachable,  # by the daemon, when it ends
    "UNKNOWN": DaemonError,
    "INVALID_ARGUMENT": InvalidArgument,
    "DEADLINE_EXCEEDED": DaemonTimeout,
    "NOT_FOUND": UnknownRun,
    "ALREADY_EXISTS": RunExists,
    "PERMISSION_DENIED": AccessDenied,  # the daemon is another user's, or asks for a token
    "RESOURCE_EXHAUSTED": DaemonFull,
    "FAILED_PRECONDITION": WrongState,
    "ABORTED": DaemonError,
    "OUT_OF_RANGE": InvalidArgument,
    "UNIMPLEMENTED": Unsupported,
    "INTERNAL": DaemonError,
    "UNAVAILABLE": DaemonUnreachable,
    "DATA_LOSS": DaemonError,
    "UNAUTHENTICATED": BadSessionToken,
}
