"""Tandem: simulation engines in processes of their own, stepped through shared memory.

`launch_engine` starts an engine; `SharedMemoryClient` steps its environments. Every error derives from `TandemError`.
"""

import sys

from tandem._version import __version__

# The doctor is there for what is broken in the rest: it imports none of it, and nor does this module for it.
if not (sys.argv[:1] == ["-m"] and "tandem.doctor" in sys.orig_argv):
    from tandem.client import AutoresetMode, ClientStats, SharedMemoryClient
    from tandem.engine_process import EngineProcess, launch_engine
    from tandem.errors import (
        AccessDenied,
        AlreadyAttached,
        BrokenPeer,
        ClientClosed,
        ConcurrentUse,
        EngineFailed,
        EngineStartFailed,
        ForkedChild,
        Interrupted,
        InvalidAction,
        InvalidArgument,
        LayoutMismatch,
        MessageTooLarge,
        NoStepPending,
        NotReady,
        OutOfSharedMemory,
        PeerGone,
        RingEmpty,
        RingFull,
        StepPending,
        StepTimeout,
        SystemCallFailed,
        TandemError,
        Unsupported,
    )

__all__ = [
    "AccessDenied",
    "AlreadyAttached",
    "AutoresetMode",
    "BrokenPeer",
    "ClientClosed",
    "ClientStats",
    "ConcurrentUse",
    "EngineFailed",
    "EngineProcess",
    "EngineStartFailed",
    "ForkedChild",
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
    "SharedMemoryClient",
    "StepPending",
    "StepTimeout",
    "SystemCallFailed",
    "TandemError",
    "Unsupported",
    "__version__",
    "launch_engine",
]
