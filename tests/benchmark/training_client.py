"""Trains as the quickstart does, over one kind of environments, and prints where the time went, as JSON.

The training is `client_py/examples/train_ars.py`, unchanged; what it steps has the part of SharedMemoryClient's face
that it uses, and a clock around each call. tools/benchmark runs this in a process of its own, with the Python that has
the row's packages.
"""

import argparse
import contextlib
import functools
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import tandem
from examples import train_ars

Floats = NDArray[np.float32]
# Observations, rewards (float64 by Gymnasium) and dones (uint8 by Tandem).
Results = tuple[Floats, NDArray[np.floating[Any]], NDArray[np.bool_ | np.uint8]]


class Timed:
    """Environments as the training sees them."""

    def __init__(
        self,
        actions: Floats,
        obs_size: int,
        *,
        reset: Callable[[int], Floats],
        step: Callable[[Floats], Results],
        physics_secs: Callable[[], float | None],
    ) -> None:
        """Puts a clock around two calls.

        Args:
          actions: float32[num_envs, act_size], where actions are to be written.
          obs_size: Values of an observation.
          reset: Starts an episode in every environment, with this seed.
          step: Steps every environment.
          physics_secs: Tells for how long the engine stepped; None: not known.
        """
        self.actions, self.obs_size = actions, obs_size
        self.num_envs, self.act_size = actions.shape
        self._reset, self._step, self.physics_secs = reset, step, physics_secs
        self.secs = 0.0

    def reset(self, *, seed: int) -> Floats:
        """Starts an episode in every environment."""
        began = time.perf_counter()
        obs = self._reset(seed)
        self.secs += time.perf_counter() - began
        return obs

    def step(self, actions: Floats) -> Results:
        """Steps every environment."""
        began = time.perf_counter()
        found = self._step(actions)
        self.secs += time.perf_counter() - began
        return found


def _unknown() -> None:
    """Stands for a figure that an engine does not tell."""


def _physics_secs_of(client: tandem.SharedMemoryClient) -> Callable[[], float]:
    return lambda: client.stats().physics_secs


def of_client(client: tandem.SharedMemoryClient) -> Timed:
    """Takes Tandem's environments."""
    return Timed(
        client.actions,
        client.obs_size,
        reset=lambda seed: client.reset(seed=seed),
        step=client.step,
        physics_secs=_physics_secs_of(client),
    )


def of_vector(envs: Any, num_envs: int, *, seeded: bool, physics_secs: Callable[[], float | None]) -> Timed:
    """Takes make_vec's, Gymnasium's vectors, and EnvPool, whose environments got their seeds when they were made.

    Args:
      envs: Environments with one observation and one action space, both boxes.
      num_envs: How many.
      seeded: Whether `reset` takes a seed.
      physics_secs: As of Timed.

    Returns:
      The environments, timed.
    """
    obs_space, act_space = (
        getattr(envs, f"single_{kind}_space", None) or getattr(envs, f"{kind}_space")
        for kind in ("observation", "action")
    )

    def reset(seed: int) -> Floats:
        obs = envs.reset(seed=seed)[0] if seeded else envs.reset()[0]
        return cast(Floats, np.asarray(obs, np.float32))

    def step(actions: Floats) -> Results:
        obs, rewards, terminated, truncated, _ = envs.step(np.asarray(actions, act_space.dtype))
        return np.asarray(obs, np.float32), rewards, terminated | truncated

    actions = np.zeros((num_envs, act_space.shape[-1]), np.float32)
    return Timed(actions, obs_space.shape[-1], reset=reset, step=step, physics_secs=physics_secs)


@contextlib.contextmanager
def opened(row: str, num_envs: int, region: str) -> Iterator[Timed]:
    """Makes a row's environments.

    Args:
      row: tandem, make_vec, envpool, sync or async.
      num_envs: How many.
      region: A name for Tandem's.

    Yields:
      The environments, timed.
    """
    if row == "tandem":
        with (
            tandem.launch_engine(train_ars.TASK, num_envs=num_envs, name=region) as engine,
            tandem.SharedMemoryClient(engine.name) as client,
        ):
            yield of_client(client)
        return
    physics_secs: Callable[[], float | None] = _unknown
    envs: Any
    if row == "make_vec":
        envs = tandem.make_vec(train_ars.TASK, num_envs)
        physics_secs = _physics_secs_of(envs.client)
    elif row == "envpool":
        make = importlib.import_module("envpool").make
        threads = len(os.sched_getaffinity(0))
        envs = make(train_ars.TASK, env_type="gymnasium", num_envs=num_envs, num_threads=threads, seed=0)
    else:
        gymnasium = importlib.import_module("gymnasium")
        kind = getattr(gymnasium.vector, f"{row.title()}VectorEnv")
        envs = kind([functools.partial(gymnasium.make, train_ars.TASK)] * num_envs)
    try:
        yield of_vector(envs, num_envs, seeded=row != "envpool", physics_secs=physics_secs)
    finally:
        envs.close()


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", required=True, choices=("tandem", "make_vec", "envpool", "sync", "async"))
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--region", default="training-client")
    arguments = parser.parse_args()
    # What libraries print is not for whom we talk to.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with opened(arguments.row, arguments.envs, arguments.region) as environments:
        step: Callable[[], float] = train_ars.Search(cast(tandem.SharedMemoryClient, environments), seed=0).iterate
        step()  # not measured
        env_secs, physics_secs, began = environments.secs, environments.physics_secs(), time.perf_counter()
        step()
        wall_secs = time.perf_counter() - began
        env_secs = environments.secs - env_secs
        if physics_secs is not None:
            physics_secs = (environments.physics_secs() or 0.0) - physics_secs
    answers.write(json.dumps({"wall_secs": wall_secs, "env_secs": env_secs, "physics_secs": physics_secs}))


if __name__ == "__main__":
    main()
