"""A hundred workers that print a thousand steps a second each: how far the table is behind them."""

import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import Daemon, proxies_of, run_config, running_daemon, wait_until
from tests.benchmark.quantile import quantile
from tests.benchmark.slow_lane_processes import TICKS, cpu_seconds, open_table, printer_command
from tests.benchmark.suite import Plan
from tests.benchmark.tables import Spread, markdown

ROWS = {"many": "100 workers, 1,000 steps/s each"}
WORKERS, HZ = 100, 1000
_SECONDS, _QUICK_SECONDS = 20, 5
_BLOCK = 10  # steps of a worker at once, each 10 ms
_LOOK_SECS = 0.1
_TIMEOUT_SECS = 120.0
_LAST_ROWS = "SELECT run, (SELECT max(seq_id) FROM step_rows WHERE step_rows.run = runs.run) FROM runs"
_TIMES = "SELECT timestamp_ns FROM step_rows WHERE run = ? ORDER BY seq_id"


@dataclass(frozen=True)
class Round:
    """What a round showed, from when each worker had a row until the first one printed its last step.

    Attributes:
      steps: Durable rows at its end, all that were printed.
      rate: Steps a second.
      lag_p50_ms: Age of a worker's oldest step that is not durable, 0 where all are; over all workers and looks.
      lag_p99_ms: The same.
      lag_max_ms: The same.
      cores: CPU time of daemon and proxies, by the time that went by.
      all_cores: That of the whole machine, workers and the one who looks included.
      rest_secs: From the last step that was printed until all rows were durable: the workers end all at once.
    """

    steps: int
    rate: float
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    cores: float
    all_cores: float
    rest_secs: float


@dataclass(frozen=True)
class _Look:
    unix_ns: int
    rows: dict[int, int]  # run's number in the table -> its last row
    cpu: dict[int, float]  # pid of the daemon and of proxies -> seconds
    busy: float  # seconds of all cores


def measure(plan: Plan, rounds: int) -> tuple[str, dict[str, Any]] | None:
    """Measures, if the plan has it.

    Args:
      plan: The suite's.
      rounds: How often.

    Returns:
      A table and the figures; None: it is not in the plan.
    """
    if plan.rows.isdisjoint(ROWS):
        return None
    found = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-many-") as folder:
            found.append(measure_round(Path(folder), WORKERS, _QUICK_SECONDS if plan.quick else _SECONDS))
        print(f"slow_lane: many workers, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    title = f"**{WORKERS} workers, {HZ:,} steps a second each**: median (least .. greatest) of {rounds} rounds"
    head = (
        "rows",
        "K steps/s",
        "behind: p50 ms",
        "p99 ms",
        "greatest ms",
        "daemon and proxies, cores",
        "all, cores",
        "all rows there, seconds after the last print",
    )
    columns = [
        [one.rate / 1e3 for one in found],
        [one.lag_p50_ms for one in found],
        [one.lag_p99_ms for one in found],
        [one.lag_max_ms for one in found],
        [one.cores for one in found],
        [one.all_cores for one in found],
        [one.rest_secs for one in found],
    ]
    line = [f"all {found[0].steps:,}", *(str(Spread.of(column)) for column in columns)]
    return markdown(title, head, [line]), {"rounds": [asdict(one) for one in found]}


def measure_round(folder: Path, workers: int, seconds: int) -> Round:
    """Lets the workers print for so long, and looks at the table meanwhile.

    Args:
      folder: For the daemon's files.
      workers: How many.
      seconds: That each prints.

    Returns:
      What was seen.

    Raises:
      RuntimeError: Rows are missing, or the workers were never all at work.
    """
    steps = seconds * HZ
    with running_daemon(folder / "data") as daemon, TrainerClient(daemon.address) as client:
        gate = folder / "gate"
        for _ in range(workers):
            client.submit(run_config(*printer_command(steps, hz=HZ, block=_BLOCK, gate=gate)))
        wait_until(lambda: all(run.status is RunStatus.RDY for run in client.runs()), f"{workers} workers")
        gate.touch()
        with contextlib.closing(open_table(daemon.table)) as table:
            looks = _look_until_done(daemon, table, workers, steps)
            times = {run: [at for (at,) in table.execute(_TIMES, (run,))] for run in looks[-1].rows}
    first_end = min(of_run[-1] for of_run in times.values())
    together = [look for look in looks if min(look.rows.values()) > 0 and look.unix_ns < first_end]
    if len(together) < 2:
        raise RuntimeError(
            f"expected {workers} workers at work at once, found that the first ended before the last had rows; "
            "let them print for longer, or give it an idle machine"
        )
    lags = [_lag_ns(times[run], rows, look.unix_ns) for look in together for run, rows in look.rows.items()]
    first, last = together[0], together[-1]
    passed = (last.unix_ns - first.unix_ns) / 1e9
    return Round(
        steps=workers * steps,
        rate=(sum(last.rows.values()) - sum(first.rows.values())) / passed,
        lag_p50_ms=quantile(lags, 0.5) / 1e6,
        lag_p99_ms=quantile(lags, 0.99) / 1e6,
        lag_max_ms=max(lags) / 1e6,
        cores=sum(cpu - first.cpu.get(pid, 0.0) for pid, cpu in last.cpu.items()) / passed,
        all_cores=(last.busy - first.busy) / passed,
        rest_secs=(looks[-1].unix_ns - max(of_run[-1] for of_run in times.values())) / 1e9,
    )


def _look_until_done(daemon: Daemon, table: Any, workers: int, steps: int) -> list[_Look]:
    looks: list[_Look] = []
    pids: list[int] = []
    end = time.monotonic() + steps / HZ + _TIMEOUT_SECS
    while True:
        rows = {run: last or 0 for run, last in table.execute(_LAST_ROWS)}
        now = time.time_ns()
        if len(pids) <= workers:  # until all proxies are there
            pids = [daemon.pid, *proxies_of(daemon.data_dir)]
        cpu = {pid: used for pid in pids if (used := cpu_seconds(pid)) is not None}
        looks.append(_Look(now, rows, cpu, _busy_seconds()))
        if min(rows.values()) == steps:
            return looks
        if time.monotonic() > end:
            raise RuntimeError(f"expected {steps} rows of each run, found {sorted(rows.values())[:3]} ...")
        time.sleep(_LOOK_SECS)


def _lag_ns(times: Sequence[int], rows: int, now: int) -> int:
    """How long the first step that is not durable has been there; 0: it was not printed yet."""
    return max(0, now - times[rows]) if rows < len(times) else 0


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / TICKS
