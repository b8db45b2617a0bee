"""`ServiceInfo`: a service of an engine, and its methods."""

from dataclasses import dataclass

from tandem._native import MethodId
from tandem.services.caller import Caller

_METHODS = set(MethodId)


@dataclass(frozen=True)
class ServiceInfo:
    """One service of an engine.

    Attributes:
      name: "agent", "mujoco", "telemetry", "scene", "camera", "viewport", "debug" or "own".
      enabled: False: switched off, or the engine does not have it.
      methods: The methods that may be called now.
      max_fps: Most items a second of its streams, such as 0.5; 0: it has no streams.
    """

    name: str
    enabled: bool
    methods: frozenset[MethodId]
    max_fps: float


def ask_services(caller: Caller, timeout: float | None) -> dict[str, ServiceInfo]:
    """Returns the engine's services by name; waits `timeout` seconds, None: the client's."""
    return {
        each["name"]: ServiceInfo(
            each["name"],
            each["enabled"],
            frozenset(MethodId(number) for number in each["methods"].tolist() if number in _METHODS),
            each["max_hz"] or float(each["max_fps"]),  # the latter alone from an older engine
        )
        for each in caller.call(MethodId.GetServices, timeout)["services"]
    }
