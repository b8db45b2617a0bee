"""`Telemetry`: positions and controls of environments, at a bounded rate."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem._native import MethodId
from tandem.arguments import or_zero
from tandem.services.caller import EnvIds, Service, part
from tandem.services.streams import Stream


@dataclass(frozen=True)
class TelemetrySchema:
    """Sizes and names of the numbers in a frame's `observation_qpos` (nq) and `action_ctrl` (nu); empty: unknown."""

    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    nq: int
    nu: int


@dataclass(frozen=True, eq=False)
class TelemetryFrame:
    """One environment at one moment.

    Attributes:
      frame_number: The moment's number in the stream, from 1. `Stream.number` also counts moments that the engine
        skipped.
      frame_seq: Exchanges that the engine had answered by then.
      timestamp_ms: Wall clock: milliseconds since the Unix epoch.
      observation_qpos: MuJoCo's qpos, float32[nq]; the caller's own.
      action_ctrl: MuJoCo's ctrl of the last step, float32[nu]; the caller's own.
    """

    env_id: int
    frame_number: int
    frame_seq: int
    timestamp_ms: int
    observation_qpos: NDArray[np.float32]
    action_ctrl: NDArray[np.float32]


class Telemetry(Service):
    """Streams positions and controls; `client.telemetry` is one."""

    def schema(self, *, timeout: float | None = None) -> TelemetrySchema:
        """Returns sizes and names of the numbers in telemetry frames."""
        schema = part(self._caller.call(MethodId.GetTelemetrySchema, timeout), "schema", "a schema")
        return TelemetrySchema(
            tuple(schema["observation_names"]), tuple(schema["action_names"]), schema["nq"], schema["nu"]
        )

    def stream(
        self, env_ids: EnvIds | None = None, *, fps: int | None = None, timeout: float | None = None
    ) -> Stream[TelemetryFrame]:
        """Opens a stream of frames: at each moment, `fps` of them a second, one for each of `env_ids`."""
        return self._caller.stream(
            MethodId.StreamTelemetry,
            timeout,
            _frame,
            target_fps=or_zero("fps", fps),
            env_ids=self._caller.env_ids(env_ids),
        )


def _frame(values: dict[str, Any]) -> TelemetryFrame:
    del values["task_index"]  # always 0
    return TelemetryFrame(**values)
