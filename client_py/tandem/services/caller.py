"""`Caller`: what a client's services call the engine through."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tandem._native import NativeClient
from tandem.arguments import env_indices, integer
from tandem.arguments import seconds as seconds_of
from tandem.errors import EngineFailed, InvalidArgument
from tandem.services.methods import MethodId
from tandem.services.streams import Stream

EnvIds = Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]

_Item = TypeVar("_Item")


class Caller:
    """Calls an engine's methods by the schema's names. Any number of threads may, also while another steps."""

    def __init__(self, native: NativeClient) -> None:
        """Calls through a session.

        Args:
          native: The session's client; it outlives this.
        """
        self._rpc = native.rpc
        self.num_envs = native.num_envs  # the same after a reconnect

    def call(self, method: MethodId, timeout: float | None, **fields: Any) -> dict[str, Any]:
        """Calls, and waits for the answer.

        Args:
          method: Which.
          timeout: Seconds; None: the client's.
          fields: Of the request; None is the same as left out.

        Returns:
          The answer's fields.

        Raises:
          EngineFailed: The engine answered that it could not.
          TandemError: What the engine, or the way to it, has to say.
        """
        wait = None if timeout is None else seconds_of("timeout", timeout)
        return checked(method, self._rpc.call(method, fields, wait))

    def stream(
        self, method: MethodId, timeout: float | None, convert: Callable[[dict[str, Any]], _Item], **fields: Any
    ) -> Stream[_Item]:
        """Opens a stream; doesn't wait.

        Args:
          method: Which.
          timeout: Seconds to wait for each item; None: the client's.
          convert: Makes an item of its fields.
          fields: Of the request; None is the same as left out.

        Returns:
          The stream.

        Raises:
          TandemError: As `call`; what the engine says comes with the first item.
        """
        wait = self._rpc.timeout if timeout is None else seconds_of("timeout", timeout)
        return Stream(self._rpc.open(method, fields), lambda values: convert(checked(method, values)), wait)

    def env_id(self, env_id: int) -> int:
        """Checks the number of an environment.

        Args:
          env_id: It.

        Returns:
          It, as a Python integer.

        Raises:
          InvalidArgument: There is no such environment.
        """
        return integer("env_id", env_id, 0, self.num_envs - 1, "; nothing was sent")

    def env_ids(self, env_ids: EnvIds | None) -> list[int]:
        """Checks which environments are meant.

        Args:
          env_ids: Numbers, or a mask bool[num_envs]; None: environment 0 alone.

        Returns:
          Their numbers; [] for None, which is how the schema says it.

        Raises:
          InvalidArgument: There is no such environment, or none is meant.
        """
        if env_ids is None:
            return []
        indices = env_indices(env_ids, self.num_envs)
        if not indices:
            raise InvalidArgument("env_ids: expected at least one environment, found none; nothing was sent")
        return indices


def checked(method: MethodId, values: dict[str, Any]) -> dict[str, Any]:
    """Raises what an answer says went wrong.

    Args:
      method: What was called.
      values: The answer's fields.

    Returns:
      They.

    Raises:
      EngineFailed: It has "success", and that is False.
    """
    if values.get("success", True):
        return values
    raise EngineFailed(values.get("message") or f"{method.name}: the engine could not, and did not say why")


def fps_of(fps: int | None) -> int:
    """Checks a rate.

    Args:
      fps: Items a second; None: as many as the engine allows.

    Returns:
      As the schema has it, where 0 is for None.

    Raises:
      InvalidArgument: No integer from 1.
    """
    return 0 if fps is None else integer("fps", fps, 1, 2**32 - 1, "; nothing was sent")
