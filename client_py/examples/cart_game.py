"""An engine in Python with all that an engine can have: a cart that is pushed along a line, and seen.

    python cart_game.py --num_envs 4 --name demo --frames 320x240

Its observation is an image, `obs["image"]`. It has frames for viewers, a camera, numbers for telemetry, a contract that
draws the friction, and a method of its own: `client.call("set_wind", b"3")`.
"""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.services import SimulationContract
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index, OwnMethod

_SIDE = 36  # pixels: the least that the CNN of Stable-Baselines3 takes
_STEP_SECS = 1 / 60
_ORANGE = (255, 140, 0)


class CartGame(tandem.Engine):
    """A cart at -1 to 1; the episode ends at 1."""

    task = "PythonCartGame"
    observation_space = spaces.Dict({"image": spaces.Box(0, 255, (_SIDE, _SIDE, 3), np.uint8)})
    action_space = spaces.Box(-1, 1, (1,))
    step_secs = _STEP_SECS
    joint_names = ("at", "speed")
    cameras = ("side",)
    own_methods = {"set_wind": OwnMethod("text/plain", "Sets a force on all carts, a number; answers ok.")}

    def __init__(self, num_envs: int, *, truncate_after: int = 200) -> None:
        """Makes the state of all environments."""
        self.num_envs = num_envs
        self.max_episode_steps = truncate_after
        self._at, self._speed, self._friction = np.zeros((3, num_envs))
        self._steps = np.zeros(num_envs, np.int64)
        self._wind = 0.0
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._contracts: dict[int, tuple[SimulationContract, np.random.Generator]] = {}

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Places each cart in the left half; its friction is the contract's."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            if seed is not None:
                self._random[env] = np.random.default_rng(seed)
            self._at[env] = self._random[env].uniform(-1, 0)
            self._friction[env] = 0.5
            if env in self._contracts:
                contract, draws = self._contracts[env]
                assert contract.friction_range is not None
                self._friction[env] = draws.uniform(*contract.friction_range)
        self._speed[envs] = self._steps[envs] = 0
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Pushes the carts for one step."""
        push = np.clip(arrays.actions[envs, 0], -1, 1)
        speed = self._speed[envs]
        speed = speed + (4 * push + self._wind - self._friction[envs] * speed) * _STEP_SECS
        at = self._at[envs] + speed * _STEP_SECS
        stops = ~(at >= -1)  # at NaN, too
        self._speed[envs] = np.where(stops, 0, speed)
        self._at[envs] = np.where(stops, -1, np.minimum(at, 1))
        self._steps[envs] += 1
        arrays.rewards[envs] = self._at[envs] - 1
        arrays.terminateds[envs] = self._at[envs] == 1
        arrays.truncateds[envs] = self._steps[envs] == self.max_episode_steps  # 0: no limit
        self._observe(envs, arrays)

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        for env in range(self.num_envs) if isinstance(envs, slice) else envs:
            arrays.obs["image"][env] = self.render(env, "side", _SIDE, _SIDE)

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Returns an image of the cart, for the observation, frames, and the services camera and viewport."""
        image = np.full((height, width, 3), 30 + self._steps[env] % 100, np.uint8)
        image[height // 2 :, int((self._at[env] + 1) / 2 * (width - 1))] = _ORANGE
        return image

    def joints(self, env: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the positions, those of `joint_names`, and the speed, for the services mujoco and telemetry."""
        return np.array([self._at[env], self._speed[env]]), self._speed[env : env + 1]

    def set_contract(self, envs: Sequence[int], contract: SimulationContract | None, seed: int | None) -> list[str]:
        """Draws the friction of later episodes from the contract's range."""
        given = {} if contract is None else contract.given()
        for env in envs:
            self._contracts.pop(env, None)
            if contract is not None and "friction_range" in given:
                draws = np.random.default_rng(None if seed is None else seed + env)
                self._contracts[env] = contract, draws
        return [name for name in given if name != "friction_range"]

    def call_own(self, name: str, data: bytes) -> bytes:
        """Sets the wind."""
        try:
            wind = float(data)
        except ValueError:
            wind = np.nan
        if not np.isfinite(wind):
            raise tandem.InvalidArgument(f"set_wind: expected a finite number, found {data[:20]!r}")
        self._wind = wind
        return b"ok"

    def clear_client_state(self) -> None:
        """The next client finds no wind and no contracts."""
        self._wind = 0.0
        self._contracts.clear()


if __name__ == "__main__":
    tandem.serve_program(CartGame)
