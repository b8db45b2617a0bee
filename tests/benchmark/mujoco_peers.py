"""Steps the environments of EnvPool and Gymnasium, for the benchmark.

Runs by the peers' interpreter, which has no Tandem. Each line of standard input is a request in JSON, and is
answered with one:

    {"open": "envpool", "task": "Ant-v5", "envs": 64, "threads": 2, "actions": FILE, "size": 8, "discrete": false}  ->
        {"made_secs": 0.08, "first_obs_secs": 0.09}
    {"step": "envpool", "seconds": 0.5}  ->  {"steps": 4096, "secs": 0.51}
    {"close": "envpool"}

FILE holds batches of actions, float32[batches, envs, size], used in turn; discrete ones have size 1. The end
of the input ends the program.
"""

import contextlib
import functools
import gc
import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Actions = NDArray[Any]


def _until(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end


class _InStep:
    """All environments are stepped, then the next actions are there at once."""

    def __init__(self, envs: Any, batches: Actions) -> None:
        self._envs, self._num_envs = envs, int(batches.shape[1])
        self._batches = itertools.cycle(list(batches))
        envs.reset()

    def run(self, seconds: float) -> int:
        steps, goes_on = 0, _until(seconds)
        while True:
            self._envs.step(next(self._batches))
            steps += self._num_envs
            if not goes_on():
                return steps

    def close(self) -> None:
        self._envs.close()


class _InHalves:
    """EnvPool's own asynchronous way: whichever half of the environments is ready first is stepped again at once.

    All that was sent in a turn is received in it.
    """

    def __init__(self, envs: Any, batches: Actions) -> None:
        self._envs, self._half = envs, int(batches.shape[1]) // 2
        self._batches = itertools.cycle([np.ascontiguousarray(batch[: self._half]) for batch in batches])
        envs.async_reset()
        self._idle = [self._recv(), self._recv()]

    def _recv(self) -> Any:
        return self._envs.recv()[4]["env_id"]

    def run(self, seconds: float) -> int:
        for env_ids in self._idle:
            self._envs.send(next(self._batches), env_ids)
        steps, goes_on = 0, _until(seconds)
        while goes_on():
            self._envs.send(next(self._batches), self._recv())
            steps += self._half
        self._idle = [self._recv(), self._recv()]
        return steps + 2 * self._half

    def close(self) -> None:
        self._envs.close()


def _maker(kind: str, task: str, num_envs: int, threads: int) -> Callable[[], Any]:
    """Imports what makes the environments."""
    if kind.startswith("envpool"):
        make = importlib.import_module("envpool").make
        batch_size = num_envs // 2 if kind == "envpool_async" else num_envs
        return functools.partial(
            make, task, env_type="gymnasium", num_envs=num_envs, num_threads=threads, batch_size=batch_size
        )
    gymnasium = importlib.import_module("gymnasium")
    importlib.import_module("gymnasium.envs.mujoco")
    vector = importlib.import_module("gymnasium.vector")
    kinds = {"gymnasium_sync": vector.SyncVectorEnv, "gymnasium_async": vector.AsyncVectorEnv}
    return functools.partial(kinds[kind], [functools.partial(gymnasium.make, task)] * num_envs)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drops what is written to stderr, also by processes started meanwhile: each warns about its model."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _open(request: dict[str, Any]) -> tuple[_InStep | _InHalves, dict[str, float]]:
    kind = request["open"]
    batches = np.fromfile(request["actions"], np.float32).reshape(-1, request["envs"], request["size"])
    if request["discrete"]:
        batches = batches[:, :, 0].astype(np.int32 if kind.startswith("envpool") else np.int64)
    elif kind.startswith("envpool"):
        batches = batches.astype(np.float64)  # as EnvPool wants them
    make = _maker(kind, request["task"], request["envs"], request["threads"])
    with _silence():
        began = time.perf_counter()
        envs = make()
        made = time.perf_counter()
    opened = (_InHalves if kind == "envpool_async" else _InStep)(envs, batches)
    return opened, {"made_secs": made - began, "first_obs_secs": time.perf_counter() - began}


def main() -> None:
    """Answers requests."""
    # What libraries print is not for whom we talk to.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    opened: dict[str, _InStep | _InHalves] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if kind := request.get("open"):
            opened[kind], answer = _open(request)
        elif kind := request.get("step"):
            gc.collect()
            gc.disable()
            began = time.perf_counter()
            answer["steps"] = opened[kind].run(request["seconds"])
            answer["secs"] = time.perf_counter() - began
            gc.enable()
        else:
            opened.pop(request["close"]).close()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
