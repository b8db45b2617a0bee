"""Stable-Baselines3 as a job of the daemon: `Callback`, and `RecordEpisodes` for a training without callbacks.

    model.learn(1_000_000, callback=tandem.telemetry.sb3.Callback())

Importing this imports torch. Outside of a job of the daemon nothing is printed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, unwrap_vec_normalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from tandem.telemetry.episode_counter import EpisodeCounter
from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import begin_run, job_events, numbers_in

__all__ = ["Callback", "RecordEpisodes"]


class _Scalars(KVWriter):
    """Prints every number of the logger; those of evaluations, too, as `EvalCallback` logs them."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self._events.scalars(step, numbers_in(key_values))

    def close(self) -> None:
        """Has nothing to close."""


class _Episodes:
    """Counts the episodes of a VecEnv's steps, whose rewards are those of the environments themselves."""

    def __init__(self, events: EventWriter, num_envs: int) -> None:
        self._counter = EpisodeCounter(events, num_envs)

    def step(self, rewards: NDArray[Any], dones: NDArray[Any], infos: Sequence[dict[str, Any]]) -> None:
        self._counter.count(rewards)
        ended = np.asarray(dones, np.bool_)
        if not ended.any():
            return
        truncated = ended & [bool(info.get("TimeLimit.truncated")) for info in infos]
        errors = {env: info["env_error"] for env, info in enumerate(infos) if "env_error" in info}
        self._counter.end(ended, ended & ~truncated, truncated, errors)
        self._counter.begin(ended)


class Callback(BaseCallback):
    """Prints a training: the run's begin and its end with the program, each episode, and each number that it logs.

    For every algorithm of Stable-Baselines3, sb3-contrib and SBX. The returns are those of the environments, also below
    `VecNormalize`.
    """

    def __init__(self, events: EventWriter | None = None) -> None:
        """Prints by `events`; None: as a job of the daemon does, and nothing outside of one."""
        super().__init__()
        self._events = job_events() if events is None else events

    def _on_training_start(self) -> None:
        model, envs = self.model, self.training_env
        facts = {"algo": type(model).__name__, "num_envs": envs.num_envs, "seed": model.seed}
        begin_run(self._events, facts)
        self._episodes = _Episodes(self._events, envs.num_envs)
        self._normalize = unwrap_vec_normalize(envs)
        self._scalars = _Scalars(self._events)
        self.logger.output_formats.append(self._scalars)

    def _on_step(self) -> bool:
        rewards = self.locals["rewards"] if self._normalize is None else self._normalize.get_original_reward()
        self._episodes.step(rewards, self.locals["dones"], self.locals["infos"])
        return True

    def _on_training_end(self) -> None:
        self.logger.output_formats.remove(self._scalars)


class RecordEpisodes(VecEnvWrapper):
    """Prints an event at the end of each episode of any VecEnv, such as `make_vec(...).as_sb3()`."""

    def __init__(self, venv: VecEnv, events: EventWriter | None = None) -> None:
        """Wraps a VecEnv; `events` as for `Callback`."""
        super().__init__(venv)
        self._events = job_events() if events is None else events
        self._episodes = _Episodes(self._events, self.num_envs)

    def reset(self) -> VecEnvObs:
        """Resets all environments; unfinished episodes have no event."""
        self._episodes = _Episodes(self._events, self.num_envs)
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Returns the environments' results."""
        result = self.venv.step_wait()
        self._episodes.step(result[1], result[2], result[3])
        return result
