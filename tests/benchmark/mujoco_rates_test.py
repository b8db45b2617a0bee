"""MuJoCo steps are counted by every row that needs nothing of the peers. No time is judged."""

import contextlib
import dataclasses
import glob
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

import tandem
from tests.benchmark import make_vec_rates, mujoco_rates
from tests.benchmark.json_program import talking_to
from tests.benchmark.mujoco_rows import LOOP, TASKS, Cell, Rows, Task, Turn
from tests.benchmark.suite import Plan
from tools.testing import pytest_main

OURS = frozenset({"loop", "tandem", "tandem_make_vec", "tandem_spin", "tandem_halves"})


def plan_of(seconds: float) -> Plan:
    """Makes the smallest plan that has a median."""
    return Plan(OURS, rounds=2, seconds=seconds, quick=True, prefix=f"tandem-benchmark-{uuid.uuid4().hex}")


def test_every_row_steps_whole_batches(tmp_path: Path) -> None:
    """Each row of each cell has a turn in each round; tables and picture are made, and nothing is left."""
    plan = plan_of(0.01)
    found = mujoco_rates.SUITE.measure(plan)
    cells = json.loads(json.dumps(found.figures))["cells"]
    assert [(cell["task"], cell["envs"], cell["threads"]) for cell in cells] == [
        (task.name, 64, threads) for task in TASKS for threads in (1, 2)
    ]
    for cell in cells:
        assert set(cell["rows"]) == OURS - ({"tandem_halves"} if cell["threads"] == 1 else set())
        assert all(len(turns) == 2 for turns in cell["rows"].values())
        for row, turns in cell["rows"].items():
            for turn in turns:
                assert turn["steps"] % 64 == 0 and turn["steps"] > 0
                assert turn["secs"] > 0
                assert (turn["transport"] is not None) == (row in ("tandem", "tandem_make_vec", "tandem_spin"))
                assert 0 <= (turn["transport"] or 0) <= 1
    text = "\n".join(found.tables)
    assert all(f"| {mujoco_rates.ROWS[row]} " in text for row in OURS)
    assert found.draw is not None
    found.draw(str(tmp_path / "mujoco.png"))
    assert (tmp_path / "mujoco.png").read_bytes().startswith(b"\x89PNG")
    assert not glob.glob(f"/dev/shm/*{plan.prefix}*")


def test_make_vec_is_measured_beside_its_client() -> None:
    """On every cell, CartPole's discrete actions included."""
    rows = frozenset({"tandem", "tandem_make_vec"})
    found = make_vec_rates.SUITE.measure(dataclasses.replace(plan_of(0.01), rows=rows))
    cells = found.figures["cells"]
    assert [(cell["task"], cell["envs"]) for cell in cells] == [
        (cell.task.name, cell.envs) for cell in make_vec_rates.CELLS
    ]
    assert all(turn["steps"] > 0 for cell in cells for turns in cell["rows"].values() for turn in turns)
    assert "| make_vec / Tandem, SharedMemoryClient " in found.tables[1]


def test_the_loop_alone_has_no_empty_tables() -> None:
    """Only those of its rates."""
    plan = dataclasses.replace(plan_of(0.01), rows=frozenset({"loop"}))
    tables = mujoco_rates.SUITE.measure(plan).tables
    assert len(tables) == len(TASKS) * 2
    assert all(table.count("\n| ") == 2 for table in tables)  # the head and a row


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_loop_goes_on_where_it_was(task: Task, threads: int, tmp_path: Path) -> None:
    """Turn after turn, with any number of threads, also one that does not divide the environments."""
    with Rows("unused", tmp_path) as rows, rows.opened("loop", Cell(task, 4, threads)) as run:
        for _ in range(3):
            turn = run(0.01)
            assert turn.steps % 4 == 0 and turn.steps > 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_loop_does_what_tandem_does(task: Task, threads: int, tmp_path: Path) -> None:
    """The same actions from the same states end as many episodes, and in the same observations."""
    cell = Cell(task, 4, threads)
    cell.actions().tofile(tmp_path / "actions")
    command = [*LOOP, f"--task={task.name}", "--envs=4", f"--threads={threads}", "--noreset_noise"]
    batches = 0
    with talking_to([*command, f"--actions={tmp_path / 'actions'}"]) as loop:
        while batches < 1010:  # past the time limit of 1000 steps, and the reset after it
            found = loop.ask("0.02")
            batches += found["steps"] // 4
    with (
        tandem.launch_engine(
            task.name,
            num_envs=4,
            threads=2,
            name=f"tandem-benchmark-{uuid.uuid4().hex}",
            task_options={"reset_noise_scale": 0},
        ) as engine,
        tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP) as client,
    ):
        client.reset(seed=0)
        episodes = 0
        for actions in itertools.islice(itertools.cycle(cell.actions()), batches):
            obs, _, dones = client.step(actions)
            episodes += int(np.count_nonzero(dones))
        assert found["obs_size"] == client.obs_size
        assert found["episodes"] == episodes > 0
        assert found["obs_sum"] == pytest.approx(float(obs.sum(dtype=np.float64)), rel=1e-9)


def test_ratios_are_taken_within_a_round() -> None:
    """A round in which everything took twice as long changes no ratio."""
    turns = {"loop": [Turn(100, 1.0), Turn(100, 2.0)], "tandem": [Turn(80, 1.0), Turn(80, 2.0)]}
    rates = mujoco_rates.Rates(Cell(TASKS[0], 1, 1), turns)
    ratio = rates.ratio("tandem", "loop")
    assert (ratio.min, ratio.median, ratio.max) == pytest.approx((0.8, 0.8, 0.8))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupt_leaves_no_process_and_no_region(number: signal.Signals, tmp_path: Path) -> None:
    """Nor does a run that is killed: engines and the loop notice that it is gone."""
    prefix = f"tandem-benchmark-{uuid.uuid4().hex}"
    program = (
        "import dataclasses\n"
        "from tests.benchmark import mujoco_rates, mujoco_rates_test as test\n"
        f"plan = dataclasses.replace(test.plan_of(0.05), rounds=10**6, prefix={prefix!r})\n"
        "mujoco_rates.SUITE.measure(plan)\n"
    )
    # The loop is known by its file of actions, which lies in the temporary folder.
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    run = subprocess.Popen([sys.executable, "-c", program], env=variables, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not glob.glob(f"/dev/shm/{prefix}-tandem_spin") and run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert left_of(prefix, str(tmp_path))
    run.send_signal(number)
    _, errors = run.communicate(timeout=60)
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    until = time.monotonic() + (30 if number == signal.SIGKILL else 0)
    while left_of(prefix, str(tmp_path)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left_of(prefix, str(tmp_path))


def left_of(*marks: str) -> list[str]:
    """Lists regions that have the first mark, and command lines of processes that have any."""
    found = glob.glob(f"/dev/shm/*{marks[0]}*")
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = Path(path).read_text(encoding="utf-8", errors="replace")
            if any(mark in command for mark in marks):
                found.append(command)
    return found


if __name__ == "__main__":
    pytest_main.run(__file__)
