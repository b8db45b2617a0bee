"""SIGTERM ends a daemon within 5 seconds, with any backlog; the next daemon stores every event.

`--test_env=BACKLOG_MIB=4096` sets a larger backlog than 512 MiB.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from slow_lane.testing.daemon_fixture import RDY, TERM, Lane, lane_fixture  # noqa: F401, a fixture
from tandem.testing.daemons import wait_until

_STOP_SECS = 5.0  # slow_lane/docs/slow_lane.md promises it
_RUNS = 4
_RECORDER = Path(__file__).with_name("record_steps.py")
_BACKLOG_BYTES = int(os.environ.get("BACKLOG_MIB", "512")) << 20
_SECS = 200  # the limit of each wait for the backlog


def _printed(lane: Lane, run_id: str) -> tuple[int, str]:
    """Returns the number of a worker's printed steps, and a digest of them in order."""
    digest, count = hashlib.sha256(), 0
    with (lane.data_dir / "runs" / run_id / "stdout.jsonl").open("rb") as lines:
        for line in lines:
            event = json.loads(line)
            digest.update(f"{event['step_index']} {event['observation']}\n".encode())
            count += 1
    return count, digest.hexdigest()


def _kept(lane: Lane, run_id: str) -> tuple[int, str]:
    """Returns the same for the steps in the table."""
    digest, count = hashlib.sha256(), 0
    rows = lane.table("SELECT seq_id, step_index, observation_json FROM steps WHERE run_id = ? ORDER BY seq_id", run_id)
    for seq_id, step_index, observation in rows:
        assert seq_id == count + 1
        digest.update(f"{step_index} {json.loads(observation)}\n".encode())
        count += 1
    return count, digest.hexdigest()


def test_a_daemon_with_a_backlog_ends_within_five_seconds_and_loses_nothing(lane: Lane) -> None:
    """Four workers print while no daemon runs; three daemons are stopped during the backlog; a fourth stores the rest.

    Each portion of a worker is one event of 6 MB and 10,000 events of 200 bytes.
    """
    portions = max(1, _BACKLOG_BYTES // _RUNS // 8_000_000)
    source = (
        "portions = int(sys.argv[2]); wait_for('go')\n"
        "for n in range(0, 10_001 * portions, 10_001):\n"
        "    steps(n, n, observation='x' * 6_000_000)\n"
        "    steps(n + 1, n + 10_000, observation='x' * 120)\n"
        "open(sys.argv[3], 'w').close(); wait_for('end')"
    )
    done = [lane.scratch / f"printed{number}" for number in range(_RUNS)]
    runs = [lane.run(source, str(portions), str(path)) for path in done]
    for run_id in runs:
        lane.wait_for(run_id, RDY)
    lane.stop()
    lane.open("go")
    wait_until(lambda: all(path.exists() for path in done), "the backlog", _SECS)

    stops = []
    for kept in range(3):
        lane.start()
        steps = sum(lane.describe(run_id).steps for run_id in runs)
        wait_until(lambda: sum(lane.describe(run_id).steps for run_id in runs) > steps, "a part of the backlog")  # noqa: B023
        queued = lane.daemon_state().queued_bytes
        begin = time.monotonic()
        assert lane.stop() == 0
        stops.append(time.monotonic() - begin)
        print(f"stop {kept + 1}: {queued >> 20} MiB queued in the daemon, ended after {stops[-1]:.2f} s")
    lane.start()
    lane.open("end")
    for run_id in runs:
        lane.wait_for(run_id, TERM, secs=_SECS)
        printed = _printed(lane, run_id)
        assert _kept(lane, run_id) == printed
        assert printed[0] == 10_001 * portions
    assert max(stops) < _STOP_SECS


def test_daemon_stops_although_clients_do_not_read(lane: Lane) -> None:
    """SIGSTOP stops the watchers while the daemon has more data for them than their sockets can hold."""
    run_id = lane.run("wait_for('go'); steps(0, 399, observation='x' * 65_536); wait_for('end')")
    lane.wait_for(run_id, RDY)
    watchers = [
        subprocess.Popen([sys.executable, _RECORDER, lane.address, run_id, lane.scratch / f"record{number}"])
        for number in range(4)
    ]
    try:
        wait_until(lambda: lane.daemon_state().watchers == len(watchers), "the watchers")
        for watcher in watchers:
            watcher.send_signal(signal.SIGSTOP)
        lane.open("go")
        lane.wait_for_steps(run_id, 400)
        begin = time.monotonic()
        assert lane.stop() == 0
        seconds = time.monotonic() - begin
    finally:
        for watcher in watchers:
            watcher.kill()
            watcher.wait()
    assert seconds < _STOP_SECS
