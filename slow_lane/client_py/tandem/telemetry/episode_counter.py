"""`EpisodeCounter`: returns, lengths and numbers of several environments' episodes, and the events of their ends."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.telemetry.events import EventWriter

_Mask = NDArray[np.bool_]


class EpisodeCounter:
    """Counts episodes; each step is `count`, then `end`, then `begin` for the episodes that begin in this step.

    Attributes:
      numbers: int64[num_envs], of the environments' episodes, from 0 in the order in which they begin; those that begin
        together, in the order of their environments.
      lengths: int64[num_envs], steps so far.
      ended: The number of events of ended episodes.
    """

    def __init__(self, events: EventWriter, num_envs: int) -> None:
        """Begins the first episode of each environment."""
        self._events = events
        self._returns = np.zeros(num_envs)
        self.lengths = np.zeros(num_envs, np.int64)
        self.numbers = np.arange(num_envs)
        self._begun = num_envs
        self.ended = 0
        self._steps = self._errors = 0

    def count(self, rewards: Any, stepped: _Mask | slice = slice(None)) -> None:
        """Adds a step's rewards, float[num_envs], of the environments that it stepped."""
        self._returns[stepped] += np.asarray(rewards)[stepped]
        self.lengths[stepped] += 1
        self._steps += self.lengths[stepped].size

    def end(self, ended: _Mask, terminations: Any, truncations: Any, errors: Mapping[int, str]) -> None:
        """Prints an event for each ended episode; `errors` are texts of exceptions, by environment.

        Their number in all episodes is the scalar "env_errors", whose step counts those of all environments.
        """
        if errors:
            self._errors += len(errors)
            self._events.scalars(self._steps, {"env_errors": self._errors})
        for index in np.flatnonzero(ended).tolist():
            metadata: dict[str, object] = {"env": index}
            if index in errors:
                metadata["error"] = errors[index]
            self._events.episode(
                episode=self.numbers[index],
                total_reward=self._returns[index],
                steps=self.lengths[index],
                terminated=bool(terminations[index]),
                truncated=bool(truncations[index]),
                metadata=metadata,
            )
            self.ended += 1

    def begin(self, chosen: _Mask) -> None:
        """Begins the next episode of the chosen environments."""
        count = int(np.count_nonzero(chosen))
        if not count:
            return
        self.numbers[chosen] = np.arange(self._begun, self._begun + count)
        self._begun += count
        self._returns[chosen] = 0
        self.lengths[chosen] = 0
