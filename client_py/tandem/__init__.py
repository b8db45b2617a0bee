"""Simulation engines in processes of their own, stepped through shared memory. dir(tandem) lists every name.

make_vec            any of Gymnasium's environments, in processes of their own; list_tasks: those that run in C++
Attendant           calls an engine's services in addition to its client, from another process
Engine, serve       an engine in Python, and the function that serves it to trainers in any language
launch_engine       an engine alone (EngineProcess), for a SharedMemoryClient or a SharedMemoryVectorEnv
publish_frames      shows what any Gymnasium environment renders to viewers; FastLaneReader reads it
TandemError         the base of all errors, such as InvalidArgument, PeerGone and StepTimeout
tandem.services     RPCs to an engine; tandem.telemetry: jobs and their events, with tandem-daemon
tandem.torch        results as tensors, also on a GPU; tandem.ray: rollouts on the nodes of a Ray cluster
tandem.vector       AsyncVectorEnv; tandem.sb3, .tianshou, .xuance, .pettingzoo: the same for these packages
tandem.doctor       checks this machine: `python -m tandem.doctor`; .sdk: flags for C; .rerun: for Rerun's viewer
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from tandem._version import __version__ as __version__

# The doctor must also work if another module of the package cannot be imported. So it imports none of them, and neither
# does this module when `python -m tandem.doctor` runs. The program tandemctl needs only `errors` and `telemetry`, and
# starts in half the time.
if not (sys.argv[:1] == ["-m"] and "tandem.doctor" in sys.orig_argv) and "tandemctl.main" not in sys.modules:
    from tandem.attendant import Attendant
    from tandem.client import AutoresetMode, SharedMemoryClient
    from tandem.engine.options import EngineOptions, FrameOptions, ImageOptions
    from tandem.engine.process import EngineProcess, launch_engine
    from tandem.environments.client_vector import EnvironmentClosed, ResetNeeded
    from tandem.environments.make_vec import list_tasks, make_vec
    from tandem.environments.registration import register_tasks
    from tandem.environments.vector import SharedMemoryVectorEnv
    from tandem.errors import (
        AccessDenied,
        AlreadyAttached,
        BrokenPeer,
        ClientClosed,
        ConcurrentUse,
        EngineFailed,
        EngineStartFailed,
        EnvFailed,
        ForkedChild,
        GpuDriverMissing,
        GpuDriverTooOld,
        GpuFailed,
        GpuOtherContext,
        GpuOtherDevice,
        GpuStaleHandle,
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

    # Besides FastLaneReader, names of MOSAIC's.
    from tandem.fastlane import FastLaneConfig as FastLaneConfig
    from tandem.fastlane import FastLaneFrame as FastLaneFrame
    from tandem.fastlane import FastLaneMetrics as FastLaneMetrics
    from tandem.fastlane import (
        FastLaneReader,
        apply_fastlane_environment,
        publish_frames,
        tile_frames,
    )
    from tandem.fastlane import FastLaneWriter as FastLaneWriter
    from tandem.serving.engine import Engine
    from tandem.serving.serve import serve

    register_tasks()

if TYPE_CHECKING:
    from tandem import doctor, pettingzoo, sdk, services, telemetry, vector

__all__ = [
    "AccessDenied",
    "AlreadyAttached",
    "Attendant",
    "AutoresetMode",
    "BrokenPeer",
    "ClientClosed",
    "ConcurrentUse",
    "Engine",
    "EngineFailed",
    "EngineOptions",
    "EngineProcess",
    "EngineStartFailed",
    "EnvFailed",
    "EnvironmentClosed",
    "FastLaneReader",
    "ForkedChild",
    "FrameOptions",
    "GpuDriverMissing",
    "GpuDriverTooOld",
    "GpuFailed",
    "GpuOtherContext",
    "GpuOtherDevice",
    "GpuStaleHandle",
    "ImageOptions",
    "Interrupted",
    "InvalidAction",
    "InvalidArgument",
    "LayoutMismatch",
    "MessageTooLarge",
    "NoStepPending",
    "NotReady",
    "OutOfSharedMemory",
    "PeerGone",
    "ResetNeeded",
    "RingEmpty",
    "RingFull",
    "SharedMemoryClient",
    "SharedMemoryVectorEnv",
    "StepPending",
    "StepTimeout",
    "SystemCallFailed",
    "TandemError",
    "Unsupported",
    "apply_fastlane_environment",
    "doctor",
    "launch_engine",
    "list_tasks",
    "make_vec",
    "pettingzoo",
    "publish_frames",
    "sdk",
    "serve",
    "services",
    "telemetry",
    "tile_frames",
    "vector",
]

_FRONT = __all__
# It is for linters and type checkers: pydoc would print every class of it in full, and the text above is the help.
del __all__


def __dir__() -> list[str]:
    """Lists the front."""
    return _FRONT


def __getattr__(name: str) -> ModuleType:
    """Imports a submodule when it is first used."""
    if name in ("doctor", "pettingzoo", "sdk", "services", "telemetry", "vector"):
        return importlib.import_module(f"tandem.{name}")
    raise AttributeError(f"module 'tandem' has no attribute {name!r}")
