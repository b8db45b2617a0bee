"""The time to detect a killed engine."""

import os
import signal
import threading
import time

import numpy as np

import tandem
from tests.benchmark.engine_process import SMALL, WAITS, serving
from tests.benchmark.rows import Case, Figures, Row, Suite, turns

# How long a client waits, in seconds, before its engine is killed; the range is longer than one slice of a sleep.
_EARLIEST, _LATEST = 0.005, 0.025


def _deaths(wait: str, name: str, seconds: float) -> Figures:
    """Kills engines with a pending exchange, at most 15 in a turn."""
    kills = max(2, round(30 * seconds))
    delays = np.linspace(_EARLIEST, _LATEST, kills)
    millis = [_notice_death(wait, float(delay), name) / 1e6 for delay in delays]
    p50, p99 = np.percentile(millis, (50, 99))
    return {"p50 ms": float(p50), "p99 ms": float(p99), "greatest ms": max(millis)}


def _notice_death(wait: str, delay: float, name: str) -> int:
    killed_at = 0
    with serving(f"host_{wait}", SMALL, name) as engine:

        def kill() -> None:
            nonlocal killed_at
            time.sleep(delay)
            killed_at = time.perf_counter_ns()
            os.kill(engine, signal.SIGKILL)

        # This thread waits as a trainer's thread does, so another thread kills the engine.
        killer = threading.Thread(target=kill)
        try:
            with tandem.SharedMemoryClient(name, timeout=30, wait=wait) as client:
                actions = np.zeros((client.num_envs, client.act_size), dtype=np.float32)
                for _ in range(10):
                    client.step(actions)
                os.kill(engine, signal.SIGSTOP)
                os.waitid(os.P_PID, engine, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                client.send(actions)
                killer.start()
                try:
                    client.recv()
                except tandem.PeerGone:
                    noticed_at = time.perf_counter_ns()
                else:
                    raise RuntimeError(f"expected PeerGone from a killed engine (pid {engine}), found results")
        finally:
            if killer.ident is not None:
                killer.join()
            os.kill(engine, signal.SIGKILL)  # a stopped process ignores SIGTERM
    if killed_at == 0 or noticed_at < killed_at:
        raise RuntimeError(f"expected the engine (pid {engine}) to live until it was killed, found that it had ended")
    return noticed_at - killed_at


SUITES = {
    "deaths": Suite(
        "deaths",
        "the time to detect a killed engine",
        [
            Case(
                "A dead engine: from SIGKILL to PeerGone in Python",
                [Row(wait, f"Tandem, {wait}", turns(_deaths, wait)) for wait in WAITS],
            )
        ],
        __name__,
    )
}
