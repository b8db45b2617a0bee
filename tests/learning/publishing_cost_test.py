"""The cost of publishing, with real frames and the real viewer, and a random agent: the test does not need torch."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture
from tests.learning import publishing_cost
from tests.learning.published_cartpole import CONDITIONS
from tools.testing import pytest_main

_VIEWER = Path("viz/viewer/viewer").absolute()

# The agent acts at random. Files `other`, `fail` and `hang` name the conditions that act differently, fail, or hang.
_TRAINER = """
import pathlib, signal, sys
from tests.learning import published_cartpole
condition, run, *_ = (argument.partition("=")[2] for argument in sys.argv[-5:])
here = pathlib.Path(__file__).parent
def named(file):
    return (here / file).exists() and condition in (here / file).read_text().split()
def prepare(env, seed):
    def learn(steps):
        env.reset(seed=seed)
        env.action_space.seed(seed + named("other"))
        for _ in range(steps):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
        if named("fail"):
            sys.exit("the pole broke")
        if named("hang"):
            (here / "hangs").write_text(run)
            signal.pause()
    return learn
published_cartpole.train(prepare)
"""


@pytest.fixture
def trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes the training script into its own folder, and hides the display."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    path = tmp_path / "trainer" / "train.py"
    path.parent.mkdir()
    path.write_text(_TRAINER, encoding="utf-8")
    return path


def _out(trainer: Path) -> Path:
    return trainer.parents[1] / "out"


def _arguments(trainer: Path, *more: str) -> list[str]:
    return ["--steps=2000", f"--out={_out(trainer)}", "--seeds", "0", *more]


def _run(trainer: Path, *more: str) -> int:
    return publishing_cost.run(_arguments(trainer, *more), trainer, _VIEWER)


def _left(trainer: Path, condition: str, seed: int) -> dict[str, Any]:
    path = _out(trainer) / f"CartPole-v1-2000-{condition}-seed{seed}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _segments(run: str) -> list[Path]:
    return [path for path in Path("/dev/shm").iterdir() if run in path.name]


def test_conditions_take_turns() -> None:
    """Each condition is the first, the second and the last equally often."""
    order = publishing_cost.plan([5, 7, 6])
    assert len(set(order)) == len(order) == 9
    assert [seed for _, seed in order] == [5, 5, 5, 7, 7, 7, 6, 6, 6]
    for at in range(3):
        assert {order[at + 3 * number][0] for number in range(3)} == set(CONDITIONS)


def test_publishing_does_not_change_the_results(trainer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Published frames equal rendered ones; without publishing there are none; episodes are equal."""
    assert _run(trainer, "3") == 0
    out = capsys.readouterr().out
    assert "digit for digit: yes" in out and "| published, and watched " in out
    for seed in (0, 3):
        plain, published, watched = (_left(trainer, condition, seed) for condition in CONDITIONS)
        assert plain["steps"] == published["steps"] == watched["steps"] == 2000
        assert plain["episodes"] and plain["frames"] == plain["renders"] == 0
        assert published["frames"] == published["renders"] >= 1
        assert watched["frames"] == watched["renders"] >= 1
        assert sum(value for _, value, _ in plain["episodes"]) <= 2000  # each step has reward 1
    before = {condition: _left(trainer, condition, 0) for condition in CONDITIONS}
    assert _run(trainer, "3") == 0
    assert "6 of 6 trainings are in" in capsys.readouterr().out
    assert before == {condition: _left(trainer, condition, 0) for condition in CONDITIONS}


@pytest.mark.parametrize("condition", ["published", "watched"])
def test_a_different_curve_is_refused(trainer: Path, capsys: pytest.CaptureFixture[str], condition: str) -> None:
    """The output names the differing training."""
    trainer.with_name("other").write_text(condition, encoding="utf-8")
    assert _run(trainer) == 1
    said = capsys.readouterr().out.splitlines()[-1]
    label = {"published": "no viewer", "watched": "and watched"}[condition]
    assert said.endswith(f"NO: published, {label}, seed 0")


def test_failed_training_shows_its_last_output(trainer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The failed training leaves no result file."""
    trainer.with_name("fail").write_text("watched", encoding="utf-8")
    assert _run(trainer) == 2
    assert "the pole broke" in capsys.readouterr().err
    assert not list(_out(trainer).glob("*-watched-*.json"))
    assert list(_out(trainer).glob("*-plain-*.json"))


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in found.split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_running(trainer: Path, number: int) -> None:
    """No training, viewer or display runs, and no segment is left."""
    trainer.with_name("hang").write_text("watched", encoding="utf-8")
    program = (
        "import pathlib, sys\n"
        "from tests.learning import publishing_cost\n"
        f"paths = [pathlib.Path(path) for path in {[str(trainer), str(_VIEWER)]!r}]\n"
        f"sys.exit(publishing_cost.run({_arguments(trainer)!r}, *paths))"
    )
    process = start_python(program)
    hangs = trainer.with_name("hangs")
    while not hangs.exists() or not hangs.read_text(encoding="utf-8"):
        assert process.poll() is None
    run = hangs.read_text(encoding="utf-8")
    children = _children(process.pid)
    assert len(children) == 3 and _segments(run) != []
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130 and "interrupted" in err and "Traceback" not in err
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []
    assert _segments(run) == []


if __name__ == "__main__":
    pytest_main.run(__file__)
