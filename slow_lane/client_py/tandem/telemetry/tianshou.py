"""`Logger`: a logger of Tianshou that prints episodes and scalars of the job. Importing this imports tianshou."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tianshou.utils.logger.logger_base import BaseLogger

from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import job_events, numbers_in

__all__ = ["Logger"]


class Logger(BaseLogger):
    """Prints each episode of training, and the numbers of training, updates and tests; `logger=` of the trainer."""

    def __init__(self, events: EventWriter | None = None, **intervals: int) -> None:
        """Prints by `events`; None: as a job of the daemon does. `intervals` are those of Tianshou's `BaseLogger`."""
        super().__init__(**intervals)
        self._events = job_events() if events is None else events
        self._episodes = 0

    def log_training_data(self, log_data: dict[str, Any], step: int) -> None:
        """Prints the episodes of a collection, then its numbers."""
        for total, length in zip(log_data.get("returns", ()), log_data.get("lens", ()), strict=False):
            # Of several agents, the sum.
            self._events.episode(episode=self._episodes, total_reward=np.sum(total), steps=int(length))
            self._episodes += 1
        super().log_training_data(log_data, step)

    def prepare_dict_for_logging(self, log_data: dict[str, Any]) -> dict[str, float]:
        """Returns the numbers, those of nested dicts by "outer/inner"."""
        return numbers_in(log_data)

    def write(self, step_type: str, step: int, data: dict[str, Any]) -> None:
        """Prints numbers under the first part of `step_type`, such as "training"."""
        kind = step_type.partition("/")[0]
        self._events.scalars(step, {f"{kind}/{name}": value for name, value in data.items()})

    def save_data(
        self, epoch: int, env_step: int, update_step: int, save_checkpoint_fn: Callable[..., str] | None = None
    ) -> None:
        """Saves a checkpoint by the trainer's function, if it has one."""
        if save_checkpoint_fn is not None:
            path = save_checkpoint_fn(epoch, env_step, update_step)
            self._events.lifecycle("checkpoint", {"path": str(path), "env_step": env_step})

    def restore_data(self) -> tuple[int, int, int]:
        """Returns epoch, steps and updates of a training that begins."""
        return 0, 0, 0

    def restore_logged_data(self, log_path: str) -> dict[str, Any]:
        """Returns nothing: the daemon has what was logged."""
        del log_path
        return {}

    def finalize(self) -> None:
        """Has nothing to close."""
