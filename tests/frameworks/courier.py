"""An environment with a picture, a vector and two actions; its module imports no framework."""

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Courier(gymnasium.Env[Any, Any]):
    """Has a picture and a vector; carries nothing."""

    def __init__(self, size: int = 36) -> None:
        """Takes the height of the picture."""
        self.observation_space = spaces.Dict(
            {"image": spaces.Box(0, 255, (size, 48, 3), np.uint8), "vector": spaces.Box(-1, 1, (5,), np.float32)}
        )
        self.action_space = spaces.MultiDiscrete([3, 3])
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Ends the episode after 20 steps."""
        self.steps += 1
        return self.observation_space.sample(), float(action[0] == 1), self.steps == 20, False, {}

    def modules(self) -> list[str]:
        """Returns which of these packages this process has imported."""
        return [name for name in ("stable_baselines3", "torch") if name in sys.modules]
