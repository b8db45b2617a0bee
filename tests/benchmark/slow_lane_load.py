"""Loads a daemon with many runs and watchers for a long time: memory, missing rows, steps that a watcher gets.

    bazel run //tests/benchmark:slow_lane_load -- [--minutes 60] [--runs 150] [--watchers 50] [--hz 10] [--daemon PATH]

Each run prints numbered steps. Each watcher follows a run from its first step to its last, by one of the two calls; it
disconnects after 5 to 60 s, and resumes after its last step. Every ten seconds the program prints the memory of daemon
and proxies. At the end it compares each run's rows with its worker's file. `--daemon` loads another build, such as one
for ThreadSanitizer, whose reports on Tandem's own code are failures:

    tools/bazel build --config=tsan --nobuild_tests_only --build_tag_filters= //slow_lane/daemon:tandem-daemon
    bin=$(tools/bazel info --config=tsan bazel-bin)   # if it cannot map its memory: setarch --addr-no-randomize, before
    bazel run //tests/benchmark:slow_lane_load -- --minutes 10 --hz 5 --daemon $bin/slow_lane/daemon/tandem-daemon

Exit codes: 0; 1: steps are missing or out of order, or ThreadSanitizer reported a race; 2: wrong command line.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import grpc
import schema.protos.slow_lane_pb2 as slow_lane_pb2
import schema.protos.slow_lane_pb2_grpc as slow_lane_pb2_grpc
import schema.protos.trainer_pb2 as trainer_pb2
import schema.protos.trainer_pb2_grpc as trainer_pb2_grpc

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import DAEMON, Daemon, proxies_of, run_config, running_daemon, wait_until
from tests.benchmark.slow_lane_processes import memory_bytes, open_table, printer_command
from tests.benchmark.slow_lane_races import races_in

_LOOK_SECS = 10.0
_CALL_SECS = (5.0, 60.0)
_ENDING_SECS = 600.0
_UNWANTED = 2**64 - 1
_MIB = 2**20
_ALL_ROWS = "SELECT sum((SELECT max(seq_id) FROM step_rows WHERE step_rows.run = runs.run)) FROM runs"
_ROWS_OF_RUN = "SELECT seq_id, step_index, reward, timestamp_ns FROM steps WHERE run_id = ? ORDER BY seq_id"


@dataclass(frozen=True)
class Sample:
    """The memory at one time; taken every ten seconds.

    Attributes:
      minutes: The minutes since the workers began.
      daemon: The bytes of the daemon's private memory.
      proxies: The bytes of all proxies' private memory.
    """

    minutes: float
    daemon: int
    proxies: int


class Watcher(threading.Thread):
    """Follows a run, and disconnects repeatedly.

    Attributes:
      received: The number of steps received so far.
      calls: The number of calls so far.
      failure: The text of the failure; None: no failure.
    """

    def __init__(self, address: str, run_id: str, batches: bool, seed: int) -> None:
        """Starts the thread."""
        super().__init__(daemon=True)
        self._address, self._run_id, self._batches = address, run_id, batches
        self._chance = random.Random(seed)
        self.received = self.calls = 0
        self.failure: str | None = None
        self.start()

    def run(self) -> None:
        """Watches until the run has ended."""
        options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]
        try:
            with grpc.insecure_channel(self._address, options=options) as channel:
                while not self._watch_for_a_while(channel):
                    pass
        except Exception as error:  # any error fails the load
            self.failure = f"watcher of {self._run_id} after {self.received} steps: {error!r}"

    def _watch_for_a_while(self, channel: grpc.Channel) -> bool:
        self.calls += 1
        call = self._call(channel)
        timer = threading.Timer(self._chance.uniform(*_CALL_SECS), call.cancel)
        timer.start()
        try:
            for message in call:
                for step in message.steps if self._batches else (message,):
                    if step.seq_id != self.received + 1 or step.step_index != self.received:
                        raise RuntimeError(f"expected step {self.received + 1}, found {step.seq_id}: {step}")
                    self.received += 1
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.CANCELLED:
                return False
            raise
        finally:
            timer.cancel()
        return True

    def _call(self, channel: grpc.Channel) -> Any:
        if not self._batches:
            request = trainer_pb2.StreamStepsRequest(run_id=self._run_id, since_seq=self.received)
            return trainer_pb2_grpc.TrainerServiceStub(channel).StreamRunSteps(request)
        return slow_lane_pb2_grpc.SlowLaneStub(channel).StreamEvents(
            slow_lane_pb2.StreamEventsRequest(
                run_id=self._run_id,
                since_step=self.received,
                since_episode=_UNWANTED,
                since_lifecycle=_UNWANTED,
                since_malformed=_UNWANTED,
                follow=True,
            )
        )


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the workers print")
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--hz", type=float, default=10.0, help="steps a second of each run")
    parser.add_argument("--daemon", type=Path, default=DAEMON, metavar="PATH", help="the tandem-daemon to load")
    parsed = parser.parse_args(arguments)
    for name in ("minutes", "runs", "hz"):
        if getattr(parsed, name) <= 0:
            parser.error(f"expected --{name} above 0, found {getattr(parsed, name)}")
    return parsed


def missing_rows(daemon: Daemon, run_id: str, steps: int) -> str | None:
    """Compares a run's rows with its worker's output file.

    Args:
      daemon: The run's daemon.
      run_id: The run.
      steps: The number of printed steps.

    Returns:
      The first difference; None if there is no difference.
    """
    number = 0
    with contextlib.closing(open_table(daemon.table)) as table, daemon.output_of(run_id).open("rb") as lines:
        rows = table.execute(_ROWS_OF_RUN, (run_id,))
        for number, (line, row) in enumerate(zip_longest(lines, rows), 1):
            event = json.loads(line) if line else {}
            expected = (number, event.get("step_index"), event.get("reward"), event.get("ts_unix_ns"))
            if row != expected:
                return f"{run_id}: expected the row {expected}, as printed, found {row}"
    return None if number == steps else f"{run_id}: expected {steps} steps, found {number}"


def slope_per_hour(samples: Sequence[Sample], memory: Sequence[int]) -> float:
    """Fits a line through the later two thirds of the samples, when caches are full.

    Args:
      samples: The samples, in order.
      memory: The bytes of each sample.

    Returns:
      The slope in bytes an hour.
    """
    first = len(samples) // 3
    minutes = [look.minutes for look in samples[first:]]
    return 60 * statistics.linear_regression(minutes, memory[first:]).slope if len(minutes) > 1 else 0.0


def _sample_until_done(daemon: Daemon, client: TrainerClient, watchers: Sequence[Watcher]) -> Iterator[Sample]:
    began = time.monotonic()
    with contextlib.closing(open_table(daemon.table)) as table:
        while True:
            ended = [run.status.final for run in client.runs()]
            if all(ended):
                return
            proxies = proxies_of(daemon.data_dir)
            look = Sample(
                (time.monotonic() - began) / 60,
                memory_bytes(daemon.pid) or 0,
                sum(memory_bytes(pid) or 0 for pid in proxies),
            )
            (rows,) = table.execute(_ALL_ROWS).fetchone()
            print(
                f"{look.minutes:6.1f} min  daemon {look.daemon / _MIB:6.1f} MiB  {len(proxies)} proxies "
                f"{look.proxies / _MIB:7.1f} MiB  {rows or 0:,} rows  "
                f"{sum(one.received for one in watchers):,} watched by {sum(one.calls for one in watchers)} calls",
                flush=True,
            )
            if not any(ended):  # an ended run has no proxy
                yield look
            time.sleep(_LOOK_SECS)


def _failures(daemon: Daemon, run_ids: Sequence[str], watchers: Sequence[Watcher], steps: int) -> list[str]:
    found = [text for run_id in run_ids if (text := missing_rows(daemon, run_id, steps))]
    for watcher in watchers:
        watcher.join(_ENDING_SECS)
        if watcher.failure:
            found.append(watcher.failure)
        elif watcher.is_alive() or watcher.received != steps:
            found.append(f"expected that a watcher got {steps} steps and an end, found {watcher.received}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Starts a daemon and loads it.

    Args:
      arguments: The command line; None: the process's own.

    Returns:
      The exit code.
    """
    parsed = parse_arguments(arguments)
    with tempfile.TemporaryDirectory(prefix="tandem-load-") as folder:
        reports = Path(folder) / "tsan"
        reports.mkdir()
        os.environ["TSAN_OPTIONS"] = f"exitcode=0:log_path={reports}/of"  # builds without ThreadSanitizer ignore it
        failures = _load(parsed, Path(folder)) + [f"ThreadSanitizer: {race}" for race in races_in(reports)]
    for text in failures:
        print(f"tandem: {text}", file=sys.stderr)
    if failures:
        return 1
    steps = steps_of(parsed)
    print(f"{parsed.runs} runs with {steps:,} rows each, as printed; {parsed.watchers} watchers got each step once")
    return 0


def steps_of(parsed: argparse.Namespace) -> int:
    """Returns the number of steps of each run."""
    minutes: float = parsed.minutes
    hz: float = parsed.hz
    return max(1, round(minutes * 60 * hz))


def _load(parsed: argparse.Namespace, folder: Path) -> list[str]:
    """Loads the daemon, and returns the failures."""
    steps = steps_of(parsed)
    samples: list[Sample] = []
    with (
        running_daemon(folder / "data", program=parsed.daemon) as daemon,
        TrainerClient(daemon.address, timeout=60.0) as client,
    ):
        gate = folder / "gate"
        command = printer_command(steps, hz=parsed.hz, block=1, gate=gate)
        run_ids = [client.submit(run_config(*command)).run_id for _ in range(parsed.runs)]
        wait_until(
            lambda: all(run.status is RunStatus.RDY for run in client.runs()), f"{parsed.runs} workers", _ENDING_SECS
        )
        watchers = [
            Watcher(daemon.address, run_ids[index % len(run_ids)], index % 2 == 0, index)
            for index in range(parsed.watchers)
        ]
        gate.touch()
        samples.extend(_sample_until_done(daemon, client, watchers))
        failures = _failures(daemon, run_ids, watchers, steps)
        faults = [f"{run.run_id}: {run.failure_reason}" for run in client.runs() if run.status is RunStatus.FAULT]
    for name, memory in (("daemon", [one.daemon for one in samples]), ("proxies", [one.proxies for one in samples])):
        print(
            f"{name}: {memory[0] / _MIB:.1f} MiB at first, {memory[-1] / _MIB:.1f} at last, at most "
            f"{max(memory) / _MIB:.1f}; the later two thirds: {slope_per_hour(samples, memory) / _MIB:+.2f} MiB an hour"
        )
    return failures + faults


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        print(f"tandem: {error}", file=sys.stderr)
        sys.exit(1)
