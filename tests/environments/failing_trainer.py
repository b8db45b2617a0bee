"""A trainer whose environments or workers fail; failures.py starts it, with a plan in JSON as its argument.

It prints "begun". Once its environments are made, it prints "ready" and the numbers of its processes. Then
it prints, as JSON, the outcome, its time, and the time of a failure that an environment caused. Times are those of the
system's monotonic clock.
"""

import functools
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import tandem

_NUM_ENVS, _NUM_WORKERS = 6, 3
_AFTER_STEPS = 20


class Failing(gymnasium.Env[Any, Any]):
    """Fails at one step: raises an exception, prints, forks, exits, hangs, or returns something wrong."""

    observation_space = spaces.Box(-1, 1e6, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, fault: str, at_step: int, times: str) -> None:
        """Takes the fault, its step from the start, and the file that gets its time."""
        self._fault, self._at_step, self._times = fault, at_step, times
        self._steps = 0
        if fault == "constructor":
            self._note()
            time.sleep(1000)

    def _note(self) -> None:
        Path(self._times).write_text(str(time.monotonic()))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Fails, or does nothing."""
        self._steps += 1
        fault = self._fault if self._steps == self._at_step else ""
        if fault:
            self._note()
        if fault == "raise":
            raise ValueError("a fault")
        if fault == "exit":
            sys.exit(3)
        if fault == "_exit":
            os._exit(3)
        if fault == "print":
            print("a line of an environment", flush=True)
        if fault == "fork" and os.fork() == 0:
            time.sleep(0.01)
            os._exit(0)
        if fault == "hang":
            time.sleep(1000)
        obs: Any = np.full(4, self._steps % 1000, np.float32)
        if fault == "shape":
            obs = obs[:3]
        if fault == "dtype":
            obs = np.array(["1"] * 4)
        return obs, 1.0, False, False, {}


def _found(plan: dict[str, Any], envs: Any) -> str:
    """Steps until something happens; returns what."""
    actions = np.zeros(_NUM_ENVS, np.int64)
    begun = time.monotonic()
    last = plan["step"] + _AFTER_STEPS
    steps = 0
    while True:
        if plan["close_after"] is not None and time.monotonic() > begun + plan["close_after"]:
            envs.send(actions)
            return "closed"
        infos = envs.step(actions)[4]
        steps += 1
        if "worker_restarted" in infos:
            return "restarted"
        if plan["fault"] in ("print", "fork") and steps == last:
            return "stepped"
        if plan["step_secs"] is not None and time.monotonic() > begun + plan["step_secs"]:
            return "stepped"


def main() -> None:
    """Carries out the plan."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    plan = json.loads(sys.argv[1])
    times = plan["times"]
    quiet = functools.partial(Failing, "", 0, times)
    functions = [quiet] * _NUM_ENVS
    functions[plan["env"]] = functools.partial(Failing, plan["fault"], plan["step"], times)
    engine = tandem.WorkerOptions(**{"timeout": plan["timeout"], "start_timeout": 60, **plan["options"]})
    envs: Any = None
    outcome, text = "", ""
    try:
        print("begun", flush=True)
        envs = tandem.make_vec(functions, num_workers=_NUM_WORKERS, engine=engine)
        envs.reset(seed=plan["seed"])
        workers = envs._workers
        print("ready", workers._process.pid, *(worker.pid for worker in workers._workers), flush=True)
        outcome = _found(plan, envs)
    except KeyboardInterrupt:
        outcome = "interrupted"
    except Exception as error:
        outcome, text = type(error).__name__, str(error)
    at = time.monotonic()
    if outcome in ("EnvFailed", "restarted") and plan["close_after"] is None:  # the environments are usable
        envs.reset()
        for _ in range(_AFTER_STEPS):
            envs.step(np.zeros(_NUM_ENVS, np.int64))
    while envs is not None:
        try:
            envs.close()
            break
        except KeyboardInterrupt:  # while it closes
            outcome = "interrupted"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    failed_at = float(Path(times).read_text() or 0) if Path(times).exists() else None
    print(json.dumps({"outcome": outcome, "at": at, "failed_at": failed_at, "text": text[:500]}), flush=True)


if __name__ == "__main__":
    main()
