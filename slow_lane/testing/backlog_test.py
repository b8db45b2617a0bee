"""A worker prints 1 GiB while no daemon runs; the next daemon stores all of it with bounded memory."""

import os
import signal
import time

import pytest

from slow_lane.testing.daemon_fixture import EXEC, TERM, Lane, lane_fixture  # noqa: F401, a fixture
from tandem.testing.daemons import wait_until

_SECS = 600


@pytest.mark.parametrize("observation_bytes", [100, 100_000])
def test_backlog_of_a_gibibyte(lane: Lane, observation_bytes: int) -> None:
    """Holds for lines of about 200 bytes and of about 100 kB."""
    line_bytes = 100 + observation_bytes
    count = (1 << 30) // line_bytes // 1000 * 1000
    run_id = lane.run(
        "count, size = map(int, sys.argv[2:4]); steps(0, 0); wait_for('go')\n"
        "for n in range(1, count + 1, 1000): steps(n, n + 999, observation='x' * size)\n"
        "open(sys.argv[4], 'w').close(); wait_for('end')",
        str(count),
        str(observation_bytes),
        str(lane.scratch / "printed"),
    )
    lane.wait_for(run_id, EXEC)
    output = lane.data_dir / "runs" / run_id / "stdout.jsonl"
    proxy = lane.wait_for_proxy(run_id)
    lane.kill()
    os.kill(proxy, signal.SIGKILL)
    lane.open("go")
    wait_until((lane.scratch / "printed").exists, "the backlog", _SECS)
    lane.start()
    begin = time.monotonic()
    wait_until(lambda: lane.describe(run_id).steps == count + 1, "all of it in the table", _SECS)
    seconds = time.monotonic() - begin
    daemon, proxy_peak = lane.peak_rss_bytes(), lane.peak_rss_bytes(lane.wait_for_proxy(run_id))
    print(
        f"{output.stat().st_size >> 20} MiB, {count} lines in {seconds:.1f} s; "
        f"daemon {daemon >> 20} MiB, proxy {proxy_peak >> 20} MiB at most"
    )
    assert daemon < 512 << 20 and proxy_peak < 128 << 20
    lane.open("end")
    lane.wait_for(run_id, TERM)
    ((rows, last, first),) = lane.table(
        "SELECT count(*), max(step_index), min(step_index) FROM steps WHERE run_id = ?", run_id
    )
    assert (rows, first, last) == (count + 1, 0, count)
