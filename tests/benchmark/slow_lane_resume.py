"""How long a watcher takes to get all that a run has in the table, from its first step on."""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import schema.protos.slow_lane_pb2 as slow_lane_pb2
import schema.protos.slow_lane_pb2_grpc as slow_lane_pb2_grpc

from tandem.telemetry import TrainerClient
from tandem.telemetry.wire import load
from tandem.testing.daemons import Daemon, running_daemon, wait_until
from tests.benchmark.json_program import answer_of
from tests.benchmark.slow_lane_calls import TIMED_CLIENT
from tests.benchmark.slow_lane_events import print_steps, python_command, python_variables
from tests.benchmark.slow_lane_processes import cpu_seconds, printer_command
from tests.benchmark.suite import Plan, in_turn
from tests.benchmark.tables import Spread, markdown

ROWS = {
    "resume_cpp_batches": "StreamEvents, C++",
    "resume_cpp_messages": "StreamRunSteps, C++",
    "resume_python_batches": "StreamEvents, Python",
    "resume_python_client": "TrainerClient.steps, Python",
    "resume_python_messages": "TrainerClient.steps of a server without StreamEvents, Python",
}
_EVENTS, _QUICK_EVENTS = 1_000_000, 50_000
_TIMEOUT_SECS = 300.0
_UNWANTED = 2**64 - 1


@dataclass(frozen=True)
class Resumed:
    """Of a row: seconds, one of each round.

    Attributes:
      seconds: From the call to its end.
      client_cpu: The watcher's CPU time, its start included.
      daemon_cpu: The daemon's.
    """

    seconds: list[float] = field(default_factory=list)
    client_cpu: list[float] = field(default_factory=list)
    daemon_cpu: list[float] = field(default_factory=list)


def measure(plan: Plan, rounds: int) -> tuple[str, dict[str, Any]] | None:
    """Measures the plan's ways in turn.

    Args:
      plan: The suite's.
      rounds: How often.

    Returns:
      A table and the figures; None: none of them is in the plan.
    """
    rows = [row for row in ROWS if row in plan.rows]
    if not rows:
        return None
    events = _QUICK_EVENTS if plan.quick else _EVENTS
    found = {row: Resumed() for row in rows}
    with (
        tempfile.TemporaryDirectory(prefix=f"{plan.prefix}-resume-") as folder,
        running_daemon(Path(folder) / "data") as daemon,
        TrainerClient(daemon.address) as client,
    ):
        run_id = print_steps(daemon, client, printer_command(events), events)
        wait_until(lambda: all(run.status.final for run in client.runs()), "a run that has ended")
        for number in range(rounds):
            for row in in_turn(rows, number):
                _measure(found[row], row, daemon, run_id, events)
            print(f"slow_lane: resume, round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    lines = [
        [
            ROWS[row],
            *(str(Spread.of(those)) for those in (one.seconds, one.daemon_cpu, one.client_cpu)),
            str(Spread.of([events / seconds / 1e3 for seconds in one.seconds])),
        ]
        for row, one in found.items()
    ]
    title = f"**{events:,} steps from the table to a watcher**: median (least .. greatest) of {rounds} rounds"
    head = ("way", "seconds", "daemon's CPU seconds", "watcher's", "K steps/s")
    return markdown(title, head, lines), {row: {"events": events, **asdict(one)} for row, one in found.items()}


def _measure(resumed: Resumed, row: str, daemon: Daemon, run_id: str, events: int) -> None:
    _, language, way = row.split("_")
    before = cpu_seconds(daemon.pid)
    arguments = [f"--target={daemon.address}", f"--call={way}", f"--run_id={run_id}"]
    command = [str(TIMED_CLIENT)] if language == "cpp" else python_command("tests.benchmark.slow_lane_resume")
    found = answer_of([*command, *arguments], timeout_secs=_TIMEOUT_SECS, variables=python_variables())
    after = cpu_seconds(daemon.pid)
    if found["events"] != events or before is None or after is None:
        raise RuntimeError(f"expected {events} steps and a daemon that lives, found {found}")
    resumed.seconds.append(found["seconds"])
    resumed.client_cpu.append(found["cpu_seconds"])
    resumed.daemon_cpu.append(after - before)


def _blocks(target: str, run_id: str) -> Iterator[Sequence[Any]]:
    request = slow_lane_pb2.StreamEventsRequest(
        run_id=run_id,
        since_episode=_UNWANTED,
        since_lifecycle=_UNWANTED,
        since_malformed=_UNWANTED,
        follow=True,
    )
    with grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", 64 << 20)]) as channel:
        for batch in slow_lane_pb2_grpc.SlowLaneStub(channel).StreamEvents(request):
            yield batch.steps


def _client(target: str, run_id: str) -> Iterator[Sequence[Any]]:
    with TrainerClient(target) as client:
        for step in client.steps(run_id):
            yield (step,)


def _client_of_messages(target: str, run_id: str) -> Iterator[Sequence[Any]]:
    """Asks for blocks by a path that the daemon does not have, as any other server: it answers UNIMPLEMENTED."""
    methods = load().methods
    methods["StreamEvents"] = replace(methods["StreamEvents"], path="/tandem.slow_lane.v0.SlowLane/StreamEvents")
    yield from _client(target, run_id)


def main(arguments: Sequence[str] | None = None) -> None:
    """Watches a run that has ended, and prints how long that took, as timed_client does in C++.

    Args:
      arguments: The command line; None: the process's own.
    """
    parser = argparse.ArgumentParser()
    for flag in ("--target", "--call", "--run_id"):
        parser.add_argument(flag, required=True)
    parsed = parser.parse_args(arguments)
    ways = {"batches": _blocks, "client": _client, "messages": _client_of_messages}
    events = 0
    begin = time.perf_counter()
    for block in ways[parsed.call](parsed.target, parsed.run_id):
        for step in block:
            events += 1
            if step.seq_id != events:
                raise RuntimeError(f"expected step {events}, found {step.seq_id}")
    seconds = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_SELF)
    found: Mapping[str, float] = {
        "events": events,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
