"""Daemon, proxies, workers and watchers are killed and stopped at random while runs of all kinds start and end.

The default duration is some seconds. `bazel test //slow_lane/testing:soak_test --test_env=SECONDS=600 --test_env=SEED=7
--test_output=all` runs for ten minutes; the last line has the counts.
"""

import contextlib
import faulthandler
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import slow_lane_pb2_grpc as slow_lane_grpc
from schema.protos import trainer_pb2 as trainer
from schema.protos import trainer_pb2_grpc as trainer_grpc
from slow_lane.testing.printed_lines import check_table
from tandem.testing.daemons import Daemon, proxies_of, run_config, wait_until

_SECONDS = float(os.environ.get("SECONDS", "12"))
_SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1 << 32))))
_SETTLE_SECS = 120.0
_RUNS_AT_ONCE = 5
_CALL_SECS = 5.0
_WORKER = Path(__file__).parent / "soak_worker.py"
_FINAL = (trainer.RUN_STATUS_TERM, trainer.RUN_STATUS_FAULT)
_STREAMS = ("step", "episode", "lifecycle", "malformed")
# The status codes of a call to a daemon that is dead, stopped, or shutting down.
_AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
)


@dataclass
class _Run:
    """A run and the test's actions on it.

    Attributes:
      kind: The kind of `soak_worker`.
      cancelled: Whether the test began to cancel it.
      hit: Whether the test killed a process of its tree.
      seen: The number of rows of each event stream that the watcher received.
      watched: Whether the watcher's stream has ended.
      changes: The run's states, as sent by WatchRuns.
    """

    kind: str
    cancelled: bool = False
    hit: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    watched: bool = False
    changes: list[Any] = field(default_factory=list)

    @property
    def final(self) -> bool:
        """Whether WatchRuns has sent a final state."""
        return bool(self.changes) and self.changes[-1].status in _FINAL


class _Soak:
    """Successive daemons in one folder, their runs, and the threads that use and kill them."""

    def __init__(self, data_dir: Path, log: Path) -> None:
        self.marker = f"tandem-soak-{uuid.uuid4().hex}"
        self.daemon = Daemon(data_dir, "--heartbeat=200ms", "--timeout=2s", "--kill_grace=300ms", log=log)
        self.address = self.daemon.address
        self.runs: dict[str, _Run] = {}
        self.deleted: set[str] = set()
        self.done: Counter[str] = Counter()
        self.settling = threading.Event()
        self.over = threading.Event()
        self.problems: list[str] = []
        self._stopped: dict[int, float] = {}  # pid -> time of its SIGCONT
        self._break: dict[str, grpc.Call] = {}  # streams that the test may cancel
        self._threads: list[threading.Thread] = []

    def start(self, function: Callable[..., None], *arguments: Any) -> None:
        """Starts a thread; an exception of it is recorded as a problem."""

        def guarded() -> None:
            try:
                function(*arguments)
            except Exception:
                self.problems.append(traceback.format_exc())

        thread = threading.Thread(target=guarded, name=function.__name__)
        self._threads.append(thread)
        thread.start()

    def join(self) -> None:
        """Waits until all threads have ended."""
        while self._threads:
            self._threads.pop().join()

    @contextlib.contextmanager
    def stubs(self) -> Iterator[tuple[Any, Any]]:
        """Yields stubs of TrainerService and SlowLane on a new connection."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20)]
        with grpc.insecure_channel(self.address, options=options) as channel:
            yield trainer_grpc.TrainerServiceStub(channel), slow_lane_grpc.SlowLaneStub(channel)

    def call(self, method: str, request: Any, secs: float = _CALL_SECS) -> Any:
        """Retries a call until a daemon answers it; other errors propagate."""
        end = time.monotonic() + _SETTLE_SECS
        while True:
            with self.stubs() as both:
                service = next(stub for stub in both if hasattr(stub, method))
                try:
                    return getattr(service, method)(request, timeout=secs)
                except grpc.RpcError as error:
                    if error.code() is grpc.StatusCode.NOT_FOUND:
                        raise _NotFound from error
                    if error.code() not in _AWAY or time.monotonic() > end or self.over.is_set():
                        raise
            time.sleep(0.05)

    # Threads that use the daemon.

    def submit(self, seed: int) -> None:
        """Submits runs, so that some are always executing."""
        chance = random.Random(seed)
        number = 0
        while not self.settling.is_set():
            if sum(not run.final for run in self.runs.values()) >= _RUNS_AT_ONCE:
                time.sleep(0.02)
                continue
            number += 1
            kind = chance.choice(["print", "print", "tree", "tree", "publish", "endless"])
            run_id = f"{kind}-{number}"
            seconds = chance.choice([0.0, 0.2, 1.0, 3.0]) + (1.0 if kind == "publish" else 0.0)
            config = run_config(
                sys.executable,
                *(str(_WORKER), f"{self.marker}:{run_id}:", kind, str(chance.randrange(1 << 30)), str(seconds)),
                PYTHONPATH=os.pathsep.join(filter(None, sys.path)),
            )
            run = self.runs[run_id] = _Run(kind)
            self.call("SubmitRun", trainer.SubmitRunRequest(run_id=run_id, config_json=json.dumps(config)))
            self.start(self.follow, run_id, run, chance.randrange(1 << 30))
            if kind == "endless" or chance.random() < 0.15:
                self.start(self.cancel, run_id, run, chance.uniform(0.0, 4.0))
            if kind == "endless" or chance.random() < 0.3:
                self.start(self.pause, run_id, run, chance.uniform(0.2, 2.0), chance.uniform(0.0, 1.0))

    def cancel(self, run_id: str, run: _Run, after_secs: float) -> None:
        """Cancels a run, and checks that no process of it is alive after the answer."""
        self.settling.wait(after_secs)
        run.cancelled = True
        with contextlib.suppress(_NotFound):  # the run has ended and was deleted
            self.call("CancelRun", trainer.CancelRunRequest(run_id=run_id), 30.0)
        if left := self.workers(run_id):
            self.problems.append(f"{run_id}: cancelled, and alive: {left}")

    def pause(self, run_id: str, run: _Run, after_secs: float, for_secs: float) -> None:
        """Pauses a run and resumes it."""
        self.settling.wait(after_secs)
        if self._control(run_id, trainer.ControlEvent(run_id=run_id, pause=True)):
            self.done["pauses"] += 1
            self.settling.wait(for_secs)
        while not run.final and not self._control(run_id, trainer.ControlEvent(run_id=run_id, resume=True)):
            if any(change.status == trainer.RUN_STATUS_EXEC for change in run.changes[-1:]):
                return
            time.sleep(0.1)

    def _control(self, run_id: str, event: Any) -> bool:
        while True:
            with self.stubs() as (service, _):
                try:
                    list(service.ControlStream(iter([event]), timeout=_CALL_SECS))
                    return True
                except grpc.RpcError as error:
                    if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                        return False
                    if error.code() not in _AWAY or self.over.is_set():
                        raise
            time.sleep(0.05)

    def follow(self, run_id: str, run: _Run, seed: int) -> None:
        """Watches a run's events to its end, then checks the table, and may delete the run."""
        while not run.watched and not self.over.is_set():
            request = slow_lane.StreamEventsRequest(
                run_id=run_id, follow=True, **{f"since_{name}": run.seen[name] for name in _STREAMS}
            )
            with self.stubs() as (_, service):
                # A stopped daemon does not answer, and a stream of a run that prints nothing has no messages.
                call = self._break[run_id] = service.StreamEvents(request, timeout=60)
                try:
                    for batch in call:
                        for name, events in zip(
                            _STREAMS, (batch.steps, batch.episodes, batch.lifecycle, batch.malformed), strict=True
                        ):
                            numbers = [event.seq_id for event in events]
                            first = run.seen[name] + 1
                            assert numbers == list(range(first, first + len(numbers))), f"{run_id}: {name}: {numbers}"
                            run.seen[name] += len(numbers)
                    run.watched = True
                except grpc.RpcError as error:
                    if error.code() not in _AWAY:
                        raise
                finally:
                    del self._break[run_id]
            time.sleep(0.02)
        wait_until(lambda: run.final or self.over.is_set(), f"WatchRuns to say the end of {run_id}", _SETTLE_SECS)
        if left := self.workers(run_id):
            self.problems.append(f"{run_id}: ended, and alive: {left}")
        self.check(run_id, run)
        if random.Random(seed).random() < 0.5:
            self.deleted.add(run_id)
            with contextlib.suppress(_NotFound):  # an earlier call deleted it, and its answer was lost
                self.call("DeleteRun", slow_lane.DeleteRunRequest(run_id=run_id))

    def watch_runs(self) -> None:
        """Follows the state changes of all runs, and checks that each arrives once and in order."""
        since = 0
        while not self.over.is_set():
            with self.stubs() as (service, _):
                call = self._break["runs"] = service.WatchRuns(trainer.WatchRunsRequest(since_seq=since), timeout=60)
                try:
                    for record in call:
                        assert record.seq_id > since or since == 0, f"{record.run_id}: {record.seq_id} after {since}"
                        since = max(since, record.seq_id)
                        run = self.runs[record.run_id]
                        assert not run.final, f"{record.run_id}: {record} after {run.changes}"
                        run.changes.append(record)
                except grpc.RpcError as error:
                    if error.code() not in _AWAY:
                        raise
            time.sleep(0.02)

    def end_watches(self) -> None:
        """Ends `watch_runs`, and after a failure the other streams as well."""
        self.over.set()
        for call in list(self._break.values()):
            call.cancel()

    # Functions that kill.

    def workers(self, run_id: str = "") -> list[int]:
        """Returns the pids of a run's process tree, or of all runs' without a run_id."""
        word = f"{self.marker}:{run_id}:" if run_id else self.marker
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                with contextlib.suppress(OSError):  # the process has exited
                    if word.encode() in (process / "cmdline").read_bytes():
                        found.append(int(process.name))
        return found

    def kill_something(self, chance: random.Random) -> None:
        """Kills or stops one process, or ends a watcher's stream."""
        victim = chance.choices(["daemon", "proxy", "worker", "watcher"], [3, 4, 2, 2])[0]
        stops = chance.random() < 0.2
        if victim == "watcher":
            for call in chance.sample(list(self._break.values()), min(1, len(self._break))):
                call.cancel()
        elif victim == "daemon" and not stops:
            polite = chance.random() < 0.2
            if polite:
                self.go_on(all_of_them=True)
                code = self.daemon.stop()
                if code != 0:
                    self.problems.append(f"daemon: exit code {code} after SIGTERM")
            else:
                self.daemon.kill()
            self.done["daemon stopped" if polite else "daemon"] += 1
            self._stopped.pop(self.daemon.pid, None)
            time.sleep(chance.uniform(0.0, 0.3))
            self.daemon.start()
            return
        else:
            if victim == "daemon":
                pids = [self.daemon.pid]
            else:
                pids = proxies_of(self.daemon.data_dir) if victim == "proxy" else self.workers()
            if not pids:
                return
            self._signal(chance.choice(pids), stops, chance.uniform(0.0, 1.0))
        self.done[f"{victim} suspended" if stops and victim != "watcher" else victim] += 1

    def _signal(self, pid: int, stops: bool, secs: float) -> None:
        with contextlib.suppress(OSError):  # the process has exited
            # Before its exec, a worker's process has the proxy's command line, but already the run's environment.
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            for run_id, run in self.runs.items():
                if not stops and f"TANDEM_RUN_ID={run_id}".encode() in environment:
                    run.hit = True
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
            if stops:
                self._stopped[pid] = time.monotonic() + secs

    def go_on(self, *, all_of_them: bool = False) -> None:
        """Sends SIGCONT to processes whose stop time is over, or to all stopped ones."""
        for pid, when in list(self._stopped.items()):
            if all_of_them or time.monotonic() > when:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                del self._stopped[pid]

    # Checks.

    def check(self, run_id: str, run: _Run) -> None:
        """Checks the table, the counts and the final state of an ended run."""
        printed = check_table(self.daemon.data_dir, run_id)
        request = slow_lane.DescribeRunsRequest(run_ids=[run_id])
        (described,) = self.call("DescribeRuns", request).runs
        output = self.daemon.output_of(run_id)
        size = output.stat().st_size if output.exists() else 0  # absent if cancelled before the start
        assert described.text_lines == printed.text_lines, f"{run_id}: {described.text_lines} text lines"
        assert described.bytes_read == size, f"{run_id}: {described.bytes_read} bytes read of {size}"
        assert described.steps_printed == len(printed.steps), f"{run_id}: {described.steps_printed} steps printed"
        for name in _STREAMS:
            rows = getattr(described, name if name in ("lifecycle", "malformed") else f"{name}s")
            assert run.seen[name] == rows, f"{run_id}: {rows} rows of {name}, {run.seen[name]} were watched"
        record = run.changes[-1]
        if not run.hit and not run.cancelled:
            assert record.status == trainer.RUN_STATUS_TERM and not record.failure_reason, f"{run_id}: {record}"
        elif not run.hit:
            assert record.status == trainer.RUN_STATUS_TERM, f"{run_id}: {record}"
        self.done["rows"] += sum(run.seen.values())
        self.done["ends"] += 1

    def clear(self) -> list[str]:
        """Kills all remaining processes, and returns their command lines."""
        self.settling.set()
        self.end_watches()
        self.go_on(all_of_them=True)
        self.daemon.kill()
        left = {pid: Path(f"/proc/{pid}/cmdline") for pid in (*self.workers(), *proxies_of(self.daemon.data_dir))}
        words = []
        for pid, path in left.items():
            with contextlib.suppress(OSError):
                words.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                os.kill(pid, signal.SIGKILL)
        return words


class _NotFound(Exception):
    """A run was not found."""


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Ends a soak that hangs, and prints the stacks of all threads."""
    faulthandler.dump_traceback_later(_SECONDS + 3 * _SETTLE_SECS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_each_run_ends_with_all_events_despite_kills(tmp_path: Path) -> None:
    """Afterwards no process of a run, proxy or daemon is left."""
    chance = random.Random(_SEED)
    soak = _Soak(tmp_path / "data", tmp_path / "daemon.log")
    try:
        soak.start(soak.watch_runs)
        soak.start(soak.submit, chance.randrange(1 << 30))
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and not soak.problems:
            time.sleep(chance.uniform(0.0, 0.3))
            soak.go_on()
            soak.kill_something(chance)
        soak.go_on(all_of_them=True)
        soak.settling.set()
        begin = time.monotonic()
        expected = "all runs to end, and their watchers to have seen it"
        followed = lambda: soak.done["ends"] == len(soak.runs) or soak.problems  # noqa: E731
        wait_until(followed, expected, _SETTLE_SECS)
        settled_secs = time.monotonic() - begin
        assert soak.problems == []
        soak.end_watches()
        soak.join()
        assert soak.problems == []
        assert {run_id for run_id, run in soak.runs.items() if not run.final} == set()
        kept = soak.runs.keys() - soak.deleted
        folders = soak.daemon.data_dir / "runs"
        wait_until(lambda: {path.name for path in folders.iterdir()} == kept, "folders of the kept runs alone")
        status = Path(f"/proc/{soak.daemon.pid}/status").read_text("utf-8")
        memory = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        assert soak.daemon.stop() == 0
        wait_until(lambda: not proxies_of(soak.daemon.data_dir), "all proxies to end")
        assert soak.workers() == []
        for run_id in kept:
            check_table(soak.daemon.data_dir, run_id)
        with contextlib.closing(sqlite3.connect(soak.daemon.table)) as table:
            for view in ("steps", "episodes", "lifecycle", "malformed"):
                assert {run_id for (run_id,) in table.execute(f"SELECT DISTINCT run_id FROM {view}")} <= kept
            assert table.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        kinds = Counter(run.kind for run in soak.runs.values())
        hits = sum(run.hit for run in soak.runs.values())
        print(f"{len(soak.runs)} runs {dict(kinds)}, {hits} with a killed process, {len(soak.deleted)} deleted")
        print(f"settled after {settled_secs:.1f} s; last daemon's {memory.split(':')[1].strip()} at most")
        print(f"{_SECONDS:g} s, seed {_SEED}: {dict(soak.done)}")
    except BaseException:
        print(f"seed {_SEED}: {dict(soak.done)}; the daemons' log:\n{(tmp_path / 'daemon.log').read_text()[-4000:]}")
        for problem in soak.problems[:5]:
            print(problem)
        raise
    finally:
        print("killed at the end:", soak.clear())
        with contextlib.suppress(Exception):
            soak.join()
