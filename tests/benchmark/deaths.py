"""How soon a client notices that its engine died."""

import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

import numpy as np

import tandem
from tests.benchmark.engine_process import serving
from tests.benchmark.measurement import SIZES, WAITS
from tests.benchmark.quantile import quantile
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import figure, markdown

_KILLS, _QUICK_KILLS = 100, 20

# Seconds that a client has waited when its engine is killed. Longer than a sleep's slice, so that kills fall on every
# part of one.
_EARLIEST, _LATEST = 0.005, 0.025


@dataclasses.dataclass(frozen=True)
class Deaths:
    """How soon a client noticed that its engine was killed: milliseconds over all kills."""

    median_ms: float
    p99_ms: float
    max_ms: float

    @staticmethod
    def of(nanos: Sequence[int]) -> "Deaths":
        """Takes it from the nanoseconds of each kill."""
        return Deaths(quantile(nanos, 0.5) / 1e6, quantile(nanos, 0.99) / 1e6, max(nanos) / 1e6)


def _measure(plan: Plan) -> Found:
    """Kills engines that owe results, one for each wait strategy in every round, the strategies in turn."""
    kills = _QUICK_KILLS if plan.quick else _KILLS
    waits = [wait for wait in WAITS if wait in plan.rows]
    nanos: dict[str, list[int]] = {wait: [] for wait in waits}
    started = time.monotonic()
    for number in range(kills):
        delay = _EARLIEST + (_LATEST - _EARLIEST) * (number + 0.5) / kills
        for wait in in_turn(waits, number):
            nanos[wait].append(_notice_death(wait, delay, f"{plan.prefix}-death-{wait}"))
    print(f"killed {kills} engines for each wait strategy in {time.monotonic() - started:.0f} s", file=sys.stderr)
    found = {wait: Deaths.of(those) for wait, those in nanos.items()}
    lines = [(wait, figure(one.median_ms), figure(one.p99_ms), figure(one.max_ms)) for wait, one in found.items()]
    title = f"**A dead engine**: from SIGKILL to PeerGone in Python, {kills} kills each"
    return Found(
        tables=[markdown(title, ("wait", "median ms", "p99", "greatest"), lines)],
        figures={wait: {"summary": dataclasses.asdict(one), "kills_ns": nanos[wait]} for wait, one in found.items()},
    )


def _notice_death(wait: str, delay: float, region: str) -> int:
    killed_at = 0
    with serving(f"host_{wait}", SIZES[0], f"--region={region}") as engine:

        def kill() -> None:
            nonlocal killed_at
            time.sleep(delay)
            killed_at = time.perf_counter_ns()
            os.kill(engine.pid, signal.SIGKILL)

        # The client waits in the way it does in use; so somebody else has to kill.
        killer = threading.Thread(target=kill)
        try:
            with tandem.SharedMemoryClient(region, timeout=30, wait=wait) as client:
                actions = np.zeros((client.num_envs, client.act_size), dtype=np.float32)
                for _ in range(10):
                    client.step(actions)
                os.kill(engine.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, engine.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                client.send(actions)
                killer.start()
                try:
                    client.recv()
                except tandem.PeerGone:
                    noticed_at = time.perf_counter_ns()
                else:
                    raise RuntimeError(f"expected PeerGone from a killed engine (pid {engine.pid}), found results")
        finally:
            if killer.ident is not None:
                killer.join()
            # A stopped process does not heed SIGTERM.
            os.kill(engine.pid, signal.SIGKILL)
    if killed_at == 0 or noticed_at < killed_at:
        raise RuntimeError(f"expected the engine (pid {engine.pid}) to live until it was killed; it was gone before")
    return noticed_at - killed_at


SUITE = Suite(
    name="deaths",
    about="how soon a client notices that its engine was killed",
    rows={wait: f"waiting by {wait}" for wait in WAITS},
    baseline=frozenset(),
    measure=_measure,
)
