"""`EngineServices`: the services of an engine, as a client or an attendant has them."""

from typing import overload

from tandem._native import MethodId, NativeAttendant, NativeClient
from tandem.arguments import flag, text
from tandem.services.agent import Agent, AgentSchema
from tandem.services.caller import Caller, EnvIds
from tandem.services.camera import Camera
from tandem.services.debug import Debug
from tandem.services.mujoco import Mujoco
from tandem.services.own import Own
from tandem.services.scene import Scene
from tandem.services.service_info import ServiceInfo, ask_services
from tandem.services.telemetry import Telemetry
from tandem.services.viewport import Viewport


class EngineServices:
    """The services of an engine. Any number of threads may call them, also while another steps: docs/commands.md.

    A client's `reconnect` keeps these objects; it ends calls that wait and streams that are open.
    """

    def __init__(self, native: NativeClient | NativeAttendant) -> None:
        """Calls through the session of `native`, which must outlive this object."""
        self._caller = caller = Caller(native)
        self.agent, self.mujoco, self.telemetry = Agent(caller), Mujoco(caller), Telemetry(caller)
        self.scene, self.camera, self.viewport = Scene(caller), Camera(caller), Viewport(caller)
        self.debug, self.own = Debug(caller), Own(caller)

    def services(self, *, timeout: float | None = None) -> dict[str, ServiceInfo]:
        """Returns the engine's services by name, such as "camera"."""
        return ask_services(self._caller, timeout)

    def set_service(self, name: str, enabled: bool, *, timeout: float | None = None) -> None:
        """Switches a service of `services` on or off, for all callers of the engine, until it is switched again.

        Later calls of a service that is off raise Unsupported; its open streams end with that error. An engine that is
        started again begins with the services that its program switches on.

        Raises:
          InvalidArgument: No service has this name.
          Unsupported: The engine lacks the service.
        """
        fields = {"name": text("name", name, "; nothing was sent"), "enabled": flag("enabled", enabled)}
        self._caller.call(MethodId.SetService, timeout, **fields)

    def call(self, name: str, data: bytes = b"", *, timeout: float | None = None) -> bytes:
        """Calls `own.call`."""
        return self.own.call(name, data, timeout=timeout)

    @overload
    def get_schema(self, env_ids: None = None, *, timeout: float | None = None) -> AgentSchema: ...
    @overload
    def get_schema(self, env_ids: EnvIds, *, timeout: float | None = None) -> tuple[AgentSchema, ...]: ...
    def get_schema(
        self, env_ids: EnvIds | None = None, *, timeout: float | None = None
    ) -> AgentSchema | tuple[AgentSchema, ...]:
        """Calls `agent.schema`."""
        return self.agent.schema(env_ids, timeout=timeout)
