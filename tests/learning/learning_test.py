"""The comparison of trainings, with a script that only computes returns: the test does not need torch."""

import signal
from pathlib import Path

import numpy as np
import pytest

from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture
from tests.learning import learning
from tests.learning.report import Comparison, VectorTraining
from tests.learning.trainings import Training
from tools.testing import pytest_main

# Returns rise with seed and step. The file `ahead` has an addition to Tandem's returns; Tandem takes half the time. A
# file `fail` or `hang` names the trainings that fail or hang.
_TRAINER = """
import argparse, json, pathlib, signal, sys
parser = argparse.ArgumentParser()
for flag in ("--task", "--backend", "--vector", "--out"):
    parser.add_argument(flag)
for flag in ("--num_envs", "--steps", "--seed"):
    parser.add_argument(flag, type=int)
parser.add_argument("--float64", action="store_true")
asked = parser.parse_args()
here = pathlib.Path(__file__).parent
name = f"{asked.vector}-{asked.seed}"
with (here / "ran").open("a") as ran:
    ran.write(name + "\\n")
def says(file):
    return (here / file).read_text() if (here / file).exists() else ""
if name in says("fail"):
    sys.exit("the physics exploded")
if name in says("hang"):
    signal.pause()
tandem = asked.vector == "tandem"
wall = 10.0 if tandem else 20.0
ahead = float(says("ahead") or 0) * tandem
episodes = [(at, asked.seed * 100.0 + at + ahead, wall * at / asked.steps) for at in range(1, asked.steps + 1)]
found = {"wall_secs": wall, "env_secs": wall / 2, "finished": True, "episodes": episodes}
pathlib.Path(asked.out).write_text(json.dumps(found))
"""
_ALL = ["tandem-0", "sync-0", "sync-1", "tandem-1", "tandem-2", "sync-2"]


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    """Writes the training script into its own folder."""
    path = tmp_path / "trainer" / "train.py"
    path.parent.mkdir()
    path.write_text(_TRAINER, encoding="utf-8")
    return path


def _ran(trainer: Path) -> list[str]:
    path = trainer.with_name("ran")
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def _run(trainer: Path, *arguments: str) -> int:
    return learning.run(["--steps=100", f"--out={trainer.parents[1] / 'out'}", *arguments], {"script": trainer})


def test_equal_curves_in_less_time_are_accepted(trainer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each training ran once, the vectorisations alternate; table, verdict and image show the results."""
    assert _run(trainer) == 0
    assert _ran(trainer) == _ALL
    out = capsys.readouterr().out
    # The mean of 69 .. 100, and 100 more for each seed.
    assert "| 84.5 | 184.5 | 284.5 | 184.5 | 10.0 (10.0 .. 10.0) |".replace(" ", "") in out.replace(" ", "")
    assert "range 84.5 .. 284.5: yes" in out
    assert "in less wall time: yes; the others took 2.00 (2.00 .. 2.00) times" in out
    assert "digit for digit: 3 of 3" in out
    assert (trainer.parents[1] / "out" / "learning.png").read_bytes().startswith(b"\x89PNG")


def test_mean_outside_the_range_is_refused(trainer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mean above the range is refused as well: it is a different result."""
    trainer.with_name("ahead").write_text("101", encoding="utf-8")
    assert _run(trainer) == 1
    out = capsys.readouterr().out
    assert "Tandem's mean 285.5 within the others' range 84.5 .. 284.5: NO" in out
    assert "digit for digit: 0 of 3" in out


def test_time_is_the_sum_over_all_seeds() -> None:
    """The ratios are computed for each seed."""
    one, two, four = (VectorTraining(secs, ((10, 1.0, secs),), 1.0) for secs in (1.0, 2.0, 4.0))
    comparison = Comparison("script", [0, 1], {"tandem": [one, four], "sync": [two, two]})
    assert comparison.within and not comparison.faster
    assert comparison.ratios == [2.0, 0.5]
    assert Comparison("script", [0, 1], {"tandem": [two, one], "sync": [one, four]}).faster


def test_failed_training_shows_its_last_output_and_is_repeated(
    trainer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier trainings' results are kept."""
    trainer.with_name("fail").write_text("sync-1", encoding="utf-8")
    assert _run(trainer) == 2
    assert "the physics exploded" in capsys.readouterr().err
    trainer.with_name("fail").unlink()
    assert _run(trainer) == 0
    assert _ran(trainer) == [*_ALL[:3], *_ALL[2:]]
    assert "2 of 6 trainings are in" in capsys.readouterr().out


def test_results_are_kept_for_each_setting(trainer: Path) -> None:
    """Results of a short training do not replace those of a long one."""
    for arguments in ((), ("--steps=50",), ("--float64",), ()):
        assert _run(trainer, "--seeds", "0", *arguments) == 0
    assert _ran(trainer) == _ALL[:2] * 3


def test_ctrl_c_keeps_finished_results(trainer: Path) -> None:
    """The next start repeats the interrupted training."""
    hang = trainer.with_name("hang")
    hang.write_text("sync-1", encoding="utf-8")
    out = trainer.parents[1] / "out"
    program = (
        "import pathlib, sys\n"
        "from tests.learning import learning\n"
        f"sys.exit(learning.run(['--steps=100', {f'--out={out}'!r}], {{'script': pathlib.Path({str(trainer)!r})}}))"
    )
    process = start_python(program)
    while len(_ran(trainer)) < 3:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "interrupted" in err and "Traceback" not in err
    hang.unlink()
    assert _run(trainer) == 0
    assert _ran(trainer) == [*_ALL[:3], *_ALL[2:]]


def test_curve_is_the_mean_of_the_last_episodes() -> None:
    """At the beginning the mean has fewer episodes; between episodes the curve is linear."""
    training = Training(20.0, tuple((10 * n, float(n), 0.1 * n) for n in range(1, 101)))
    returns, seconds = training.curve(np.array([10.0, 25.0, 1000.0]))
    assert returns.tolist() == pytest.approx([1.0, 1.75, 84.5])
    assert seconds.tolist() == pytest.approx([0.1, 0.25, 10.0])
    assert training.final_return == 84.5

    together = Training(20.0, ((10, 1.0, 2.0), (10, 3.0, 2.0), (20, 5.0, 4.0)))
    assert together.curve(np.array([10.0, 20.0]))[0].tolist() == [2.0, 3.0]


if __name__ == "__main__":
    pytest_main.run(__file__)
