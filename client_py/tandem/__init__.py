"""Tandem: simulation engines in processes of their own, stepped through shared memory.

`make_vec` gives Gymnasium's environments in an engine of their own. Beneath it, `launch_engine` starts an engine and
`SharedMemoryClient` steps its environments, and commands the engine beside the steps. `publish_frames` shows any
environment's run live, through the Fast Lane (`FastLaneWriter`, `FastLaneReader`). Every error derives from
`TandemError`.
"""

import sys

from tandem._version import __version__

# The doctor is there for what is broken in the rest: it imports none of it, and nor does this module for it.
if not (sys.argv[:1] == ["-m"] and "tandem.doctor" in sys.orig_argv):
    from tandem.client import AutoresetMode, ClientStats, SharedMemoryClient
    from tandem.engine_process import EngineProcess, launch_engine
    from tandem.environments import make_vec
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
    from tandem.fastlane import (
        FastLaneConfig,
        FastLaneFrame,
        FastLaneMetrics,
        FastLaneReader,
        FastLaneWriter,
        apply_fastlane_environment,
        publish_frames,
        tile_frames,
    )
    from tandem.registration import register_tasks
    from tandem.restart import RestartingVectorEnv
    from tandem.services import (
        AgentSchema,
        CameraInfo,
        CameraKind,
        ControlsSent,
        DebugArrow,
        DebugLine,
        DebugVelocityCommand,
        Entity,
        Image,
        JointState,
        MethodId,
        MujocoInfo,
        SceneInfo,
        ServiceInfo,
        SimulationContract,
        SimulationMode,
        Stream,
        TelemetryFrame,
        TelemetrySchema,
        Transform,
        UnusedContractFields,
        ViewportInfo,
        ViewportStreamConfig,
    )
    from tandem.vector import SharedMemoryVectorEnv

    register_tasks()

__all__ = [
    "AccessDenied",
    "AgentSchema",
    "AlreadyAttached",
    "AutoresetMode",
    "BrokenPeer",
    "CameraInfo",
    "CameraKind",
    "ClientClosed",
    "ClientStats",
    "ConcurrentUse",
    "ControlsSent",
    "DebugArrow",
    "DebugLine",
    "DebugVelocityCommand",
    "EngineFailed",
    "EngineProcess",
    "EngineStartFailed",
    "Entity",
    "FastLaneConfig",
    "FastLaneFrame",
    "FastLaneMetrics",
    "FastLaneReader",
    "FastLaneWriter",
    "ForkedChild",
    "Image",
    "Interrupted",
    "InvalidAction",
    "InvalidArgument",
    "JointState",
    "LayoutMismatch",
    "MessageTooLarge",
    "MethodId",
    "MujocoInfo",
    "NoStepPending",
    "NotReady",
    "OutOfSharedMemory",
    "PeerGone",
    "RestartingVectorEnv",
    "RingEmpty",
    "RingFull",
    "SceneInfo",
    "ServiceInfo",
    "SharedMemoryClient",
    "SharedMemoryVectorEnv",
    "SimulationContract",
    "SimulationMode",
    "StepPending",
    "StepTimeout",
    "Stream",
    "SystemCallFailed",
    "TandemError",
    "TelemetryFrame",
    "TelemetrySchema",
    "Transform",
    "Unsupported",
    "UnusedContractFields",
    "ViewportInfo",
    "ViewportStreamConfig",
    "__version__",
    "apply_fastlane_environment",
    "launch_engine",
    "make_vec",
    "publish_frames",
    "tile_frames",
]
