"""`ClientServices`: the part of `SharedMemoryClient` that commands the engine."""

from typing import overload

from tandem._native import NativeClient
from tandem.services.agent import Agent, AgentSchema
from tandem.services.caller import Caller, EnvIds
from tandem.services.camera import Camera
from tandem.services.debug import Debug
from tandem.services.mujoco import Mujoco
from tandem.services.scene import Scene
from tandem.services.service_info import ServiceInfo, ask_services
from tandem.services.telemetry import Telemetry
from tandem.services.viewport import Viewport


class ClientServices:
    """Commands to the engine. Any number of threads may call them, also while another steps: docs/commands.md.

    They stay the same objects through `reconnect`, which ends calls that wait and streams that are open.
    """

    def __init__(self, native: NativeClient) -> None:
        """Calls through a session.

        Args:
          native: The session's client; it outlives this.
        """
        self._caller = caller = Caller(native)
        self._agent, self._mujoco, self._telemetry = Agent(caller), Mujoco(caller), Telemetry(caller)
        self._scene, self._camera, self._viewport = Scene(caller), Camera(caller), Viewport(caller)
        self._debug = Debug(caller)

    @property
    def agent(self) -> Agent:
        """What is observed and done, and the contract that environments run under."""
        return self._agent

    @property
    def mujoco(self) -> Mujoco:
        """Joints and actuators."""
        return self._mujoco

    @property
    def telemetry(self) -> Telemetry:
        """A record of the run, at a bounded rate."""
        return self._telemetry

    @property
    def scene(self) -> Scene:
        """What is in the environments, and how simulated time runs."""
        return self._scene

    @property
    def camera(self) -> Camera:
        """Pictures from the environments' cameras."""
        return self._camera

    @property
    def viewport(self) -> Viewport:
        """Pictures as a person at the engine would see them."""
        return self._viewport

    @property
    def debug(self) -> Debug:
        """Lines and arrows in the pictures."""
        return self._debug

    def services(self, *, timeout: float | None = None) -> dict[str, ServiceInfo]:
        """Asks what the engine serves.

        Args:
          timeout: Seconds; None: the client's.

        Returns:
          Name, such as "camera" -> service.

        Raises:
          TandemError: As every call: docs/commands.md.
        """
        return ask_services(self._caller, timeout)

    @overload
    def get_schema(self, env_ids: None = None, *, timeout: float | None = None) -> AgentSchema: ...
    @overload
    def get_schema(self, env_ids: EnvIds, *, timeout: float | None = None) -> tuple[AgentSchema, ...]: ...
    def get_schema(
        self, env_ids: EnvIds | None = None, *, timeout: float | None = None
    ) -> AgentSchema | tuple[AgentSchema, ...]:
        """Asks what agents observe and do: `agent.schema`.

        Args:
          env_ids: As there.
          timeout: As there.

        Returns:
          As there.

        Raises:
          TandemError: As there.
        """
        return self._agent.schema(env_ids, timeout=timeout)
