"""RPCs to an engine: one module for each service. `SharedMemoryClient` has one object of each."""

from tandem._native import MethodId
from tandem.services.agent import Agent, AgentSchema
from tandem.services.caller import Service
from tandem.services.camera import Camera, CameraInfo
from tandem.services.contract import SimulationContract, UnusedContractFields
from tandem.services.debug import Debug, DebugArrow, DebugLine, DebugVelocityCommand
from tandem.services.images import CameraKind, Image
from tandem.services.mujoco import ControlsSent, JointState, Mujoco, MujocoInfo
from tandem.services.own import Own
from tandem.services.scene import Entity, Scene, SceneInfo, SimulationMode, Transform
from tandem.services.service_info import ServiceInfo
from tandem.services.states import States
from tandem.services.streams import Stream
from tandem.services.telemetry import Telemetry, TelemetryFrame, TelemetrySchema
from tandem.services.viewport import Viewport, ViewportInfo, ViewportStreamConfig

__all__ = [
    "Agent",
    "AgentSchema",
    "Camera",
    "CameraInfo",
    "CameraKind",
    "ControlsSent",
    "Debug",
    "DebugArrow",
    "DebugLine",
    "DebugVelocityCommand",
    "Entity",
    "Image",
    "JointState",
    "MethodId",
    "Mujoco",
    "MujocoInfo",
    "Own",
    "Scene",
    "SceneInfo",
    "Service",
    "ServiceInfo",
    "SimulationContract",
    "SimulationMode",
    "States",
    "Stream",
    "Telemetry",
    "TelemetryFrame",
    "TelemetrySchema",
    "Transform",
    "UnusedContractFields",
    "Viewport",
    "ViewportInfo",
    "ViewportStreamConfig",
]
