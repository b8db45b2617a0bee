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
Results = tuple[Floats, Floats, NDArray[np.uint8]]


class Timed:
    """Environments as the training sees them."""

    def __init__(self, num_envs: int, obs_size: int, act_size: int) -> None:
        """Of these sizes."""
        self.num_envs, self.obs_size, self.act_size = num_envs, obs_size, act_size
        self.actions: Floats = np.zeros((num_envs, act_size), np.float32)
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

    def physics_secs(self) -> float | None:
        """Tells for how long the engine stepped; None: not known."""
        return None

    def _reset(self, seed: int) -> Floats:
        raise NotImplementedError

    def _step(self, actions: Floats) -> Results:
        raise NotImplementedError


class OfClient(Timed):
    """Tandem's."""

    def __init__(self, client: tandem.SharedMemoryClient) -> None:
        """Through a client."""
        super().__init__(client.num_envs, client.obs_size, client.act_size)
        self.actions = client.actions
        self._client, self._step = client, client.step  # type: ignore[method-assign]

    def physics_secs(self) -> float | None:
        """Tells what the client has counted."""
        return self._client.stats().physics_secs

    def _reset(self, seed: int) -> Floats:
        return self._client.reset(seed=seed)


class OfVector(Timed):
    """Gymnasium's vectors, and EnvPool, whose environments got their seeds when they were made."""

    def __init__(self, envs: Any, num_envs: int, seeded: bool) -> None:
        """Of environments with one observation and one action space, both boxes."""
        obs, act = (
            getattr(envs, f"single_{kind}_space", None) or getattr(envs, f"{kind}_space")
            for kind in ("observation", "action")
        )
        super().__init__(num_envs, obs.shape[-1], act.shape[-1])
        self._envs, self._seeded, self._dtype = envs, seeded, act.dtype

    def _reset(self, seed: int) -> Floats:
        obs = self._envs.reset(seed=seed)[0] if self._seeded else self._envs.reset()[0]
        return cast(Floats, np.asarray(obs, np.float32))

    def _step(self, actions: Floats) -> Results:
        obs, rewards, terminated, truncated, _ = self._envs.step(np.asarray(actions, self._dtype))
        return np.asarray(obs, np.float32), rewards, terminated | truncated


@contextlib.contextmanager
def opened(row: str, num_envs: int, region: str) -> Iterator[Timed]:
    """Makes a row's environments.

    Args:
      row: tandem, envpool, sync or async.
      num_envs: How many.
      region: A name for Tandem's.

    Yields:
      They.
    """
    if row == "tandem":
        with (
            tandem.launch_engine(train_ars.TASK, num_envs=num_envs, name=region) as engine,
            tandem.SharedMemoryClient(engine.name) as client,
        ):
            yield OfClient(client)
        return
    if row == "envpool":
        make = importlib.import_module("envpool").make
        threads = len(os.sched_getaffinity(0))
        envs = make(train_ars.TASK, env_type="gymnasium", num_envs=num_envs, num_threads=threads, seed=0)
    else:
        gymnasium = importlib.import_module("gymnasium")
        kind = getattr(gymnasium.vector, f"{row.title()}VectorEnv")
        envs = kind([functools.partial(gymnasium.make, train_ars.TASK)] * num_envs)
    try:
        yield OfVector(envs, num_envs, seeded=row != "envpool")
    finally:
        envs.close()


def main() -> None:
    """Trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", required=True, choices=("tandem", "envpool", "sync", "async"))
    parser.add_argument("--iterations", type=int, default=1, help="to measure, after one that is not")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--region", default="training-client")
    arguments = parser.parse_args()
    # What libraries print is not for whom we talk to.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with opened(arguments.row, arguments.envs, arguments.region) as environments:
        step: Callable[[], float] = train_ars.Search(cast(tandem.SharedMemoryClient, environments), seed=0).iterate
        step()
        env_secs, physics_secs, began = environments.secs, environments.physics_secs(), time.perf_counter()
        returns = [step() for _ in range(arguments.iterations)]
        wall_secs = time.perf_counter() - began
        env_secs = environments.secs - env_secs
        if physics_secs is not None:
            physics_secs = (environments.physics_secs() or 0.0) - physics_secs
    answers.write(
        json.dumps({"wall_secs": wall_secs, "env_secs": env_secs, "physics_secs": physics_secs, "returns": returns})
    )


if __name__ == "__main__":
    main()
