"""Daemon, proxy and watcher are killed at random; the table has each event once, and the watcher receives each once.

`--test_env=SEEDS=200 --test_env=STEPS=100000` runs 200 seeds with 100000 steps each; tools/test runs a few.
`--test_env=JOBS=60 --test_env=SECONDS=600 --test_filter=attempt` kills during a sweep of 60 jobs for ten minutes.
"""

import contextlib
import faulthandler
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slow_lane.testing.daemon_fixture import TERM, running_lane
from slow_lane.testing.printed_lines import check_table
from tandem.telemetry import TrainerClient
from tandem.testing.daemons import Daemon, await_worker, is_alive, proxies_of, run_config, wait_until
from tandem.testing.engines import WATCHDOG_SECS, watchdog  # noqa: F401, one is a fixture

_SEEDS = int(os.environ.get("SEEDS", "3"))
_STEPS = int(os.environ.get("STEPS", "30000"))
_JOBS = int(os.environ.get("JOBS", "3"))
_SECONDS = float(os.environ.get("SECONDS", "3"))
_FOLDER = Path(__file__).parent


def _check_watcher(path: Path, steps: int) -> None:
    """Checks that a watcher's recorded blocks are contiguous, from the first step to the last."""
    last = 0
    for line in path.read_text("ascii").splitlines():
        first, index, count = map(int, line.split())
        assert first == last + 1
        assert index == last
        last += count
    assert last == steps


@pytest.mark.parametrize("seed", range(_SEEDS))
def test_each_record_comes_once_despite_kills(seed: int, tmp_path: Path) -> None:
    """SIGKILL is sent at random moments until the worker is done; then all processes end by themselves."""
    chance = random.Random(seed)
    daemon = Daemon(tmp_path / "data", "--kill_grace=1s")
    record = tmp_path / "record"

    def watch(run_id: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, _FOLDER / "record_steps.py", daemon.address, run_id, record])

    config = run_config(sys.executable, str(_FOLDER / "print_steps.py"), str(_STEPS), str(_SECONDS))
    with TrainerClient(daemon.address) as client:
        run_id = client.submit(config).run_id
    watcher = watch(run_id)
    kills = {"daemon": 0, "proxy": 0, "watcher": 0}
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.0, 0.4))
        victim = chance.choice(list(kills))
        if victim == "daemon":
            daemon.kill()
            time.sleep(chance.uniform(0.0, 0.3))
            daemon.start()
        elif victim == "proxy":
            for proxy in proxies_of(daemon.data_dir):
                with contextlib.suppress(ProcessLookupError):  # already exited
                    os.kill(proxy, signal.SIGKILL)
        else:
            watcher.kill()
            watcher.wait()
            watcher = watch(run_id)
        kills[victim] += 1
    print(f"seed {seed}: killed {kills}")
    assert watcher.wait(timeout=120) == 0
    with TrainerClient(daemon.address) as client:
        (run,) = client.runs()
        assert run.status.final, run
        assert not run.failure_reason, run
    daemon.stop()
    # A proxy that had no answer yet when the daemon stopped waits 10 s for the next daemon.
    wait_until(lambda: not proxies_of(daemon.data_dir), "all proxies to end")
    check_table(daemon.data_dir, run_id)
    _check_watcher(record, _STEPS)


@pytest.mark.parametrize("seed", range(_SEEDS))
def test_complete_lines_of_a_killed_worker_are_kept(seed: int, tmp_path: Path) -> None:
    """Only the worker is killed."""
    chance = random.Random(seed)
    daemon = Daemon(tmp_path / "data")
    with TrainerClient(daemon.address) as client:
        config = run_config(sys.executable, str(_FOLDER / "print_steps.py"), "1000000", "100")
        run_id = client.submit(config).run_id
        worker = await_worker(daemon.data_dir / "runs" / run_id)
        time.sleep(chance.uniform(0.0, 1.0))
        os.kill(worker, signal.SIGKILL)
        for run in client.watch():
            if run.run_id == run_id and run.status.final:
                break
        assert "9" in (run.failure_reason or ""), run
    daemon.stop()
    check_table(daemon.data_dir, run_id)


_ATTEMPT = """
put(json.dumps({"event": "attempt", "payload": {"number": int(os.environ["TANDEM_ATTEMPT"])}}).encode() + b"\\n")
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    steps(0, 9)
    time.sleep(0.002)
"""


@pytest.mark.parametrize("seed", range((_SEEDS + 2) // 3))
def test_each_attempt_is_started_once_despite_kills(seed: int) -> None:
    """Of jobs that wait for one core: all end, in their order, and the table has each attempt's events once."""
    faulthandler.dump_traceback_later(WATCHDOG_SECS + _SECONDS, exit=True)
    chance = random.Random(seed)
    with running_lane("--no_queue=false", "--cpus=1", "--kill_grace=500ms") as lane:
        config = lane.program(_ATTEMPT, str(0.5 * _SECONDS / _JOBS))
        config["metadata"] = {"tandem": {"restart": {"max": 1000, "on": ["killed", "machine"]}}}
        jobs = [lane.submit(config) for _ in range(_JOBS)]
        kills = {"daemon": 0, "proxy": 0, "worker": 0}
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.0, 0.4 * _SECONDS / _JOBS))
            victim = chance.choice(["daemon", "proxy", "worker", "worker"])
            if victim == "daemon":
                lane.kill()
                time.sleep(chance.uniform(0.0, 0.3))
                lane.start()
            victims = lane.workers() if victim == "worker" else proxies_of(lane.data_dir) if victim == "proxy" else []
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):  # already exited
                    os.kill(pid, signal.SIGKILL)
            kills[victim] += 1
            assert len(lane.workers()) <= 1
        for run_id in jobs:
            lane.wait_for(run_id, TERM, secs=120)
            attempts = [{"number": attempt.number} for attempt in lane.describe(run_id).attempts]
            # An attempt may have been killed before it printed.
            printed = [payload for _, payload in check_table(lane.data_dir, run_id).payloads]
            assert [attempt for attempt in attempts if attempt in printed] == printed
            assert printed[-1] == attempts[-1]
        ended = [lane.record(run_id).updated_at.ToNanoseconds() for run_id in jobs]
        assert ended == sorted(ended)
        print(f"seed {seed}: killed {kills}, attempts {[len(lane.describe(run_id).attempts) for run_id in jobs]}")


def test_a_daemon_stops_at_once_while_runs_print(tmp_path: Path) -> None:
    """The next daemon has all printed steps."""
    daemon = Daemon(tmp_path / "data")
    config = run_config(sys.executable, str(_FOLDER / "print_steps.py"), "20000", "4")
    with TrainerClient(daemon.address) as client:
        runs = [client.submit(config).run_id for _ in range(4)]
    for stops in range(5):
        with TrainerClient(daemon.address) as client:  # steps come after each start
            next(client.steps(runs[0], since_seq=1000 * stops))
        daemon.stop()
        daemon.start()
    for run_id in runs:
        with TrainerClient(daemon.address) as client:
            for run in client.watch():
                if run.run_id == run_id and run.status.final:
                    break
    daemon.stop()
    for run_id in runs:
        check_table(daemon.data_dir, run_id)


def test_a_proxy_without_daemon_and_folder_ends_with_its_worker(tmp_path: Path) -> None:
    """The daemon, which would tell the proxy to exit, does not exist."""
    daemon = Daemon(tmp_path / "data")
    with TrainerClient(daemon.address) as client:
        run_id = client.submit(run_config(sys.executable, "-c", "import time; time.sleep(1000)")).run_id
    worker = await_worker(daemon.data_dir / "runs" / run_id)
    (proxy,) = proxies_of(daemon.data_dir)
    try:
        daemon.kill()
        shutil.rmtree(daemon.data_dir)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not is_alive(proxy), "the proxy to end")
    finally:
        for pid in (worker, proxy):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
