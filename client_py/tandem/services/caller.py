"""`Caller`: how services call the engine; `Service`: what the services share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tandem._native import MethodId, NativeAttendant, NativeClient
from tandem.arguments import integer
from tandem.arguments import seconds as seconds_of
from tandem.arguments.arrays import env_indices
from tandem.errors import BrokenPeer, EngineFailed, InvalidArgument
from tandem.services.streams import Stream

EnvIds = Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]

_Item = TypeVar("_Item")


class Caller:
    """Calls an engine's methods by the schema's names. Any number of threads may call, also while another steps."""

    def __init__(self, native: NativeClient | NativeAttendant) -> None:
        """Calls through the session of `native`, which must outlive this object."""
        self._rpc = native.rpc
        self.num_envs = native.num_envs  # the same after a reconnect

    def call(self, method: MethodId, timeout: float | None, **fields: Any) -> dict[str, Any]:
        """Calls a method and waits `timeout` seconds, None: the client's; returns the answer's fields.

        None in `fields` is the same as no field. EngineFailed: The engine answered that the method failed.
        """
        wait = None if timeout is None else seconds_of("timeout", timeout)
        return checked(method, self._rpc.call(method, fields, wait))

    def stream(
        self, method: MethodId, timeout: float | None, convert: Callable[[dict[str, Any]], _Item], **fields: Any
    ) -> Stream[_Item]:
        """Opens a stream, whose items `convert` makes from a message's fields; does not wait. Else as `call`."""
        wait = self._rpc.timeout if timeout is None else seconds_of("timeout", timeout)
        return Stream(self._rpc.open(method, fields), lambda values: convert(checked(method, values)), wait)

    def env_id(self, env_id: int) -> int:
        """Returns env_id as int; refuses a number of no environment."""
        return integer("env_id", env_id, 0, self.num_envs - 1, "; nothing was sent")

    def env_ids(self, env_ids: EnvIds | None) -> list[int]:
        """Returns the numbers of the environments that indices or a mask bool[num_envs] choose.

        None, for environment 0 alone, is [], as in the schema. No environment at all is refused.
        """
        if env_ids is None:
            return []
        indices = env_indices(env_ids, self.num_envs)
        if not indices:
            raise InvalidArgument("env_ids: expected at least one environment, found none; nothing was sent")
        return indices


class Service:
    """A group of methods of an engine; a client and an attendant have one object of each service.

    Common to all methods:

    Args:
      env_id: Index of the environment.
      env_ids: Indices, or a mask bool[num_envs]; None: environment 0 alone. With them, a method returns a tuple with
        one value for each, in their order, in place of one value.
      fps: Most items of a stream in a second; None, or more than the engine allows: as many as it allows.
      timeout: Seconds to wait for the answer, or for each item of a stream; None: the client's. Errors of the engine
        come with a stream's first item.

    Raises:
      InvalidArgument: No such environment, or an invalid value, as one out of the task's range; nothing was done.
      Unsupported: The service is off, or the engine lacks it.
      TandemError: See docs/methods.md.
    """

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller


def part(values: dict[str, Any], name: str, what: str) -> dict[str, Any]:
    """Returns a table in the fields of an answer; raises BrokenPeer if it is missing."""
    found: dict[str, Any] | None = values[name]
    if found is None:
        raise BrokenPeer(f"expected {what} in the engine's answer, found none; reconnect(), or close()")
    return found


def checked(method: MethodId, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of an answer unchanged; raises EngineFailed if its field `success` is False."""
    if values.get("success", True):
        return values
    raise EngineFailed(values.get("message") or f"{method.name}: the engine failed and gave no reason")
