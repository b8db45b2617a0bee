"""`JointEnv`: all agents of a PettingZoo ParallelEnv as one `gymnasium.Env`, in a worker."""

import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from tandem.arguments import shown
from tandem.arguments.arrays import described
from tandem.errors import InvalidArgument, Unsupported

# `agents` may be missing before the first reset.
_NEEDED = ("possible_agents", "observation_space", "action_space", "reset", "step")


class JointEnv(gymnasium.Env[Any, Any]):
    """Steps all agents together. Its own reward is 0; it terminates when all agents have ended.

    The observation is a Dict of arrays, which have an item of each agent, in the order of `possible_agents`:

    | key | value |
    |---|---|
    | "obs" | observations, as `batch_space` makes them; zeros of an agent that takes no part |
    | "rewards" | float64[agents]; 0 of an agent that takes no part |
    | "terminations" | int8[agents] |
    | "truncations" | int8[agents]; 1 in the environment's last step of an agent that ended earlier |
    | "active" | int8[agents]: 1 if the environment returned results of the agent |

    The info has "agents": a dict of the agents' infos, without empty ones. `single_spaces` are the observation space
    and the action space of one agent.
    """

    def __init__(self, env_fn: Callable[[], Any]) -> None:
        """Makes the environment, the `pettingzoo.ParallelEnv` that `env_fn` returns.

        InvalidArgument: It returns another object, or an environment without agents. Unsupported: Agents have different
        spaces, or spaces whose values are no arrays.
        """
        self._env = env = _parallel_env(env_fn)
        self._agents = list(env.possible_agents)
        observation_space, action_space = self.single_spaces = (
            _space_of_all("observation_space", env.observation_space, self._agents),
            _space_of_all("action_space", env.action_space, self._agents),
        )
        count = len(self._agents)
        self.observation_space = spaces.Dict(
            {
                "obs": batch_space(observation_space, count),
                "rewards": spaces.Box(-np.inf, np.inf, (count,), np.float64),
                "terminations": spaces.MultiBinary(count),
                "truncations": spaces.MultiBinary(count),
                "active": spaces.MultiBinary(count),
            }
        )
        self.action_space = batch_space(action_space, count)
        # Reused by each step: the worker copies an observation into the region at once.
        self._observations: Any = create_empty_array(observation_space, n=count, fn=np.zeros)
        # The observation of an agent that takes no part: zeros.
        self._nothing = next(iter(iterate(batch_space(observation_space, 1), create_empty_array(observation_space, 1))))
        self.metadata = getattr(env, "metadata", {})
        self.render_mode = getattr(env, "render_mode", None)

    @property
    def possible_agents(self) -> list[Any]:
        """All agents, in their order."""
        return self._agents

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        observations, infos = self._env.reset(seed=seed, options=options)
        return self._joint(observations, {}, {}, {}), _info(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the agents that take part; actions of the others have no effect."""
        live = set(self._env.agents)
        actions = {
            agent: its
            for agent, its in zip(self._agents, iterate(self.action_space, action), strict=True)
            if agent in live
        }
        observations, rewards, terminations, truncations, infos = self._env.step(actions)
        joint = self._joint(observations, rewards, terminations, truncations)
        ended = not self._env.agents or all(terminations.get(agent) or truncations.get(agent) for agent in live)
        if ended:
            joint["truncations"] |= (joint["terminations"] | joint["truncations"]) ^ 1
        return joint, 0.0, ended, False, _info(infos)

    def _joint(self, observations: Any, rewards: Any, terminations: Any, truncations: Any) -> dict[str, Any]:
        agents = self._agents
        items = [observations.get(agent, self._nothing) for agent in agents]
        try:
            obs = concatenate(self.single_spaces[0], items, self._observations)
        except Exception:  # of NumPy
            self._refuse_observation(items)
            raise
        return {
            "obs": obs,
            "rewards": np.array([_number(rewards.get(agent, 0.0), agent) for agent in agents], np.float64),
            "terminations": _flags(terminations, agents),
            "truncations": _flags(truncations, agents),
            "active": np.array([agent in observations for agent in agents], np.int8),
        }

    def _refuse_observation(self, items: list[Any]) -> None:
        """Raises InvalidArgument for the first agent whose observation is not one of its space."""
        space = self.single_spaces[0]
        one: Any = create_empty_array(space, 1)
        for agent, item in zip(self._agents, items, strict=True):
            try:
                concatenate(space, [item], one)
            except Exception as error:  # of NumPy
                raise InvalidArgument(
                    f"observation of agent {agent!r}: expected a value of {space}, found {described(item)}: "
                    f"{type(error).__name__}: {error}"
                ) from error

    def render(self) -> Any:
        """Returns what the environment's `render` returns."""
        return self._env.render()

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    # PettingZoo's environments have none of these three methods.
    def has_wrapper_attr(self, name: str) -> bool:
        """Returns whether `get_wrapper_attr` finds an attribute."""
        return name in _OWN or hasattr(self._env, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Returns an attribute of the ParallelEnv, or one of those that this class has in its place."""
        return getattr(self, name) if name in _OWN else getattr(self._env, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Sets an attribute of the ParallelEnv; returns False, and sets nothing, if it is new and not `force`."""
        if not force and not hasattr(self._env, name):
            return False
        setattr(self._env, name, value)
        return True


_OWN = ("possible_agents", "single_spaces", "render")


def _parallel_env(env_fn: Callable[[], Any]) -> Any:
    env = env_fn()
    # Such an environment has imported its package.
    if isinstance(env, getattr(sys.modules.get("pettingzoo"), "AECEnv", ())):
        raise InvalidArgument(
            f"env_fn: expected a function that returns a pettingzoo.ParallelEnv, found an AECEnv "
            f"({type(env).__name__}); pettingzoo.utils.aec_to_parallel(env) makes one of it"
        )
    if missing := [name for name in _NEEDED if not hasattr(env, name)]:
        raise InvalidArgument(
            f"env_fn: expected a function that returns a pettingzoo.ParallelEnv, found a {type(env).__name__} without "
            f"{', '.join(missing)}; tandem.make_vec takes a gymnasium.Env"
        )
    if len(env.possible_agents) == 0:
        raise InvalidArgument(
            f"env_fn: expected an environment with agents, found a {type(env).__name__} whose possible_agents are "
            f"{env.possible_agents!r}"
        )
    return env


def _space_of_all(name: str, space_of: Callable[[Any], Any], agents: list[Any]) -> spaces.Space[Any]:
    """Returns the space of the agents. Unsupported: They have different ones, or one whose values are no arrays."""
    first: spaces.Space[Any] = space_of(agents[0])
    for agent in agents[1:]:
        if (other := space_of(agent)) != first:
            raise Unsupported(
                f"{name}: expected equal spaces of all agents, as each is a row of the same arrays, found {first} of "
                f"{agents[0]!r} and {other} of {agent!r}; SuperSuit's pad_observations_v0 and pad_action_space_v0 "
                "make them equal"
            )
    if not _is_array(first):
        raise Unsupported(
            f"{name}: expected Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of them, found {first}"
        )
    return first


def _is_array(space: Any) -> bool:
    if isinstance(space, spaces.Dict):
        return all(map(_is_array, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return all(map(_is_array, space.spaces))
    return isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary)


def _number(reward: Any, agent: Any) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError):
        raise InvalidArgument(f"reward of agent {agent!r}: expected a number, found {shown(reward)}") from None


def _flags(flags: Any, agents: list[Any]) -> Any:
    return np.array([bool(flags.get(agent, False)) for agent in agents], np.int8)


def _info(infos: Any) -> dict[str, Any]:
    of_agents = {str(agent): dict(info) for agent, info in infos.items() if info}
    return {"agents": of_agents} if of_agents else {}
