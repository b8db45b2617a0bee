"""A real daemon for tests of the slow lane: a test starts, kills, stops, calls and inspects it.

Every wait has a deadline. After each test, `lane` kills all processes that belong to its folder or have its marker.
"""

import contextlib
import faulthandler
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from schema.protos import slow_lane_pb2 as slow_lane
from schema.protos import slow_lane_pb2_grpc as slow_lane_grpc
from schema.protos import trainer_pb2 as trainer
from schema.protos import trainer_pb2_grpc as trainer_grpc
from tandem.testing.daemons import DEADLINE_SECS, Daemon, Gate, is_alive, proxies_of, wait_until

INIT, HSHK, RDY, EXEC = (
    trainer.RUN_STATUS_INIT,
    trainer.RUN_STATUS_HSHK,
    trainer.RUN_STATUS_RDY,
    trainer.RUN_STATUS_EXEC,
)
PAUSE, FAULT, TERM = trainer.RUN_STATUS_PAUSE, trainer.RUN_STATUS_FAULT, trainer.RUN_STATUS_TERM

WATCHDOG_SECS = 240

OTHER = 12345  # a uid; no user with it needs to exist

# A sandbox's root user cannot become another user.
needs_users = pytest.mark.skipif(
    os.geteuid() != 0 or Path("/proc/self/uid_map").read_text("utf-8").split()[2] == "1",
    reason="only root becomes other users",
)

# Precedes a worker's program, after that of `Gate`.
_PREAMBLE = """
def lines(first, last, **fields):
    rest = "".join(f', "{name}": {json.dumps(value)}' for name, value in fields.items())
    return "".join(
        f'{{"event_type": "step", "episode": 0, "step_index": {index}, "reward": 1{rest}}}\\n'
        for index in range(first, last + 1)
    ).encode()
def put(data):
    data = memoryview(data)
    while data:
        data = data[os.write(1, data):]
def steps(first, last, **fields):
    put(lines(first, last, **fields))
"""


def _cmdline(pid: int) -> list[str]:
    try:
        return [word.decode(errors="replace") for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and int(path.name) != os.getpid()]


class Lane:
    """A daemon with its own folder, and the calls and inspections that tests need.

    Attributes:
      data_dir: The daemon's data folder.
      scratch: A folder for the test's own files, outside the data folder.
      open: Lets `wait_for` of a gate's name return in workers.
      marker: A word on the command line of each of its workers.
      address: The daemon's HOST:PORT.
      pid: The daemon's process id.
      trainer: Stub of TrainerService.
      slow_lane: Stub of SlowLane.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        """Creates the folders; starts no daemon.

        Args:
          folder: An empty folder.
          flags: Flags of each daemon.
        """
        self.data_dir, self.scratch, self._gate = folder / "data", folder / "scratch", Gate(folder / "gates")
        self.scratch.mkdir()
        self.open = self._gate.open
        self.marker = f"tandem-test-{uuid.uuid4().hex}"
        self.flags = flags
        self.environment: dict[str, str] = {}
        self._daemon: Daemon | None = None
        self._channel: Any = None

    def start(self) -> "Lane":
        """Starts the daemon, at its previous address if it had one, and returns when it listens."""
        if self._daemon is None:
            log = self.scratch / "daemon.log"
            self._daemon = Daemon(self.data_dir, *self.flags, environment=self.environment, log=log)
        else:
            self._daemon.start()
        self.address, self.pid = self._daemon.address, self._daemon.pid
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(self.address, options=options)
        self.trainer = trainer_grpc.TrainerServiceStub(self._channel)
        self.slow_lane = slow_lane_grpc.SlowLaneStub(self._channel)
        return self

    @property
    def daemon(self) -> Daemon:
        """The daemon, which was started at least once."""
        assert self._daemon is not None
        return self._daemon

    def start_expecting_exit(self, *flags: str) -> tuple[int, str]:
        """Starts another daemon that is expected to exit with an error.

        Args:
          flags: Additional flags; a repeated flag replaces the first daemon's.

        Returns:
          The exit code, and the text on stderr.
        """
        command = [*self.daemon.command, *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECS, check=False)
        return ended.returncode, ended.stderr

    def kill(self) -> None:
        """Kills the daemon; its runs continue."""
        self.daemon.kill()
        self._channel.close()

    def stop(self) -> int:
        """Sends SIGTERM to the daemon and waits for its exit; its runs continue.

        Returns:
          The exit code.
        """
        code = self.daemon.stop()
        self._channel.close()
        return code

    def restart(self) -> None:
        """Kills the daemon and starts it again."""
        self.kill()
        self.start()

    def log(self) -> str:
        """Returns the daemons' text on stderr."""
        return (self.scratch / "daemon.log").read_text("utf-8", errors="replace")

    def program(self, source: str, *arguments: str) -> dict[str, Any]:
        """Makes the configuration of a run of a Python program.

        Args:
          source: The program; it may call what `_PREAMBLE` and that of `Gate` define.
          arguments: sys.argv[2:]; [1] is the marker.

        Returns:
          The run's configuration.
        """
        return self._gate.program(_PREAMBLE + source, self.marker, *arguments)

    def submit(self, config: dict[str, Any], run_id: str = "") -> str:
        """Submits a run.

        Args:
          config: The run's configuration.
          run_id: Empty: the daemon makes a run_id.

        Returns:
          The run_id.
        """
        request = trainer.SubmitRunRequest(run_id=run_id, config_json=json.dumps(config))
        submitted: str = self.trainer.SubmitRun(request, timeout=DEADLINE_SECS).run_id
        return submitted

    def run(self, source: str, *arguments: str) -> str:
        """Submits `program(source, *arguments)` and returns the run_id."""
        return self.submit(self.program(source, *arguments))

    def cancel(self, run_id: str) -> None:
        """Calls CancelRun and waits for the answer."""
        self.trainer.CancelRun(trainer.CancelRunRequest(run_id=run_id), timeout=DEADLINE_SECS)

    def record(self, run_id: str) -> Any:
        """Returns the run's RunRecord."""
        records = self.trainer.ListRuns(trainer.ListRunsRequest(), timeout=DEADLINE_SECS).runs
        (record,) = [record for record in records if record.run_id == run_id]
        return record

    def describe(self, run_id: str) -> Any:
        """Returns the run's RunDescription."""
        request = slow_lane.DescribeRunsRequest(run_ids=[run_id])
        (run,) = self.slow_lane.DescribeRuns(request, timeout=DEADLINE_SECS).runs
        return run

    def daemon_state(self) -> Any:
        """Returns the answer of DescribeRuns."""
        return self.slow_lane.DescribeRuns(slow_lane.DescribeRunsRequest(), timeout=DEADLINE_SECS)

    def healthy(self) -> bool:
        """Returns `healthy` of GetHealth's answer."""
        healthy: bool = self.trainer.GetHealth(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS).healthy
        return healthy

    def wait_for(self, run_id: str, *statuses: int, secs: float = DEADLINE_SECS) -> Any:
        """Waits until the run has one of the given states, and returns its RunRecord."""

        def reached() -> Any:
            record = self.record(run_id)
            final = record.status in (TERM, FAULT)
            assert not final or record.status in statuses, record
            return record if record.status in statuses else None

        return wait_until(reached, f"{run_id} to become one of {statuses}", secs)

    def wait_for_steps(self, run_id: str, count: int) -> None:
        """Waits until the table has the given number of the run's steps."""
        wait_until(lambda: self.describe(run_id).steps == count, f"step {count} of {run_id}")

    def steps(self, run_id: str, since: int = 0) -> list[Any]:
        """Returns all steps of an ended run, by StreamRunSteps."""
        request = trainer.StreamStepsRequest(run_id=run_id, since_seq=since)
        return list(self.trainer.StreamRunSteps(request, timeout=DEADLINE_SECS))

    def first_steps(self, run_id: str, count: int, since: int = 0) -> list[Any]:
        """Returns the next `count` steps by StreamRunSteps; the run may still execute."""
        call = self.trainer.StreamRunSteps(
            trainer.StreamStepsRequest(run_id=run_id, since_seq=since), timeout=DEADLINE_SECS
        )
        found = [step for _, step in zip(range(count), call, strict=False)]
        call.cancel()
        return found

    def table(self, sql: str, *values: Any) -> list[Any]:
        """Reads the table with its own connection, while the daemon may run.

        Args:
          sql: One statement.
          values: The values of the statement's parameters.

        Returns:
          The rows.
        """
        with contextlib.closing(
            sqlite3.connect(f"file:{self.data_dir}/tandem.db?mode=ro", uri=True, timeout=30)
        ) as base:
            return base.execute(sql, values).fetchall()

    def step_indices(self, run_id: str) -> list[int]:
        """Returns the rows' step_index in the order of seq_id, and checks that seq_id has no gap."""
        rows = self.table("SELECT seq_id, step_index FROM steps WHERE run_id = ? ORDER BY seq_id", run_id)
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        return [row[1] for row in rows]

    @contextlib.contextmanager
    def no_commits(self) -> Iterator[None]:
        """Holds the table's write lock, so that no commit of the daemon completes."""
        with contextlib.closing(sqlite3.connect(self.data_dir / "tandem.db", timeout=30, isolation_level=None)) as base:
            base.execute("BEGIN IMMEDIATE")
            yield
            base.execute("ROLLBACK")

    def proxy(self, run_id: str) -> int | None:
        """Returns the pid of the run's live proxy, or None."""
        return next(iter(proxies_of(self.data_dir, run_id)), None)

    def wait_for_proxy(self, run_id: str) -> int:
        """Waits until the run has a proxy, and returns its pid."""
        pid: int = wait_until(lambda: self.proxy(run_id), f"a proxy of {run_id}")
        return pid

    def workers(self) -> list[int]:
        """Returns the pids of the live processes with the marker."""
        return [pid for pid in _processes() if any(self.marker in word for word in _cmdline(pid)) and is_alive(pid)]

    def peak_rss_bytes(self, pid: int | None = None) -> int:
        """Returns the peak resident memory of a process, by default the daemon's."""
        for line in Path(f"/proc/{pid or self.pid}/status").read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        raise AssertionError("no VmHWM")

    def _own(self) -> list[int]:
        pids = self.workers()
        for pid in _processes():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd").startswith(str(self.data_dir)) and is_alive(pid):
                    pids.append(pid)
        return pids

    def clear(self) -> None:
        """Kills the daemon, its proxies and its workers."""
        if self._channel is not None:
            self._channel.close()

        def none_left() -> bool:
            left = self._own()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        wait_until(none_left, "all processes of the test to end")
        if self._daemon is not None:
            self._daemon.kill()


@contextlib.contextmanager
def running_lane(*flags: str, starts: bool = True) -> Iterator[Lane]:
    """Creates a folder and starts a daemon in it; at the end kills all processes and removes the folder.

    Args:
      flags: The daemon's flags.
      starts: Whether to start the daemon; otherwise the test calls `Lane.start`.

    Yields:
      The daemon.
    """
    folder = Path(tempfile.mkdtemp(prefix="tandem-lane-"))
    lane = Lane(folder, *flags)
    try:
        yield lane.start() if starts else lane
    finally:
        lane.clear()
        shutil.rmtree(folder)


@pytest.fixture(name="lane")
def lane_fixture() -> Iterator[Lane]:
    """A daemon for one test, with short times for heartbeats and for ending processes."""
    with running_lane("--heartbeat=200ms", "--timeout=1s", "--kill_grace=500ms") as lane:
        yield lane


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Ends a test that hangs, with the stacks of all threads."""
    faulthandler.dump_traceback_later(WATCHDOG_SECS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
