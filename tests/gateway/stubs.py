"""Calls of a gateway with stubs made of schema/protos/hazel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
import schema.protos.hazel.agent_pb2 as agent_pb2
import schema.protos.hazel.agent_pb2_grpc as agent_pb2_grpc
import schema.protos.hazel.camera_pb2 as camera_pb2
import schema.protos.hazel.debug_pb2 as debug_pb2
import schema.protos.hazel.mujoco_pb2 as mujoco_pb2
import schema.protos.hazel.mujoco_pb2_grpc as mujoco_pb2_grpc
import schema.protos.hazel.mujoco_scene_pb2 as mujoco_scene_pb2
import schema.protos.hazel.scene_pb2 as scene_pb2
import schema.protos.hazel.telemetry_pb2 as telemetry_pb2
import schema.protos.hazel.viewport_pb2 as viewport_pb2

import tandem
from tandem.engine.process import EngineProcess, launch_engine
from tandem.testing.gateways import Gateway

SERVER = "engine_adapter/server/server"
SERVICES = [
    service
    for module in (
        agent_pb2,
        camera_pb2,
        debug_pb2,
        mujoco_pb2,
        mujoco_scene_pb2,
        scene_pb2,
        telemetry_pb2,
        viewport_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
]
SECS = 60.0  # of a call; a watchdog
ZEROS = [0.0] * 6


def engine(name: str, task: str = "HalfCheetah-v5", **options: Any) -> EngineProcess:
    """Starts an engine of a region."""
    return launch_engine(task, name=name, server=SERVER, **options)


class Stubs:
    """Calls of one channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        """Makes no call."""
        self.channel = channel
        self.agent = agent_pb2_grpc.AgentServiceStub(channel)
        self.mujoco = mujoco_pb2_grpc.MujocoServiceStub(channel)

    def reset(self, agent: str = "") -> agent_pb2.ResetAgentResponse:
        """Calls ResetAgent."""
        return self.agent.ResetAgent(agent_pb2.ResetAgentRequest(agent_name=agent), timeout=SECS)

    def step(self, actions: list[float], **fields: object) -> agent_pb2.StepResponse:
        """Calls Step."""
        return self.agent.Step(agent_pb2.StepRequest(actions=actions, **fields), timeout=SECS)

    def mujoco_info(self, robot: str = "") -> mujoco_pb2.GetMujocoInfoResponse:
        """Calls GetMujocoInfo."""
        return self.mujoco.GetMujocoInfo(mujoco_pb2.GetMujocoInfoRequest(robot_name=robot), timeout=SECS)

    def schema(self) -> agent_pb2.AgentSchema:
        """Calls GetAgentSchema."""
        return self.agent.GetAgentSchema(agent_pb2.GetAgentSchemaRequest(), timeout=SECS).schema


@contextmanager
def connected(gateway: Gateway, tls: grpc.ChannelCredentials | None = None) -> Iterator[Stubs]:
    """Returns stubs with a connection of their own."""
    # Otherwise channels of one process share a connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    address = gateway.address
    with grpc.secure_channel(address, tls, options) if tls else grpc.insecure_channel(address, options) as channel:
        yield Stubs(channel)


@contextmanager
def refused(code: grpc.StatusCode, *words: str) -> Iterator[None]:
    """Checks that the block's call fails with this code and these words."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    assert caught.value.code() == code, caught.value
    for word in words:
        assert word in caught.value.details(), caught.value


def attach_when_free(name: str) -> tandem.SharedMemoryClient:
    """Attaches as soon as no client has the slot; a test's watchdog ends the wait."""
    while True:
        try:
            return tandem.SharedMemoryClient(name)
        except tandem.AlreadyAttached:
            continue
