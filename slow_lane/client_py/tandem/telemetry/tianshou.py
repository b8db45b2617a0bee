"""`Logger`: a logger of Tianshou that prints episodes and scalars of the job. Importing this imports tianshou."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tianshou.data import BaseCollector
from tianshou.env import BaseVectorEnv, VectorEnvWrapper
from tianshou.utils.logger.logger_base import BaseLogger

from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import job_events, numbers_in

__all__ = ["Logger"]


class Logger(BaseLogger):
    """Prints each episode of training, and the numbers of training, updates and tests; `logger=` of the trainer.

    Tianshou's own lengths, such as training/lens_stat/mean, count the steps since the last on-policy update alone.
    """

    def __init__(self, collector: BaseCollector[Any], events: EventWriter | None = None, **intervals: int) -> None:
        """Wraps the environments of the training's collector.

        Prints by `events`; None: as a job of the daemon does. `intervals` are those of Tianshou's `BaseLogger`.
        """
        super().__init__(**intervals)
        self._events = job_events() if events is None else events
        self._episodes = 0
        self._envs = collector.env = _Counted(collector.env)

    def log_training_data(self, log_data: dict[str, Any], step: int) -> None:
        """Prints the episodes of a collection, then its numbers."""
        ended = self._envs.ended
        for each in ended[len(ended) - log_data["n_collected_episodes"] :]:  # before them, those of other collections
            self._events.episode(episode=self._episodes, **each)
            self._episodes += 1
        ended.clear()
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


class _Counted(VectorEnvWrapper):
    """Counts the episodes that have ended; those that a reset cuts short do not count."""

    def __init__(self, venv: BaseVectorEnv) -> None:
        super().__init__(venv)
        self._returns, self._lengths = np.zeros(len(venv)), np.zeros(len(venv), np.int64)
        self.ended: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        """Returns what Tianshou's wrapper does without, such as the waiting_id that an AsyncCollector reads."""
        return getattr(self.venv, name)

    def reset(self, env_id: Any = None, **kwargs: Any) -> Any:
        chosen = slice(None) if env_id is None else env_id
        self._returns[chosen] = self._lengths[chosen] = 0
        return self.venv.reset(env_id, **kwargs)

    def step(self, action: Any, id: Any = None) -> Any:
        result = self.venv.step(action, id)
        _, rewards, terminations, truncations, infos = result
        envs = np.array([info["env_id"] for info in infos])
        self._returns[envs] += np.reshape(rewards, (len(envs), -1)).sum(1)  # of several agents, the sum
        self._lengths[envs] += 1
        for row in np.flatnonzero(np.logical_or(terminations, truncations)):
            env = envs[row]
            counts = {"total_reward": self._returns[env], "steps": self._lengths[env], "metadata": {"env": env}}
            self.ended.append({**counts, "terminated": bool(terminations[row]), "truncated": bool(truncations[row])})
        return result
