"""ParallelEnvs for tests and examples. They have the interface of PettingZoo's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from tandem.testing.sample_spaces import assert_same

Results = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]


class Tag:
    """Agents move on a line. Each ends after a number of steps of its own, which a seed draws; all after 12.

    Attributes:
      possible_agents: All agents.
      agents: Those that have not ended.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "name": "tag"}

    def __init__(self, possible_agents: tuple[str, ...] = ("red", "green", "blue"), bound: float = 100) -> None:
        """Takes the agents' names, and the bound of positions."""
        self.possible_agents = list(possible_agents)
        self.agents: list[str] = []
        self.render_mode = "rgb_array"
        self._space = spaces.Box(-bound, bound, (2,), np.float32)
        self._rng = np.random.default_rng(0)

    def observation_space(self, agent: str) -> spaces.Box:
        """Returns the same space for all agents: position and steps."""
        return self._space

    def action_space(self, agent: str) -> "spaces.Discrete[np.int64]":
        """Returns the same space for all agents."""
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._steps = 0
        self._place = {agent: float(self._rng.normal()) for agent in self.agents}
        self._last = {agent: int(self._rng.integers(2, 16)) for agent in self.agents}
        infos = {agent: {"last": self._last[agent]} for agent in self.agents}
        return {agent: self._observed(agent) for agent in self.agents}, infos

    def step(self, actions: dict[str, Any]) -> Results:
        """Moves the agents; refuses other agents than those that have not ended."""
        assert list(actions) == self.agents, (actions, self.agents)
        self._steps += 1
        live = self.agents
        for agent in live:
            self._place[agent] += (float(np.sum(actions[agent])) - 1) * 0.1 + 0.01 * float(self._rng.normal())
        terminations = {agent: self._steps == self._last[agent] for agent in live}
        truncations = {agent: self._steps == 12 for agent in live}
        self.agents = [agent for agent in live if not (terminations[agent] or truncations[agent])]
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in live}
        for agent in live:
            infos[agent]["place"] = self._place[agent]
            if self._steps % 3 == 0:
                infos[agent]["nested"] = {"steps": self._steps}
            if terminations[agent]:
                infos[agent]["word"] = f"{agent} ended"
        rewards = {agent: self._place[agent] * self._steps for agent in live}
        return {agent: self._observed(agent) for agent in live}, rewards, terminations, truncations, infos

    def render(self) -> Any:
        """Returns an image of one color."""
        return np.full((4, 4, 3), self._steps, np.uint8)

    def close(self) -> None:
        """Does nothing."""

    def _observed(self, agent: str) -> Any:
        return np.array([self._place[agent], self._steps], np.float32)


class LoopedEnvs:
    """The rows that a ParallelVectorEnv should return, from environments that are stepped in a loop."""

    def __init__(self, envs: Sequence[Any], mode: AutoresetMode) -> None:
        """Takes the environments, which have equal agents, and the autoreset mode."""
        self._envs, self._mode = envs, mode
        self._agents = list(envs[0].possible_agents)
        self._over = [False] * len(envs)
        self.num_envs = len(envs) * len(self._agents)
        self.single_space = envs[0].observation_space(self._agents[0])
        self._infos = VectorEnv[Any, Any, Any]()
        self._infos.num_envs = self.num_envs

    def reset(self, seed: int | None = None, env_ids: Sequence[int] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets environments; returns the observations of their rows, and infos."""
        obs: list[Any] = []
        infos: dict[str, Any] = {}
        for env_id in range(len(self._envs)) if env_ids is None else env_ids:
            its, its_infos = self._envs[env_id].reset(seed=None if seed is None else seed + env_id)
            self._over[env_id] = False
            for row, agent in enumerate(self._agents, env_id * len(self._agents)):
                obs.append(its[agent])
                infos = self._infos._add_info(infos, its_infos.get(agent, {}), row)
        return self._batch(obs), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps all environments, with an action for each row."""
        rows: list[tuple[Any, float, bool, bool, bool]] = []
        infos: dict[str, Any] = {}
        for env_id, env in enumerate(self._envs):
            first = env_id * len(self._agents)
            if self._over[env_id] and self._mode is AutoresetMode.NEXT_STEP:
                obs, of_agents = env.reset()
                self._over[env_id] = False
                rows += [(obs[agent], 0.0, False, False, True) for agent in self._agents]
                for row, agent in enumerate(self._agents, first):
                    infos = self._infos._add_info(infos, of_agents.get(agent, {}), row)
                continue
            live = set(env.agents)
            its = {agent: actions[row] for row, agent in enumerate(self._agents, first) if agent in live}
            obs, rewards, terminations, truncations, of_agents = env.step(its)
            self._over[env_id] = over = not env.agents
            next_obs, next_infos = env.reset() if over and self._mode is AutoresetMode.SAME_STEP else ({}, {})
            for row, agent in enumerate(self._agents, first):
                seen, info = obs.get(agent, self._nothing()), of_agents.get(agent, {})
                terminated, truncated = bool(terminations.get(agent)), bool(truncations.get(agent))
                if over and not terminated:
                    truncated = True
                if self._mode is AutoresetMode.SAME_STEP and (terminated or truncated):
                    infos = self._infos._add_info(
                        infos, {"final_obs": seen, "final_info": info | {"active": agent in obs}}, row
                    )
                    seen, info = next_obs.get(agent, self._nothing()), next_infos.get(agent, {})
                infos = self._infos._add_info(infos, info, row)
                rows.append((seen, float(rewards.get(agent, 0)), terminated, truncated, agent in obs))
        columns = list(zip(*rows, strict=True))
        infos |= {"active": np.array(columns[4]), "_active": np.ones(self.num_envs, bool)}
        return self._batch(columns[0]), *map(np.array, columns[1:4]), infos

    def _nothing(self) -> Any:
        return _zeros(self.single_space)

    def _batch(self, rows: Sequence[Any]) -> Any:
        out: Any = create_empty_array(self.single_space, len(rows))
        return concatenate(self.single_space, rows, out)


def _zeros(space: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _zeros(each) for key, each in space.spaces.items()}
    return np.zeros(space.shape, space.dtype)


def assert_rows(ours: Any, theirs: LoopedEnvs, steps: int, seed: int) -> dict[str, int]:
    """Compares steps of a ParallelVectorEnv with those of a loop; returns what happened."""

    def same(found: Any, expected: Any) -> None:
        assert_same((*found[:-1], _in_order(found[-1])), (*expected[:-1], _in_order(expected[-1])))

    same(ours.reset(seed=seed), theirs.reset(seed=seed))
    ours.action_space.seed(seed)
    counts = dict.fromkeys(("terminated", "truncated", "inactive"), 0)
    per_env = len(ours.possible_agents)
    for _ in range(steps):
        actions = ours.action_space.sample()
        expected = theirs.step(actions)
        same(ours.step(actions), expected)
        ended = expected[2] | expected[3]
        counts["terminated"] += int(expected[2].sum())
        counts["truncated"] += int(expected[3].sum())
        counts["inactive"] += int((~expected[4]["active"]).sum())
        over = ended.reshape(-1, per_env).all(axis=1)
        if ours.autoreset_mode is AutoresetMode.DISABLED and ended.any():
            obs, infos = ours.reset(options={"reset_mask": ended})
            if over.any():
                rows = np.repeat(over, per_env)
                next_obs, next_infos = theirs.reset(env_ids=np.flatnonzero(over).tolist())
                assert_same(_rows(obs, rows), next_obs)
                assert_same(_in_order(infos), _in_order(next_infos))
            assert not any(each.any() for each in _leaves(_rows(obs, ended & ~np.repeat(over, per_env))))
    return counts


def _leaves(obs: Any) -> list[Any]:
    return [leaf for each in obs.values() for leaf in _leaves(each)] if isinstance(obs, dict) else [obs]


def _rows(obs: Any, rows: Any) -> Any:
    return {key: _rows(value, rows) for key, value in obs.items()} if isinstance(obs, dict) else obs[rows]


def _in_order(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns infos with sorted keys: Gymnasium's order is that of the first row that has one."""
    return {key: _in_order(infos[key]) if isinstance(infos[key], dict) else infos[key] for key in sorted(infos)}
