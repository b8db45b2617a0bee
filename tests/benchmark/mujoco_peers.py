"""Steps the environments of EnvPool and Gymnasium, for the benchmark.

Runs in the peers' environment, where there is no Tandem. Each line of standard input is a request in JSON, each answered
with a line of JSON:

    {"open": "envpool", "task": "Ant-v5", "envs": 64, "threads": 2, "actions": FILE, "size": 8}
    {"step": "envpool", "seconds": 0.5}  ->  {"steps": 4096, "secs": 0.51}
    {"close": "envpool"}

FILE holds batches of actions, float32[batches, envs, size], used in turn. The end of the input ends the program.
"""

import functools
import gc
import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Actions = NDArray[Any]
_Turn = Callable[[float], int]  # seconds -> steps


def _until(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end


class _InStep:
    """All environments are stepped, then the next actions are there at once."""

    def __init__(self, envs: Any, batches: Actions) -> None:
        self._envs, self._num_envs = envs, batches.shape[1]
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
        self._envs, self._half = envs, batches.shape[1] // 2
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


def _open(kind: str, task: str, num_envs: int, threads: int, batches: Actions) -> _InStep | _InHalves:
    if kind.startswith("envpool"):
        make = functools.partial(
            importlib.import_module("envpool").make,
            task,
            env_type="gymnasium",
            num_envs=num_envs,
            num_threads=threads,
        )
        batches = batches.astype(np.float64)  # as EnvPool wants them
        if kind == "envpool_async":
            return _InHalves(make(batch_size=num_envs // 2), batches)
        return _InStep(make(), batches)
    vector = importlib.import_module("gymnasium").vector
    make_one = functools.partial(importlib.import_module("gymnasium").make, task)
    kinds = {"gymnasium_sync": vector.SyncVectorEnv, "gymnasium_async": vector.AsyncVectorEnv}
    return _InStep(kinds[kind]([make_one] * num_envs), batches)


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
            shape = (-1, request["envs"], request["size"])
            batches = np.fromfile(request["actions"], np.float32).reshape(shape)
            opened[kind] = _open(kind, request["task"], request["envs"], request["threads"], batches)
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
