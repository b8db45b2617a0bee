"""Parameters of sweeps: grids, files with draws, and their places in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandemctl.output import Failed
from tandemctl.sweeps import expect_used, filled, grid, grid_values, read_sweep


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("lr=1e-3,3e-4", [0.001, 0.0003]),
        ("seed=0..4", [0, 1, 2, 3, 4]),
        ("seed=-1..0", [-1, 0]),
        ("algo=ppo,sac", ["ppo", "sac"]),
        ("x=nan,1.5,", ["nan", 1.5, ""]),
        ("file=a=b", ["a=b"]),
        ("x=1e400,-1e999", ["1e400", "-1e999"]),
    ],
)
def test_values_of_a_grid(text: str, values: list[Any]) -> None:
    """Numbers are numbers; all else is text."""
    name, found = grid_values(text)
    assert (name, found) == (text.partition("=")[0], values)
    assert [type(json.loads(json.dumps(each))) for each in found] == [type(value) for value in values]


@pytest.mark.parametrize("text", ["", "lr", "lr=", "=1", "a b=1", "seed=4..0", "seed=0..999999999"])
def test_invalid_grids_are_refused(text: str) -> None:
    """No name, no value, or a span without or with too many numbers."""
    with pytest.raises(ValueError, match=r"NAME=VALUE|FIRST\.\.LAST"):
        grid_values(text)


@pytest.mark.parametrize("word", ["1.10", "007", "1e5", "1_000", "-0", "1E-3", "+2", "ppo"])
def test_words_reach_the_program_as_typed(word: str) -> None:
    """As a parameter a number is a number."""
    (parameters,) = grid([grid_values(f"x={word}")])
    assert filled(["--x={x}"], parameters) == [f"--x={word}"]
    assert json.loads(json.dumps(parameters))["x"] == (word if word == "ppo" else float(word))


def test_a_grid_has_every_combination() -> None:
    """The last name's values change first; each name comes once; there is a limit."""
    assert [tuple(each.values()) for each in grid([("a", [1, 2]), ("b", ["x", "y"])])] == [
        (1, "x"),
        (1, "y"),
        (2, "x"),
        (2, "y"),
    ]
    assert grid([]) == [{}]
    with pytest.raises(Failed, match="'a' twice"):
        grid([("a", [1]), ("a", [2])])
    with pytest.raises(Failed, match="at most 100,000"):
        grid([("a", list(range(1000))), ("b", list(range(1000)))])


def test_words_get_their_values() -> None:
    """Unused parameters are refused; other braces stay."""
    assert filled(["{a}{a}", '{"json": 1}', "{b}"], {"a": True}) == ["truetrue", '{"json": 1}', "{b}"]
    expect_used(["{a}"], {"a": 1})
    with pytest.raises(Failed, match=r"expected {b} in the program's words"):
        expect_used(["{a}"], {"a": 1, "b": 2})


_FILE = """
program = ["python", "train.py", "--lr={lr}"]
name = "first"
frames = true
cpus = 2
env = {SEED = "{seed}"}
samples = 3
seed = 1

[parameters]
algo = ["ppo", "sac"]
lr = {log_uniform = [1e-5, 1e-2]}
seed = {range = [0, 9]}
one = 1
"""


def test_a_file_draws_for_each_combination(tmp_path: Path) -> None:
    """The words are those of submit; equal seeds draw equal samples."""
    file = tmp_path / "sweep.toml"
    file.write_text(_FILE)
    words, runs = read_sweep(str(file))
    file.write_text(_FILE.replace("frames = true", "frames = false"))
    assert "--frames" not in " ".join(read_sweep(str(file))[0])
    file.write_text(_FILE)
    assert words == [*"--env=SEED={seed} --name=first --frames --cpus=2 -- python train.py --lr={lr}".split()]
    assert [run["algo"] for run in runs] == ["ppo"] * 3 + ["sac"] * 3
    assert all(1e-5 <= run["lr"] <= 1e-2 and run["seed"] in range(10) and run["one"] == 1 for run in runs)
    assert len({run["lr"] for run in runs}) == 6
    assert all(float(f"{run['lr']:.6g}") == run["lr"] for run in runs)
    assert read_sweep(str(file))[1] == runs


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (("program", "programm"), "program: expected a list"),
        (("samples = 3", "samples = 0"), "samples: expected 1 to"),
        (("log_uniform = [1e-5", "log_uniform = [0"), r"lr: expected log_uniform = \[LOWEST, HIGHEST\]"),
        (("range = [0, 9]", "range = [9, 0]"), "seed: expected range"),
        (("range = [0, 9]", "rang = [0, 9]"), "seed: expected one of uniform"),
        (("range = [0, 9]", "range = [0.5, 9]"), "seed: expected range = .*, whole numbers"),
        (("log_uniform = [1e-5, 1e-2]", "uniform = [0, inf]"), "lr: expected uniform"),
        (("log_uniform = [1e-5, 1e-2]", "uniform = [0, 1" + "0" * 400 + "]"), "lr: expected uniform"),
        (("range = [0, 9]", "choice = [[1]]"), "seed: expected a text, a finite number"),
        (("one = 1", "one = "), "expected TOML"),
        (("one = 1", "one = []"), r"one: expected .*, or a list of such values, found \[\]"),
        (("one = 1", "one = nan"), "one: expected .* finite"),
        (("one = 1", "one = 2020-01-01"), "one: expected a text"),
        (("\nseed = 1", "\nseed = [1]"), "seed: expected a whole number"),
        (("cpus = 2", "watch = true"), "expected program, samples, .* cpus, .*, found 'watch'"),
        (("cpus = 2", 'grid = "one=2"'), "found 'grid'"),
        (("cpus = 2", 'daemon = "other:50055"'), "found 'daemon'"),
        (('env = {SEED = "{seed}"}', "env = 5"), "env: expected names with values"),
        (("[parameters]", "[others]"), r"\[parameters\]: expected names"),
    ],
)
def test_invalid_files_are_refused(change: tuple[str, str], fact: str, tmp_path: Path) -> None:
    """The text has the key, what was expected, and the file."""
    file = tmp_path / "sweep.toml"
    file.write_text(_FILE.replace(*change))
    with pytest.raises(Failed, match=fact):
        read_sweep(str(file))
    with pytest.raises(Failed, match="No such file"):
        read_sweep(str(tmp_path / "none"))
