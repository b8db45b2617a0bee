"""What can go wrong between a `TrainerClient` and the daemon, one class for each situation of the user's.

The daemon answers with gRPC's status codes; `ERROR_TABLE` maps each to a class. These are not situations of the shared
region, so they are no rows of `tandem.errors`; their base is the same, and three of its classes are among them.
"""

from tandem.errors import AccessDenied, InvalidArgument, TandemError, Unsupported


class DaemonError(TandemError):
    """The daemon failed at a call, or answered what it should not. Its own log says more."""


class DaemonUnreachable(DaemonError, ConnectionError):
    """No daemon answers at the target, or the connection broke. Start one: `tandem-daemon`."""


class DaemonTimeout(DaemonError, TimeoutError):
    """The daemon did not answer in time. What was asked for may still be done."""


class UnknownRun(DaemonError, LookupError):
    """The daemon has no run of that name. `runs()` lists those that it has."""


class RunExists(DaemonError):
    """There is a run of that name with another configuration. Submit it under another, or under none."""


class WrongState(DaemonError):
    """The run is not in a state for this, or the worker has not registered."""


class BadSessionToken(DaemonError, PermissionError):
    """The session token is not the one that the worker was given; `register` gives a new one."""


class DaemonFull(DaemonError):
    """The daemon has no room for more, as with a full disk. It goes on when there is; try again later."""


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
