"""`Callbacks`: callbacks of RLlib that print episodes and scalars of the job. Importing this imports ray.

config = PPOConfig().callbacks(tandem.telemetry.rllib.Callbacks)
"""

from typing import Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from tandem.telemetry.tracking import job_events, numbers_in

__all__ = ["Callbacks"]

_RETURNS, _LENGTHS = "tandem_returns", "tandem_lengths"


class Callbacks(RLlibCallback):
    """Prints each episode of the runners, which may be on other machines, and the numbers of each iteration."""

    def __init__(self) -> None:
        """Prints as a job of the daemon does, and nothing outside of one."""
        super().__init__()
        self._events = job_events()
        self._episodes = 0

    def on_episode_end(self, *, episode: Any, metrics_logger: Any = None, **_: Any) -> None:
        """Takes an episode's return and length to the algorithm's process."""
        for name, value in ((_RETURNS, episode.get_return()), (_LENGTHS, len(episode))):
            metrics_logger.log_value(name, value, reduce="item_series")

    def on_train_result(self, *, result: dict[str, Any], **_: Any) -> None:
        """Prints the episodes since the last iteration, then the numbers of this one."""
        runners = result.get("env_runners", {})
        for total, length in zip(runners.pop(_RETURNS, ()), runners.pop(_LENGTHS, ()), strict=False):
            self._events.episode(episode=self._episodes, total_reward=total, steps=int(length))
            self._episodes += 1
        numbers = numbers_in({name: value for name, value in result.items() if name != "config"})
        self._events.scalars(int(runners.get("num_env_steps_sampled_lifetime", 0)), numbers)
