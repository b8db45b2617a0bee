"""Runs of the daemon as jobs of Ray: two programs, one on the daemon's machine and one on the job's node.

    python -m tandem.telemetry.ray_job follow RUN_ID DAEMON   submits the job, watches it, ends it after a cancel
    python -m tandem.telemetry.ray_job node RUN_ID            is the job: runs the proxy, which starts the worker

`tandem-daemon proxy` becomes the first one, with the run's lock, in the daemon's data folder (decision 66). It talks to
Ray's job API by HTTP, and to the daemon only at the end. The second one's proxy talks to the daemon: events, heartbeats
and the worker's end. If that one cannot report the end, the first one does.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tandem.telemetry.connection import Connection
from tandem.telemetry.wire import load

_SOCKET = "daemon.sock"  # in the current folder
_POLL_SECS = 1.0
# Without a daemon for this long, `follow` ends; the next daemon starts another one.
_ALONE_SECS = 10.0
# From SIGTERM to SIGKILL, when Ray ends the job: the proxy gives the worker 5 s, and then reports the end.
_STOP_SECS = 25
_FAILED_STARTS = 5  # of the proxy, in a row
_MOST_MESSAGE = 2000  # characters of Ray's text
_NODE = 'exec "${TANDEM_RAY_PYTHON:-python3}" -m tandem.telemetry.ray_job node '

_DAEMON = Path("slow_lane", "daemon", "tandem-daemon")
_PACKAGE = Path(__file__).parent.parent
_PROGRAMS = [_PACKAGE / "_programs" / _DAEMON.name, *(root / _DAEMON for root in _PACKAGE.parents[1:3])]


class _Job:
    """The job of a run, which has the run's token. Its name in Ray is the run's: Ray refuses a second one."""

    def __init__(self, run_id: str, daemon: str) -> None:
        """Reads the run's folder; the current folder is the daemon's data folder."""
        self._run_id, self._daemon = run_id, daemon
        self._folder = Path("runs", run_id)
        config = json.loads((self._folder / "config.json").read_text("utf-8"))
        self._wanted: dict[str, float] = dict(config["metadata"]["tandem"]["ray"].get("resources", {}))
        self._wanted.setdefault("CPU", config["resources"]["cpus"])
        self._address: str = config["metadata"]["tandem"]["ray"]["address"]
        self.token: str = json.loads((self._folder / "launch.json").read_text("utf-8"))["token"]
        self._client: Any = None
        self._stopped = False
        # Ray's own memory may be lost with its head: this file prevents that the run starts twice.
        self._record = self._folder / "ray_job"

    @property
    def cancelled(self) -> bool:
        """Whether the daemon has prevented that a worker starts; for a run on Ray this means a cancel."""
        return (self._folder / "worker").exists()

    def await_end(self) -> dict[str, str]:
        """Submits the job if it was not, waits for its end, and returns it, as fields of WorkerEnded.

        SystemExit: there is no daemon any more.
        """
        problem = ""
        alone = _Alone()
        while True:
            alone.check(_has_daemon())
            try:
                if (ended := self._look()) is not None:
                    return ended
                problem = ""
            except (OSError, RuntimeError) as error:  # among them requests' errors
                self._client = None
                if (text := f"Ray at {self._address}: {error}") != problem:
                    problem = text
                    _say(text)
            time.sleep(_POLL_SECS)

    def _look(self) -> dict[str, str] | None:
        """Makes the next step; returns the end, or None."""
        if self.cancelled and not self._record.exists():
            return {"not_started": "cancelled before it was started"}
        if self._client is None:
            from ray.job_submission import JobSubmissionClient

            try:
                self._client = JobSubmissionClient(self._address)
            except RuntimeError as error:  # such as an installation without ray[default]
                if self._record.exists():
                    raise
                return {"not_started": f"Ray at {self._address}: {error}"}
        info = self._info()
        if info is None:
            if self._record.exists():
                return {"unknown": f"Ray at {self._address} has no such job, or none any more"}
            return self._submit()
        if info.status.is_terminal():
            message = (info.message or "no message")[-_MOST_MESSAGE:]
            return {"unknown": f"its job of Ray ended as {info.status.value}: {message}"}
        if self.cancelled and not self._stopped:
            self._client.stop_job(self._run_id)
            self._stopped = True
            if info.status.value == "PENDING":  # Ray stops it once it gets its resources, and its proxy finds the end
                return {"not_started": "cancelled before Ray started its job"}
        return None

    def _info(self) -> Any:
        try:
            return self._client.get_job_info(self._run_id)
        except RuntimeError:  # also of a job that Ray does not know: the error has no field that says so
            if any(job.submission_id == self._run_id for job in self._client.list_jobs()):
                raise
            return None

    def _submit(self) -> dict[str, str] | None:
        self._record.touch(exist_ok=False)
        others = {name: value for name, value in self._wanted.items() if name not in ("CPU", "GPU", "memory")}
        try:
            self._client.submit_job(
                submission_id=self._run_id,
                entrypoint=_NODE + shlex.quote(self._run_id),
                runtime_env={
                    "env_vars": {
                        "TANDEM_DAEMON": self._daemon,
                        "TANDEM_REMOTE_TOKEN": self.token,
                        "RAY_JOB_STOP_WAIT_TIME_S": str(_STOP_SECS),
                    }
                },
                entrypoint_num_cpus=self._wanted["CPU"],
                entrypoint_num_gpus=self._wanted.get("GPU"),
                entrypoint_memory=int(self._wanted["memory"]) if "memory" in self._wanted else None,
                entrypoint_resources=others or None,
            )
        except RuntimeError as error:
            return {"not_started": f"Ray at {self._address} refused its job: {error}"}
        _say(f"submitted to Ray at {self._address}")
        return None


class _Alone:
    """Measures the time without a daemon."""

    def __init__(self) -> None:
        """Begins now."""
        self._end = time.monotonic() + _ALONE_SECS

    def check(self, has_daemon: bool) -> None:
        """SystemExit: there was no daemon for _ALONE_SECS."""
        if has_daemon:
            self._end = time.monotonic() + _ALONE_SECS
        elif time.monotonic() > self._end:
            raise SystemExit("no daemon: the next one of this folder goes on")


def _has_daemon() -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(_SOCKET)
        except OSError:
            return False
        return True


def follow(run_id: str, daemon: str) -> None:
    """Submits a run as a job of Ray, and returns when its end is recorded; SystemExit: there is no daemon any more.

    `daemon` is the daemon's address for other machines.
    """
    for name in ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):  # Ray would prefer them to the run's address
        os.environ.pop(name, None)
    job = _Job(run_id, daemon)
    ended = job.await_end()
    _say(f"ended: {ended}")
    alone = _Alone()
    while not _report(run_id, job.token, ended):
        alone.check(has_daemon=False)
        time.sleep(_POLL_SECS)


def _report(run_id: str, token: str, ended: dict[str, str]) -> bool:
    """Tells the daemon how the run ended, unless the proxy has; returns whether the end is recorded."""
    with contextlib.closing(Connection(f"unix:{_SOCKET}")) as connection:
        method = connection.method("Link")
        requests: SimpleQueue[Any] = SimpleQueue()
        requests.put(method.request(hello={"run_id": run_id, "token": token}))
        recorded = False
        try:
            for answer in connection.start("Link", iter(requests.get, None)):
                kind = answer.WhichOneof("message")
                if kind == "welcome":
                    requests.put(method.request(worker_ended=ended))
                elif kind == "recorded":
                    recorded = True
                    break
                elif kind == "refused":
                    _say(f"the daemon: {answer.refused}")
                    break
        except load().grpc.RpcError as error:
            _say(f"the daemon: {error.details()}")
        finally:
            requests.put(None)
        return recorded


def node(run_id: str) -> int:
    """Runs the proxy of a run, and starts it again if it dies; returns the exit code.

    The proxy has a session of its own: it outlives this process, ends the worker, and reports that.
    """
    program = next((str(path) for path in _programs() if path.is_file()), None)
    if program is None:
        raise SystemExit(f"expected the program tandem-daemon, found none at {', '.join(map(str, _programs()))}")
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state", "tandem")
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [program, "proxy", f"--run_id={run_id}", "--remote", f"--parent={os.getpid()}"]
    stopping = False
    proxy: subprocess.Popen[bytes] | None = None

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        if proxy is not None:
            proxy.terminate()

    signal.signal(signal.SIGTERM, stop)
    code = failed = 0
    while not stopping and failed < _FAILED_STARTS:
        with _blocked(signal.SIGTERM):
            proxy = subprocess.Popen(command, cwd=state, start_new_session=True)
        code = proxy.wait()
        if code == 0:
            return 0
        failed = failed + 1 if code > 0 else 0  # killed: the worker goes on, and the next proxy finds it
        time.sleep(_POLL_SECS)
    return abs(code)


def _programs() -> Iterator[Path]:
    if given := os.environ.get("TANDEM_DAEMON_PROGRAM"):
        yield Path(given)
    yield from _PROGRAMS


@contextlib.contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    """Delays a signal; a program started meanwhile has it blocked, and `tandem-daemon proxy` reads it from a file."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


def _say(text: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Runs the program that the command line names."""
    match sys.argv[1:]:
        case ["follow", run_id, daemon]:
            follow(run_id, daemon)
        case ["node", run_id]:
            sys.exit(node(run_id))
        case other:
            raise SystemExit(f"expected follow RUN_ID DAEMON, or node RUN_ID, found {other}")


if __name__ == "__main__":
    main()
