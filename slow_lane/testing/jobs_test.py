"""Jobs with a real daemon: scalars, the queue, attempts, and what DescribeRuns says of them."""

import math
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from slow_lane.testing.daemon_fixture import (  # noqa: F401, some are fixtures
    EXEC,
    FAULT,
    INIT,
    TERM,
    Lane,
    lane_fixture,
    running_lane,
    watchdog,
)
from slow_lane.testing.printed_lines import check_table
from tandem.telemetry import TrainerClient
from tandem.testing.daemons import wait_until

_SCALARS = """
def scalars(step, **values):
    put((json.dumps({"event_type": "scalars", "step": step, "scalars": values}) + "\\n").encode())
def attempt():
    return int(os.environ["TANDEM_ATTEMPT"])
"""


@pytest.fixture(name="queue")
def queue_fixture() -> Iterator[Lane]:
    """A daemon with two cores for runs."""
    with running_lane("--no_queue=false", "--cpus=2", "--kill_grace=500ms", "--heartbeat=200ms") as queue:
        yield queue


def _job(lane: Lane, source: str, *, cpus: int = 1, memory_mb: int = 256, **tandem: Any) -> str:
    config = lane.program(_SCALARS + source)
    config["resources"] |= {"cpus": cpus, "memory_mb": memory_mb}
    config["metadata"] = {"tandem": tandem}
    return lane.submit(config)


def _until_gate(lane: Lane, gate: str, **options: Any) -> str:
    return _job(lane, f"steps(1, 1); wait_for({gate!r})", **options)


def test_scalars_come_back_as_printed(lane: Lane) -> None:
    """NaN, infinities and odd names included; both the client and the view for SQL have them."""
    odd = "<b>a/b.c\x1b[1m'\u00fc"
    values = {"train/loss": 0.1, odd: "NaN", "high": "Infinity", "low": "-Infinity"}
    run_id = _job(lane, f"scalars(2**64 - 1, **{values!r}); scalars(0, high=2); steps(1, 3)")
    lane.wait_for(run_id, TERM)
    with TrainerClient(lane.address) as client:
        first, second = client.scalars(run_id, follow=False)
    assert (first.seq_id, first.step, second.seq_id, second.step) == (1, 2**64 - 1, 2, 0)
    assert first.names == ("train/loss", odd, "high", "low") and second.names == ("high",)
    assert first.values[0] == 0.1 and math.isnan(first.values[1]) and first.values[2:] == (math.inf, -math.inf)
    rows = lane.table("SELECT seq_id, name, value FROM scalars WHERE run_id = ? ORDER BY seq_id", run_id)
    assert rows[1] == (1, odd, None) and rows[-1] == (2, "high", 2.0)
    assert lane.describe(run_id).scalars == 2


def test_numbers_of_names_after_the_first_thousand_are_dropped_and_counted(lane: Lane) -> None:
    """Also after a restart of the daemon in between; the known names go on."""
    run_id = _job(
        lane,
        """
for name in range(600): scalars(name, **{f"n{name}": 1})
wait_for("restarted")
for name in range(600, 1010): scalars(name, **{f"n{name}": 1})
scalars(9, n0=5, other=6)
""",
    )
    wait_until(lambda: lane.describe(run_id).scalars == 600, "600 scalars")
    lane.restart()
    lane.open("restarted")
    lane.wait_for(run_id, TERM)
    run = lane.describe(run_id)
    assert run.scalars == 1001 and run.remark == "11 scalars dropped, of names after the first 1000"
    assert lane.table("SELECT name, value FROM scalars WHERE seq_id = 1001") == [("n0", 5.0)]


def test_description_has_what_comparisons_need(lane: Lane) -> None:
    """The mean is of the last hundred episodes; the failure's line is the exception's, not its notes'."""
    run_id = _job(
        lane,
        """
for i in range(150): episode(i, total_reward=i)
sys.stdout.flush()
wait_for("described")
error = RuntimeError("simulator: solver diverged")
error.add_note("in environment 2, courier.Courier")
raise error
""",
        parameters={"lr": 1e-3, "algo": "ppo", "seed": 5, "deep": True},
        sweep="s1",
        priority=-3,
    )
    wait_until(lambda: lane.describe(run_id).episodes == 150, "all episodes")
    run = lane.describe(run_id)
    assert (run.mean_return, run.mean_of) == (sum(range(50, 150)) / 100, 100)
    assert run.return_deviation == pytest.approx(math.sqrt(sum((i - 99.5) ** 2 for i in range(50, 150)) / 99))
    assert dict(run.parameters) == {"lr": "0.001", "algo": "ppo", "seed": "5", "deep": "true"}
    assert (run.sweep, run.priority, run.failure_line) == ("s1", -3, "")
    assert [attempt.number for attempt in run.attempts] == [1]
    lane.open("described")
    lane.wait_for(run_id, FAULT)
    run = lane.describe(run_id)
    assert run.failure_line == "RuntimeError: simulator: solver diverged"
    assert run.attempts[0].reason == "the worker exited with code 1: RuntimeError: simulator: solver diverged"


def test_runs_wait_for_cores_by_priority_and_age_also_after_a_kill(queue: Lane) -> None:
    """A run that fits does not pass the one before it; the next daemon keeps the order."""
    first = _until_gate(queue, "first")
    queue.wait_for(first, EXEC)
    wide = _until_gate(queue, "wide", cpus=2)
    small = _until_gate(queue, "small")
    urgent = _until_gate(queue, "urgent", cpus=2, priority=1)
    texts = ["2 of 2 cores; 1 run before it", "1 of 2 cores; 2 runs before it", "2 of 2 cores"]

    def waiting() -> list[str]:
        return [queue.describe(run_id).waiting_for for run_id in (wide, small, urgent)]

    wait_until(lambda: waiting() == texts, "the texts of the queue")
    queue.restart()
    wait_until(lambda: waiting() == texts, "the texts of the next daemon")
    for gate, run_id, others in (("first", urgent, (wide, small)), ("urgent", wide, (small,)), ("wide", small, ())):
        queue.open(gate)
        queue.wait_for(run_id, EXEC)
        assert [queue.record(other).status for other in others] == [INIT] * len(others)
    queue.open("small")
    queue.wait_for(small, TERM)


def test_a_run_that_asks_for_more_than_the_machine_has_runs_alone(queue: Lane) -> None:
    """It says so; the next run waits for its end. With --strict_resources it is refused."""
    large = _until_gate(queue, "large", cpus=64)
    queue.wait_for(large, EXEC)
    assert queue.describe(large).remark == "asks for 64 of 2 cores: it runs alone"
    later = _until_gate(queue, "later")
    wait_until(lambda: queue.describe(later).waiting_for == "1 of 2 cores", "the text of the queue")
    queue.cancel(large)
    queue.wait_for(later, EXEC)
    queue.open("later")
    queue.wait_for(later, TERM)
    queue.stop()
    queue.daemon.flags = (*queue.daemon.flags, "--strict_resources")
    queue.start()
    with pytest.raises(grpc.RpcError, match="64 of 2 cores"):
        _until_gate(queue, "large", cpus=64)


def test_memory_counts_only_if_the_run_says_so(queue: Lane) -> None:
    """Every configuration has memory_mb, and most do not mean it."""
    machine_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    first = _until_gate(queue, "end", memory_mb=machine_mb, reserve_memory=True)
    second = _until_gate(queue, "end", memory_mb=machine_mb)
    for run_id in (first, second):
        queue.wait_for(run_id, EXEC)
    third = _until_gate(queue, "end", memory_mb=300, reserve_memory=True)
    text = f"1 of 2 cores, 300 of {machine_mb} MiB"
    wait_until(lambda: queue.describe(third).waiting_for == text, "the text of the queue")
    queue.open("end")
    queue.wait_for(third, TERM)


# Prints one step of its attempt, then waits; TANDEM_CHECKPOINT_DIR has the attempts before.
_ATTEMPTS = """
checkpoints = os.environ["TANDEM_CHECKPOINT_DIR"]
before = sorted(os.listdir(checkpoints))
assert before == [str(number) for number in range(1, attempt())], before
assert os.environ.get("TANDEM_RESUME") == (None if attempt() == 1 else "1")
open(os.path.join(checkpoints, str(attempt())), "w").close()
scalars(10 * attempt(), loss=attempt())
steps(attempt(), attempt())
"""


def _worker(lane: Lane, run_id: str) -> int:
    return int((lane.data_dir / "runs" / run_id / "worker").read_text("ascii").split()[0])


def test_a_run_killed_three_times_beside_a_daemon_killed_twice_is_one_run(lane: Lane) -> None:
    """Each attempt is started once, with the checkpoints of all before it; no row is lost or twice."""
    run_id = _job(lane, _ATTEMPTS + "wait_for(f'end{attempt()}')", restart={"max": 3, "on": ["killed"]})
    for attempt in (1, 2, 3):
        lane.wait_for_steps(run_id, attempt)
        worker = _worker(lane, run_id)
        if attempt == 1:  # the next daemon finds the end
            lane.kill()
            os.kill(worker, signal.SIGKILL)
            lane.start()
        elif attempt == 2:  # at about the time of the restart
            os.kill(worker, signal.SIGKILL)
            time.sleep(0.05)
            lane.restart()
        else:
            os.kill(worker, signal.SIGKILL)
    lane.wait_for_steps(run_id, 4)
    lane.open("end4")
    lane.wait_for(run_id, TERM)
    run = lane.describe(run_id)
    assert [(each.number, each.steps, each.scalars) for each in run.attempts] == [(n + 1, n, n) for n in range(4)]
    assert [each.reason for each in run.attempts] == ["the worker ended by signal 9 (Killed)"] * 3 + [""]
    assert all(each.started.seconds <= each.ended.seconds for each in run.attempts)
    check_table(lane.data_dir, run_id)
    last = (
        "SELECT step_index FROM steps JOIN attempts AS a USING (run_id) WHERE run_id = ? AND seq_id > a.steps AND "
        "number = (SELECT max(number) FROM attempts WHERE run_id = a.run_id)"
    )
    assert lane.table(last, run_id) == [(4,)]


def test_a_reason_has_the_errors_of_its_attempt_alone(lane: Lane) -> None:
    """The second attempt ends without a word; nor does what the first one printed decide how it ended."""
    source = """
put(b'{"event": "run_completed"}\\n')
if attempt() == 1: raise ValueError('only at first')
wait_for('end')
"""
    run_id = _job(lane, source, restart={"max": 1})
    wait_until(lambda: len(lane.describe(run_id).attempts) == 2, "the second attempt")
    wait_until(lambda: (lane.data_dir / "runs" / run_id / "worker").exists(), "its worker")
    os.kill(_worker(lane, run_id), signal.SIGKILL)
    assert lane.wait_for(run_id, FAULT).failure_reason == "the worker ended by signal 9 (Killed)"
    assert "ValueError: only at first" in lane.describe(run_id).attempts[0].reason


def test_an_attempt_counts_its_own_steps_and_returns(queue: Lane) -> None:
    """Also with daemons that are killed during an attempt and between two: max_steps and means are the last one's."""
    source = """
steps(5 * attempt() - 4, 5 * attempt())
if attempt() == 1: episode(1, total_reward=100)
sys.stdout.flush()
wait_for(f"go{attempt()}")
steps(11, 12)
time.sleep(600)
"""
    config = queue.program(_SCALARS + source)
    config["resources"]["cpus"] = 2
    config["metadata"] = {"tandem": {"restart": {"max": 1}}}
    config["schedule"] = {"max_steps": 7}
    run_id = queue.submit(config)
    wait_until(lambda: queue.describe(run_id).mean_of == 1, "the episode")
    urgent = _until_gate(queue, "urgent", priority=1)
    queue.restart()
    os.kill(_worker(queue, run_id), signal.SIGKILL)
    queue.wait_for(urgent, EXEC)
    wait_until(lambda: queue.record(run_id).status == INIT, "the second attempt to wait")
    queue.restart()
    queue.open("urgent")
    queue.wait_for_steps(run_id, 10)
    run = queue.describe(run_id)
    assert [each.steps_printed for each in run.attempts] == [0, 5]
    assert (run.mean_of, run.HasField("mean_return"), run.HasField("last_return")) == (0, False, False)
    queue.open("go2")
    assert queue.wait_for(run_id, TERM).failure_reason == "schedule.max_steps = 7 reached"
    assert queue.describe(run_id).steps == 12


def test_a_run_ends_after_its_last_attempt(lane: Lane) -> None:
    """A fault each time; the reason is that of the last one."""
    run_id = _job(lane, _ATTEMPTS + "sys.exit(attempt())", restart={"max": 1})
    assert "code 2" in lane.wait_for(run_id, FAULT).failure_reason
    assert len(lane.describe(run_id).attempts) == 2


def test_a_silent_worker_is_started_again() -> None:
    """Its silence is a fault, also when the daemon has to kill it."""
    with running_lane("--heartbeat=200ms", "--kill_grace=200ms") as lane:
        hang = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        run_id = _job(lane, _ATTEMPTS + hang, fault_after=1, restart={"max": 1, "on": ["fault"]})
        assert "neither for 1s" in lane.wait_for(run_id, FAULT).failure_reason
        assert ["neither for 1s" in each.reason for each in lane.describe(run_id).attempts] == [True, True]


@pytest.mark.parametrize(
    ("source", "restart"),
    [("", {"max": 3}), ("sys.exit(1)", {"max": 3, "on": ["killed", "machine"]}), ("sys.exit(1)", None)],
)
def test_other_ends_are_final(lane: Lane, source: str, restart: dict[str, Any] | None) -> None:
    """Success, an end that the configuration does not name, and a configuration without restarts."""
    options: dict[str, Any] = {"restart": restart} if restart else {}
    run_id = _job(lane, _ATTEMPTS + source, **options)
    lane.wait_for(run_id, FAULT if source else TERM)
    assert len(lane.describe(run_id).attempts) == 1


def test_cancel_is_final_also_between_attempts(queue: Lane) -> None:
    """A run whose next attempt waits in the queue is cancelled there."""
    run_id = _job(queue, _ATTEMPTS + "wait_for('end')", cpus=2, restart={"max": 3})
    queue.wait_for_steps(run_id, 1)
    urgent = _until_gate(queue, "urgent", priority=5)
    os.kill(_worker(queue, run_id), signal.SIGKILL)
    queue.wait_for(urgent, EXEC)
    wait_until(lambda: queue.describe(run_id).waiting_for == "2 of 2 cores", "the attempt to wait")
    assert queue.record(run_id).status == INIT
    queue.cancel(run_id)
    assert queue.record(run_id).status == TERM
    again = _job(queue, _ATTEMPTS + "wait_for('end')", restart={"max": 3})
    queue.wait_for_steps(again, 1)
    queue.cancel(again)
    assert queue.record(again).status == TERM and len(queue.describe(again).attempts) == 1


def test_checkpoints_go_with_the_run_if_its_configuration_says_so(lane: Lane) -> None:
    """keep_checkpoints false: they are removed at the run's end, not between attempts."""
    config = lane.program(_SCALARS + _ATTEMPTS + "sys.exit(2 - attempt())")
    config["metadata"] = {"tandem": {"restart": {"max": 1}}}
    config["artifacts"] = {"keep_checkpoints": False}
    run_id = lane.submit(config)
    lane.wait_for(run_id, TERM)
    folder = lane.data_dir / "runs" / run_id / "checkpoints"
    wait_until(lambda: not folder.exists(), "the checkpoints to be removed")
