"""`RolloutWorker`: the class of the Ray actors: an engine, its region, and the policy, on one node."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tandem.client import AutoresetMode
from tandem.doctor.finding import Level
from tandem.doctor.shared_memory import check_mount
from tandem.engine.options import TaskOptions
from tandem.environments.client_vector import ClientVectorEnv
from tandem.environments.make_vec import cores_argument, make_vec
from tandem.errors import OutOfSharedMemory
from tandem.ray.rollout import Policy, Rollout, RolloutArrays
from tandem.ray.weights import unpacked

_SEEDS_OF_AN_INCARNATION = 2**32


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    """What a worker needs to start: arguments of `tandem.make_vec`, and those of `rollout_workers`.

    `cores` are for the engine's threads, or for the worker processes of environments in Python.
    """

    env: Any
    env_options: Mapping[str, Any]
    num_envs: int
    horizon: int
    make_policy: Callable[[Any, Any], Policy]
    seed: int | None
    reset_options: Mapping[str, Any] | None
    cores: int


class Started(NamedTuple):
    """Facts of a worker that has started: spaces of one environment, its process, the region and its owner."""

    spaces: tuple[Any, Any]
    pid: int
    engine_pid: int
    region: str


class RolloutWorker:
    """Makes rollouts, one at a time. Only `refresh` may be called from another thread meanwhile."""

    def __init__(self, options: RolloutOptions, worker: int, incarnation: int) -> None:
        """Starts nothing yet: `start` does, whose exceptions reach the caller as they are."""
        self._options, self._worker, self._incarnation = options, worker, incarnation
        self._newest: tuple[int, Any] = (0, None)
        self._loaded = 0
        self._envs: ClientVectorEnv | None = None

    def start(self) -> Started:
        """Starts the engine, resets its environments, and makes the policy; errors are those of `tandem.make_vec`.

        OutOfSharedMemory: /dev/shm of this node is missing or full.
        """
        for finding in check_mount():
            if finding.level is Level.FAIL:
                raise OutOfSharedMemory(
                    f"{finding.about} of {os.uname().nodename}: {finding.found}; {finding.next_step}"
                )
        options = self._options
        cores = cores_argument(options.env, options.env_options.get("backend"), options.num_envs, options.cores)
        given = {**cores, **options.env_options}
        its = dataclasses.replace(given.pop("options", None) or TaskOptions(), copy=False)
        envs = make_vec(options.env, options.num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, options=its, **given)
        self._envs = envs
        seed = None
        if options.seed is not None:
            # As one vector environment of all workers has them; a new incarnation does not repeat the old one's.
            seed = options.seed + self._worker * options.num_envs + self._incarnation * _SEEDS_OF_AN_INCARNATION
            self._random = np.random.default_rng([options.seed, self._worker, self._incarnation])
        else:
            self._random = np.random.default_rng()
        obs, _ = envs.reset(seed=seed, options=options.reset_options)
        self._arrays = RolloutArrays(options.horizon, obs)
        spaces = envs.single_observation_space, envs.single_action_space
        self._policy = options.make_policy(*spaces)
        return Started(spaces, os.getpid(), envs.client.engine_pid, envs.client.name)

    def refresh(self, version: int, weights: Any) -> None:
        """Takes newer weights, `packed`, for the next rollout that starts."""
        self._newest = max(self._newest, (version, weights), key=lambda newest: newest[0])

    def roll(self, number: int, version: int, weights: Any) -> Rollout:
        """Makes a rollout with the newest weights: of `version`, or of a later one that came by `refresh`.

        The arrays are valid until the next call; Ray copies them before. Errors are those of the environments' `step`.
        """
        self.refresh(version, weights)
        version, weights = self._newest
        if version != self._loaded:
            self._policy.load(unpacked(weights))
            self._loaded = version
        arrays, envs = self._arrays, self._envs
        assert envs is not None
        arrays.begin()
        for step in range(self._options.horizon):
            actions, extras = self._policy.act(arrays.rows(step), self._random)
            arrays.write_actions(step, actions, extras)
            arrays.write_results(step, *envs.step(actions)[:4])
        return arrays.rollout(worker=self._worker, incarnation=self._incarnation, number=number, version=version)
