"""Environments for tests of vector environments."""

import os
import zlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Results = tuple[Any, Any, Any, Any, Any]


class RandomEnv(gymnasium.Env[Any, Any]):
    """Has any spaces: its observations are random samples, and its reward is a checksum of the action."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], length: int = 7) -> None:
        """Takes the spaces, which other environments may use, too, and the length of episodes."""
        self.observation_space, self.action_space = observation_space, action_space
        self._length = length
        self._steps = 0
        self._seed = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        self._seed = self._seed + 1 if seed is None else seed
        self._steps = 0
        return self._sample(), {}

    def step(self, action: Any) -> Results:
        """Ends the episode after `length` steps."""
        self._steps += 1
        reward = float(zlib.crc32(_described(action).encode("utf-8", "surrogatepass")))
        return self._sample(), reward, self._steps == self._length, False, {}

    def _sample(self) -> Any:
        self.observation_space.seed(self._seed * 1000 + self._steps)
        return self.observation_space.sample()


def _described(action: Any) -> str:
    """Returns types, dtypes, shapes and digits of an action."""
    if isinstance(action, np.ndarray | np.generic):
        kind = "array" if isinstance(action, np.ndarray) else "number"
        return f"{kind} {action.dtype.str} {action.shape} {action.tobytes().hex()}"
    if isinstance(action, dict):
        return f"dict {[(key, _described(value)) for key, value in action.items()]}"
    if isinstance(action, tuple):
        return f"{type(action).__name__} {list(map(_described, action))}"
    return repr(action)


class ScriptedEnv(gymnasium.Env[Any, Any]):
    """Returns what a function says.

    The observation is a Box, whose first value is the number of steps since the last reset, in an array that the
    environment uses again in each call.

    Attributes:
      calls: What was called: "reset", "step", with the seed or action.
    """

    observation_space = spaces.Box(0, 100, (2,), np.float32)
    action_space = spaces.Discrete(5)

    def __init__(
        self,
        infos: Callable[[int], Any] = lambda step: {},
        on_step: Callable[["ScriptedEnv", Results], Any] = lambda env, results: results,
        on_reset: Callable[["ScriptedEnv", tuple[Any, Any]], Any] = lambda env, results: results,
        length: int = 3,
    ) -> None:
        """Takes the script.

        Args:
          infos: Returns the info, from the number of calls so far.
          on_step: Returns what `step` returns, from the environment and its own results; or raises.
          on_reset: The same for `reset`.
          length: Of an episode, in steps.
        """
        self._infos, self._on_step, self._on_reset, self._length = infos, on_step, on_reset, length
        self.calls: list[tuple[str, Any]] = []
        self.options: Any = None
        self.obs = np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Sets the number of steps to 0."""
        self.calls.append(("reset", seed))
        self.options = options
        self.obs[0] = 0
        return self._on_reset(self, (self.obs, self._infos(len(self.calls))))

    def step(self, action: Any) -> Any:
        """Adds 1 to the number of steps; the reward is this number."""
        self.calls.append(("step", action))
        self.obs[0] += 1
        steps = int(self.obs[0])
        return self._on_step(self, (self.obs, steps, steps == self._length, False, self._infos(len(self.calls))))

    def process(self) -> int:
        """Returns the number of the process that steps it."""
        return os.getpid()
