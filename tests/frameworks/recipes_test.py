"""The recipes of client_py/examples/frameworks train: on a task in C++, and on Gymnasium's environment in Python."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipe_runs import FRAMEWORKS, RECIPES, random_return

_ROOT = Path(__file__).parents[2]
_STEPS = 30_000
_WATCHDOG_SECS = 600


@pytest.fixture(scope="module")
def limit() -> float:
    """The 99th percentile of a random policy's returns."""
    return float(random_return())


def _train(framework: str, folder: Path, *arguments: str) -> float:
    script = str(RECIPES / f"train_{framework}.py")
    command = [sys.executable, script, *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, cwd=folder, text=True, check=False, timeout=_WATCHDOG_SECS, **pipes)
    found = re.search(r"^return ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert ran.returncode == 0 and found, ran.stdout[-4000:]
    return float(found[1])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_recipes_learn(framework: str, limit: float, tmp_path: Path) -> None:
    """The mean return is above nearly all returns of a random policy, and equal with both backends."""
    native, python = (
        _train(framework, tmp_path, "--steps", str(_STEPS), "--backend", backend) for backend in ("native", "python")
    )
    print(f"{framework}: {native:.1f} in C++, {python:.1f} in Python; random {limit:.1f}")
    assert min(native, python) > limit


@pytest.mark.parametrize("path", sorted(RECIPES.glob("train_*.py")), ids=lambda path: path.stem)
def test_recipes_fit_on_a_screen(path: Path) -> None:
    """Each has at most 60 lines."""
    assert len(path.read_text("utf-8").splitlines()) < 60


def _measure(program: str, *arguments: str) -> list[list[str]]:
    """Runs a program of tests/learning; returns the cells of the table's rows."""
    command = [sys.executable, "-m", f"tests.learning.{program}", *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, cwd=_ROOT, text=True, check=False, timeout=_WATCHDOG_SECS, **pipes)
    assert ran.returncode == 0, ran.stdout[-4000:]
    lines = [line for line in ran.stdout.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_watching_does_not_change_a_curve(framework: str) -> None:
    """The short form of tools/watching_cost: equal curves in every digit; the times are those of few rounds."""
    rows = _measure("watching_cost", "--frameworks", framework, "--seeds", "0", "--steps=60000", "--curves_only")
    assert [row[:2] for row in rows] == [[framework, "busy"], [framework, "published"], [framework, "watched"]]
    assert all(int(row[2]) >= 5 and row[-1] == "yes" for row in rows), rows


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_own_environments_are_measured(framework: str) -> None:
    """The short form of tools/frameworks_speed."""
    arguments = ["--frameworks", framework, "--num_envs", "16", "--rounds", "1", "--updates", "2"]
    (row,) = _measure("frameworks_speed", *arguments)
    assert row[:2] == [framework, "16"] and "nan" not in " ".join(row)


def test_torchrun_shares_gradients(tmp_path: Path) -> None:
    """Two processes learn together: episodes become longer."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        str(RECIPES / "train_torchrun.py"),
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(
        [*command, "--updates", "40"], cwd=tmp_path, text=True, check=False, timeout=_WATCHDOG_SECS, **pipes
    )
    lengths = [float(value) for value in re.findall(r"^\d+: ([\d.]+) steps", ran.stdout, re.MULTILINE)]
    assert ran.returncode == 0 and len(lengths) == 40, ran.stdout[-4000:]
    assert np.mean(lengths[-5:]) > 2 * np.mean(lengths[:3])
