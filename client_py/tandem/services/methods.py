"""`MethodId`: what can be called."""

import enum


class MethodId(enum.IntEnum):
    """Methods of the services, numbered and named as in the message schema."""

    GetAgentSchema = 1
    ResetAgent = 2
    GetJointState = 16
    GetMujocoInfo = 17
    SendControl = 18
    StreamJointState = 19
    GetTelemetrySchema = 32
    StreamTelemetry = 33
    GetSceneInfo = 48
    ListEntities = 49
    GetEntity = 50
    SetEntityTransform = 51
    SetSimulationMode = 52
    GetSimulationMode = 53
    SetPaused = 54
    SingleStep = 55
    ListCameras = 64
    GetCameraFrame = 65
    StreamCamera = 66
    GetViewportInfo = 80
    GetViewportFrame = 81
    StreamViewport = 82
    Draw = 96
    CancelStream = 240
    GetServices = 241
