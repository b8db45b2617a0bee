"""`Callback`: a callback of XuanCe that prints episodes and scalars of the job. Importing this imports xuance."""

from typing import Any

from xuance.common import BaseCallback

from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import job_events, numbers_in

__all__ = ["Callback"]


class Callback(BaseCallback):  # type: ignore[misc]  # xuance has no types
    """Prints each episode and the numbers of each update; `callback=` of an agent."""

    def __init__(self, events: EventWriter | None = None) -> None:
        """Prints by `events`; None: as a job of the daemon does, and nothing outside of one."""
        super().__init__()
        self._events = job_events() if events is None else events
        self._episodes = 0

    def on_train_episode_info(self, **what: Any) -> None:
        """Prints an episode of one environment."""
        env, info = what["env_id"], what["infos"][what["env_id"]]
        self._events.episode(
            episode=self._episodes,
            total_reward=info["episode_score"],
            steps=info["episode_step"],
            metadata={"env": int(env)},
        )
        self._episodes += 1

    def on_train_step_end(self, current_step: int, **what: Any) -> None:
        """Prints the numbers of an update, if there was one."""
        self._events.scalars(current_step, numbers_in(what["train_info"]))
