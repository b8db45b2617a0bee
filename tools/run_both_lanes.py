"""Trains under the daemon against an engine with frames, and shows both: the program of tools/both_lanes."""

import argparse
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tandem import TandemError
from tandem.telemetry import DaemonUnreachable, Run, RunStatus, TrainerClient, UnknownRun

_ROOT = Path(__file__).absolute().parents[1]
_DAEMON = _ROOT / "slow_lane/daemon/tandem-daemon"
_SCRIPT = _ROOT / "client_py/examples/train_with_telemetry.py"
_PYTHONPATH = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
_SOCKET = "daemon.sock"  # in the daemon's folder, which is the working directory: a socket's path must be short
_FRAMES = "320x240"
_REGION_POLL_SECS = 0.05
_CANCELLED = 128 + signal.SIGINT

_RETURNS = """SELECT min(seq_id), max(seq_id), avg(total_reward), max(total_reward), sum(steps)
FROM (SELECT *, ntile(8) OVER (ORDER BY seq_id) AS part FROM episodes WHERE run_id = '{run_id}')
GROUP BY part ORDER BY part"""


@contextlib.contextmanager
def _daemon() -> Iterator[str]:
    """Yields where a daemon of this folder is; ends it afterwards if it was started here."""
    target = f"unix:{_SOCKET}"
    if (pid := _pid_of_daemon(target)) is not None:
        print(f"tandem: using the daemon that is at work in {Path.cwd()}, pid {pid}", flush=True)
        yield target
        return
    command = [str(_DAEMON), "--data_dir=.", "--listen=none"]
    # A session of its own: the terminal's Ctrl-C is for this program, which then cancels the run first.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as daemon:
        try:
            assert daemon.stdout is not None
            if not daemon.stdout.readline():  # it says so once it serves
                sys.exit(1)
            print(f"tandem: started a daemon, pid {daemon.pid}, data in {Path.cwd()}", flush=True)
            yield target
        finally:
            daemon.terminate()
            daemon.wait()


def _pid_of_daemon(target: str) -> int | None:
    """Returns the process of this folder's daemon; None: there is none."""
    if not Path(_SOCKET).exists():
        return None
    with TrainerClient(target, timeout=2) as client:
        try:
            return client.health().pid
        except DaemonUnreachable:
            return None  # one that was killed leaves its socket


def _config(arguments: argparse.Namespace) -> dict[str, object]:
    """Makes what the daemon is asked for: MOSAIC's TrainRunConfig."""
    return {
        "run_name": f"{arguments.task} with frames",
        "entry_point": sys.executable,
        "arguments": [
            str(_SCRIPT),
            f"--task={arguments.task}",
            f"--num_envs={arguments.num_envs}",
            f"--iterations={arguments.iterations}",
            f"--seed={arguments.seed}",
            f"--frames={_FRAMES}",
        ],
        "environment": {"PYTHONPATH": _PYTHONPATH},
        "resources": {"cpus": 2, "memory_mb": 1024, "gpus": {"requested": 0, "mandatory": False}},
        "artifacts": {"output_prefix": "runs", "persist_logs": True, "keep_checkpoints": False},
    }


def _ask(query: str, *values: object) -> list[tuple[object, ...]]:
    """Queries the daemon's file, read-only, while the daemon writes it."""
    with contextlib.closing(sqlite3.connect("file:tandem.db?mode=ro", uri=True)) as table:
        return table.execute(query, values).fetchall()


def _find_run(client: TrainerClient, run_id: str) -> Run:
    return next(run for run in client.runs() if run.run_id == run_id)


def _wait_for_region(client: TrainerClient, run_id: str) -> str | None:
    """Waits until the run has an engine; None: it ended without."""
    query = "SELECT payload_json ->> 'region' FROM lifecycle WHERE run_id = ? AND event = 'engine_started'"
    while True:
        over = _find_run(client, run_id).status.final
        for (region,) in _ask(query, run_id):
            return str(region)
        if over:
            return None
        time.sleep(_REGION_POLL_SECS)


def _follow(client: TrainerClient, run_id: str, num_envs: int) -> None:
    """Prints a line for each `num_envs` episodes that the daemon has kept, until the run has ended."""
    returns: list[float] = []
    began = time.monotonic()
    for episode in client.episodes(run_id):
        returns.append(episode.total_reward)
        if len(returns) % num_envs == 0:
            newest = returns[-num_envs:]
            print(
                f"{time.monotonic() - began:6.1f} s   {len(returns):6d} episodes kept"
                f"   return of the last {num_envs}: mean {sum(newest) / num_envs:8.1f}, best {max(newest):8.1f}",
                flush=True,
            )


def _print_table(run_id: str) -> None:
    query = _RETURNS.format(run_id=run_id)
    rows = _ask(query)
    ((events, episodes),) = _ask(
        "SELECT (SELECT count(*) FROM lifecycle WHERE run_id = ?1), (SELECT count(*) FROM episodes WHERE run_id = ?1)",
        run_id,
    )
    print(f"\nin {Path.cwd()}/tandem.db, run {run_id}: {episodes} episodes, {events} other events\n")
    print("      episodes     mean return   best return        steps")
    for first, last, mean, best, steps in rows:
        print(f"{first:6d} .. {last:5d}   {mean:10.1f}    {best:10.1f}   {steps:10,d}")
    print(f"\nsqlite3 -readonly {Path.cwd()}/tandem.db <<'END'\n{query};\nEND", flush=True)


def _watch(client: TrainerClient, run_id: str, arguments: argparse.Namespace, closing: contextlib.ExitStack) -> None:
    """Says, and with a viewer shows, where the run is to be seen; then follows it to its end."""
    region = _wait_for_region(client, run_id)
    if region is not None and arguments.viewer is None:
        print(f"tandem: see it in another terminal: tools/bazel run //viz:viewer -- --run={region}", flush=True)
    elif region is not None:
        viewer = subprocess.Popen([arguments.viewer, f"--run={region}", "--nodaemon"], start_new_session=True)
        closing.callback(viewer.wait)
        closing.callback(viewer.terminate)
        print(f"tandem: the window shows {region}", flush=True)
    _follow(client, run_id, arguments.num_envs)


def _train(target: str, arguments: argparse.Namespace) -> int:
    """Runs it all, with a daemon that is there; returns the exit code."""
    run_id = f"both-lanes-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
    with TrainerClient(target) as client, contextlib.ExitStack() as closing:
        try:
            client.submit(_config(arguments), run_id=run_id)
            print(f"tandem: submitted run {run_id}", flush=True)
            _watch(client, run_id, arguments, closing)
        except BaseException:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # what is left takes seconds
            print("\ntandem: ending the run ...", flush=True)
            with contextlib.suppress(UnknownRun):
                client.cancel(run_id)
            _print_table(run_id)
            raise
        run = _find_run(client, run_id)
        _print_table(run_id)
    if run.status is RunStatus.TERM and run.failure_reason is None:
        return 0
    print(f"\ntandem: the run has not ended well: {run.failure_reason}", file=sys.stderr)
    return 1


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Starts, submits, watches, ends, and returns the exit code; see tools/both_lanes --help."""
    parser = argparse.ArgumentParser(prog="tools/both_lanes", description=__doc__)
    parser.add_argument("--data_dir", type=Path, default=Path("tandem-data"), help="the daemon's folder")
    parser.add_argument("--task", default="HalfCheetah-v5", help="any MuJoCo task")
    parser.add_argument("--num_envs", type=int, default=64, help="policies tried at a time")
    parser.add_argument("--iterations", type=int, default=15, help="how often to move towards the best")
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the environments")
    parser.add_argument("--viewer", type=Path, help="program that shows the run")
    arguments = parser.parse_args()
    if min(arguments.num_envs, arguments.iterations) < 1 or arguments.seed < 0:
        parser.error("--num_envs, --iterations and --seed: expected positive numbers")
    if arguments.viewer is not None:
        arguments.viewer = arguments.viewer.absolute()
    try:
        arguments.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # as the daemon asks for
        os.chdir(arguments.data_dir)
    except OSError as error:
        parser.error(f"--data_dir: expected a folder, or a place for one, found {arguments.data_dir}: {error.strerror}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with _daemon() as target:
            return _train(target, arguments)
    except KeyboardInterrupt:
        print("tandem: cancelled; nothing of it is running", flush=True)
        return _CANCELLED
    except TandemError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
