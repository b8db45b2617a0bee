"""Engines of any kind: the step of an engine with a tick, and the steps of clients in C and in C#."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

import tandem
from tests.benchmark.engine_process import SMALL, serving
from tests.benchmark.rows import Case, Figures, Row, RowUnavailable, Suite, turns, us

_TICK_MS = 1e3 / 60  # as in tandem_rows.cc
_LATE_MS = 2
_MOST_TICKS, _TICKS_A_SEC = 1000, 2000  # greatest number of steps in a turn; for each second of a turn
_MOST_STEPS = 200_000

_HERE, _ROOT = Path(__file__).parent, Path(__file__).parents[2]
_VARIABLES = {
    "LD_LIBRARY_PATH": str(_ROOT / "sdk"),
    "MONO_PATH": str(_ROOT / "sdk/csharp"),
    "MONO_DISABLE_SHARED_AREA": "1",  # Mono would leave files in /dev/shm
}


def _allowed(name: str, seconds: float) -> Figures:
    return {"p95 ms": _TICK_MS + _LATE_MS}


def _ticked(name: str, seconds: float) -> Figures:
    nanos: list[int] = []
    steps = max(10, min(_MOST_TICKS, round(_TICKS_A_SEC * seconds)))
    with serving("host_tick", SMALL, name), tandem.SharedMemoryClient(name, timeout=30) as client:
        actions = np.zeros((client.num_envs, client.act_size), np.float32)
        for step in range(-3, steps):
            actions[:] = step
            asked = time.perf_counter_ns()
            _, rewards, _ = client.step(actions)
            nanos.append(time.perf_counter_ns() - asked)
            if rewards[0] != step:
                raise RuntimeError(f"step {step}: expected the reward {step}, found {rewards[0]}")
    p50, p95 = np.percentile(nanos[3:], (50, 95)) / 1e6
    return {"p95 ms": float(p95), "p50 ms": float(p50), "greatest ms": max(nanos[3:]) / 1e6, "steps": steps}


def _client(program: str, name: str, seconds: float) -> Figures:
    command = [str(_HERE / program), name, str(_MOST_STEPS), str(seconds)]
    if program.endswith(".exe"):
        if shutil.which("mono") is None:
            raise RowUnavailable("expected mono on PATH, found none")
        command.insert(0, "mono")
    with serving("host_adaptive", SMALL, name):
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ | _VARIABLES).stdout
    return us(np.frombuffer(printed, np.int64), mean=True)


SUITES = {
    "engines": Suite(
        "engines",
        "the step of an engine with a tick of 60 Hz, and the steps of clients in C and in C#",
        [
            Case(
                "An engine with a tick of 60 Hz: the step, by one tick and 2 ms",
                [
                    Row("allowed", "allowed: one tick and 2 ms", turns(_allowed)),
                    Row("tick", "Tandem, Python, an engine with a tick", turns(_ticked), ("allowed",)),
                ],
                ("p95 ms",),
            ),
            Case(
                f"{SMALL}, the step round trip of a client in C#, by a client in C",
                [
                    Row("c", "Tandem, C", turns(_client, "sdk_client")),
                    Row("csharp", "Tandem, C# on Mono", turns(_client, "SdkClient.exe"), ("c",)),
                ],
                ("p50 us",),
                "c",
                differences=("p50 us",),
            ),
        ],
        __name__,
        slow=True,
    )
}
