"""How soon a client notices that its engine died."""

import os
import signal
import sys
import threading
import time

import numpy as np

import tandem
from tests.benchmark.engine_process import serving
from tests.benchmark.measurement import SIZES

WAITS = ("spin", "adaptive", "block")

# Seconds that a client has waited when its engine is killed. Longer than a sleep's slice, so that kills fall on every
# part of one.
_EARLIEST, _LATEST = 0.005, 0.025


def measure_deaths(kills: int, prefix: str) -> dict[str, list[int]]:
    """Kills engines that owe results, one for each wait strategy in every round, the strategies in turn.

    Args:
      kills: How many rounds: kills for each strategy.
      prefix: Regions' names begin with it; the caller removes what killed engines leave.

    Returns:
      For each strategy, the nanoseconds of each kill: from just before it to `PeerGone` raised by `recv`.

    Raises:
      RuntimeError: Results came from a stopped engine, or it was gone before it was killed.
      tandem.TandemError: A client noticed something else, or did before its engine was killed.
    """
    found: dict[str, list[int]] = {wait: [] for wait in WAITS}
    started = time.monotonic()
    for number in range(kills):
        delay = _EARLIEST + (_LATEST - _EARLIEST) * (number + 0.5) / kills
        first = number % len(WAITS)
        for wait in (*WAITS[first:], *WAITS[:first]):
            found[wait].append(_notice_death(wait, delay, f"{prefix}-death-{wait}"))
    print(f"killed {kills} engines for each wait strategy in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return found


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
