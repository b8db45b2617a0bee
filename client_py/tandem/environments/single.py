"""`SharedMemoryEnv`: one environment of an engine as a `gymnasium.Env`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tandem.arguments import shown
from tandem.client import SharedMemoryClient
from tandem.engine.options import TaskOptions
from tandem.environments.client_vector import Obs, ResetNeeded
from tandem.environments.make_vec import make_vec
from tandem.environments.row_infos import masked
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.errors import InvalidAction, InvalidArgument
from tandem.spaces.trees import mapped

# Arguments of `make_vec` that are fixed.
_FIXED: dict[str, Any] = {"num_envs": 1, "autoreset_mode": "Disabled"}


class SharedMemoryEnv(gymnasium.Env[Any, ArrayLike]):
    """One environment in an engine of its own; `gymnasium.make("tandem/Ant-v5")` makes one.

    It has no time limit, as Gymnasium's own environments have none: `gymnasium.make` adds the wrapper that truncates
    episodes, `TimeLimit`.

    >>> import gymnasium, tandem
    >>> env = gymnasium.make("tandem/CartPole-v1")
    >>> obs, info = env.reset(seed=0)
    >>> obs.shape, env.unwrapped.np_random_seed
    ((4,), 0)
    >>> env.close()
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}

    def __init__(
        self, task: str, *, render_mode: str | None = None, options: TaskOptions | None = None, **others: Any
    ) -> None:
        """Starts an engine for one environment.

        Args:
          task: As for `make_vec`.
          render_mode: None or "rgb_array".
          options: As for `make_vec`, with copies and without a time limit.
          others: The other arguments of `make_vec`, such as options of the task.

        Raises:
          InvalidArgument: An argument that is fixed for one environment.
          TandemError: As `make_vec`.
        """
        given = {name: others[name] for name in _FIXED if name in others}
        if isinstance(options, TaskOptions):
            given |= {} if options.copy else {"TaskOptions.copy": False}
            if options.max_episode_steps is not None:
                given["TaskOptions.max_episode_steps"] = options.max_episode_steps
            options = dataclasses.replace(options, max_episode_steps=0)
        for name, value in given.items():
            raise InvalidArgument(
                f"{name}: expected none for a single environment, found {shown(value)}; gymnasium.make has "
                "max_episode_steps, and tandem.make_vec the others"
            )
        if "frameskip" in others:  # TorchRL's GymEnv passes it, and omits it after Python's own error
            raise TypeError("SharedMemoryEnv.__init__() got an unexpected keyword argument 'frameskip'")
        self._envs: SharedMemoryVectorEnv = make_vec(
            task,
            render_mode=render_mode,
            options=TaskOptions(max_episode_steps=0) if options is None else options,
            **_FIXED,
            **others,
        )
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": self._envs.metadata["render_fps"]}
        self._seeded = False
        self._in_episode = False

    @property
    def client(self) -> SharedMemoryClient:
        """The client of the engine; see `SharedMemoryVectorEnv.client`."""
        return self._envs.client

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Starts an episode.

        Args:
          seed: Of the environment's random stream, which continues if this is None. The first reset without a seed
            draws one; `np_random_seed` has it.
          options: None, or a mapping with "contract"; see `SharedMemoryVectorEnv.reset`.

        Returns:
          The observation, the caller's to keep, and infos.

        Raises:
          InvalidArgument: An invalid seed or option.
          TandemError: As `SharedMemoryVectorEnv.reset`.
        """
        if options and "reset_mask" in options:
            raise InvalidArgument("options: expected no 'reset_mask' for a single environment, found one")
        if seed is None and not self._seeded:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        super().reset(seed=seed)
        obs, infos = self._envs.reset(seed=seed, options=options)
        self._seeded = self._in_episode = True
        return _first_row(obs), _of_one(infos)

    def step(self, action: ArrayLike) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Steps the environment once by an action of `action_space`.

        Returns the observation, the caller's to keep; the reward; terminated; truncated, False unless an engine was
        started again (`restart`); infos.

        Raises:
          ResetNeeded: The episode was not started, or has terminated; nothing was sent.
          InvalidAction: An action of another shape or kind, or not finite; nothing was sent.
          TandemError: As `SharedMemoryVectorEnv.step`.
        """
        if not self._in_episode and not self._envs.closed:
            before = "the end of an episode" if self._seeded else "the start"
            raise ResetNeeded(f"step: expected a reset after {before}, found none; call reset() first")
        if np.shape(action) != self.action_space.shape:
            raise InvalidAction(f"action: expected one of {self.action_space}, found {shown(action)}; nothing was sent")
        obs, rewards, terminations, truncations, infos = self._envs.step(np.asarray(action)[np.newaxis])
        terminated, truncated = bool(terminations[0]), bool(truncations[0])
        self._in_episode = not (terminated or truncated)
        return _first_row(obs), float(rewards[0]), terminated, truncated, _of_one(infos)

    def render(self) -> NDArray[np.uint8] | None:
        """Draws the environment as it is after the last step or reset.

        Returns:
          uint8[height, width, 3], the caller's to keep; None, with a warning, without a render mode.

        Raises:
          TandemError: As `SharedMemoryVectorEnv.render`.
        """
        images = self._envs.render()
        return None if images is None else images[0]

    def close(self) -> None:
        """Ends the engine. A second call has no effect."""
        self._envs.close()


def _first_row(obs: Obs) -> Obs:
    return mapped(lambda array: array[0], obs)


def _of_one(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the infos of a vector of one environment as those of its environment."""
    return {name: values[0] for name, values, _ in masked(infos)}
