"""Sweeps: the runs of `tandemctl submit --grid` and `tandemctl sweep`, a set of parameters each."""

import itertools
import json
import math
import random
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tandemctl.output import Failed

Parameters = dict[str, Any]  # texts and numbers, by name

MOST_RUNS = 100_000
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_KINDS = ("uniform", "log_uniform", "range", "choice")
# Of submit, in a sweep's file.
_OPTIONS = "name gpus max_steps max_duration step_stride cpus priority restart frames".split()


class _Whole(int):
    """A number that reaches the program as it was typed, such as 007."""

    word: str


class _Real(float):
    """The same of a number such as 1e-3 or 1.10."""

    word: str


def grid_values(text: str) -> tuple[str, list[Any]]:
    """Returns the name and the values of a word such as "lr=1e-3,3e-4" or "seed=0..4"; ValueError: not one.

    >>> grid_values("seed=0..2"), grid_values("lr=1e-3,3e-4"), grid_values("algo=ppo,sac")
    (('seed', [0, 1, 2]), ('lr', [0.001, 0.0003]), ('algo', ['ppo', 'sac']))
    """
    name, equals, values = text.partition("=")
    if not equals or not values or not _PLACEHOLDER.fullmatch(f"{{{name}}}"):
        raise ValueError("NAME=VALUE,... or NAME=FIRST..LAST")
    if span := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})", values):
        first, last = int(span[1]), int(span[2])
        if not 0 <= last - first < MOST_RUNS:
            raise ValueError(f"FIRST..LAST of 1 to {MOST_RUNS} numbers")
        return name, list(range(first, last + 1))
    return name, [_value(word) for word in values.split(",")]


def grid(axes: Sequence[tuple[str, list[Any]]]) -> list[Parameters]:
    """Returns every combination, the last name's values first."""
    names = [name for name, _ in axes]
    if twice := [name for name in names if names.count(name) > 1]:
        raise Failed(f"--grid: expected each name once, found {twice[0]!r} twice")
    if math.prod(len(values) for _, values in axes) > MOST_RUNS:
        raise Failed(f"--grid: expected at most {MOST_RUNS:,} runs, found more")
    return [dict(zip(names, each, strict=True)) for each in itertools.product(*(values for _, values in axes))]


def read_sweep(file: str) -> tuple[list[str], list[Parameters]]:
    """Returns the words of `tandemctl submit`, and the parameters of each run, of a sweep's TOML file.

    In [parameters], a value or a list of values is taken in every combination; {uniform = [0, 1]}, {log_uniform =
    [1e-5, 1e-2]}, {range = [1, 9]} and {choice = [...]} are drawn for each of `samples`, by `seed`. Other keys are
    options of submit, such as cpus = 2, frames = true, or env = {NAME = "VALUE"}.
    """
    try:
        sweep = tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise Failed(f"expected a file of a sweep, found: {error.strerror}: {file}") from error
    except ValueError as error:  # no UTF-8, or no TOML
        raise Failed(f"expected TOML, found: {error}: {file}") from error
    program, parameters = sweep.pop("program", None), sweep.pop("parameters", None)
    samples, seed = sweep.pop("samples", 1), sweep.pop("seed", None)
    if not isinstance(program, list) or not program or not all(isinstance(word, str) for word in program):
        raise Failed(f'program: expected a list such as ["python", "train.py", "{{lr}}"], found {program!r}: {file}')
    if not isinstance(parameters, dict) or not parameters:
        raise Failed(f"[parameters]: expected names with values, found {parameters!r}: {file}")
    if seed is not None and not isinstance(seed, int):
        raise Failed(f"seed: expected a whole number, found {seed!r}: {file}")
    if not isinstance(samples, int) or not 1 <= samples <= MOST_RUNS:
        raise Failed(f"samples: expected 1 to {MOST_RUNS}, found {samples!r}: {file}")
    drawn = {name: value for name, value in parameters.items() if isinstance(value, dict)}
    axes = [(name, _values(name, value)) for name, value in parameters.items() if name not in drawn]
    chance = random.Random(seed)
    runs = [
        each | {name: _draw(name, how, chance) for name, how in drawn.items()}
        for each in grid(axes)
        for _ in range(samples if drawn else 1)
    ]
    if len(runs) > MOST_RUNS:
        raise Failed(f"samples: expected at most {MOST_RUNS:,} runs together, found {len(runs):,}: {file}")
    env = sweep.pop("env", {})
    if not isinstance(env, dict):
        raise Failed(f'env: expected names with values, such as {{NAME = "VALUE"}}, found {env!r}: {file}')
    words = [f"--env={name}={text_of(value)}" for name, value in env.items()]
    for name, value in sweep.items():
        if name not in _OPTIONS:
            known = ", ".join(["program", "samples", "seed", "[parameters]", "env", *_OPTIONS])
            raise Failed(f"expected {known}, found {name!r}: {file}")
        words += [] if value is False else [f"--{name}" if value is True else f"--{name}={text_of(value)}"]
    return [*words, "--", *program], runs


def filled(words: Sequence[str], parameters: Mapping[str, Any]) -> list[str]:
    """Returns words with values in place of "{name}"; names that are no parameters stay.

    >>> filled(["train.py", "--lr={lr}", "{x}"], {"lr": 0.001})
    ['train.py', '--lr=0.001', '{x}']
    """

    def value(match: re.Match[str]) -> str:
        return text_of(parameters[match[1]]) if match[1] in parameters else match[0]

    return [_PLACEHOLDER.sub(value, word) for word in words]


def expect_used(words: Sequence[str], parameters: Mapping[str, Any]) -> None:
    """Refuses parameters that no word has."""
    used = {name for word in words for name in _PLACEHOLDER.findall(word)}
    if unused := [name for name in parameters if name not in used]:
        raise Failed(
            f"expected {{{unused[0]}}} in the program's words or in --env, found it in none of them; each parameter of "
            "a sweep has to reach the program"
        )


def text_of(value: Any) -> str:
    """Returns a value as a word of a command line; a number that was typed stays as it was.

    >>> text_of(0.0003), text_of(5), text_of("ppo"), text_of(True)
    ('0.0003', '5', 'ppo', 'true')
    """
    if isinstance(value, _Whole | _Real):
        return value.word
    return value if isinstance(value, str) else json.dumps(value)


def label(parameters: Mapping[str, Any]) -> str:
    """Returns parameters as a part of a run's name."""
    return " ".join(f"{name}={text_of(value)}" for name, value in parameters.items())


def _values(name: str, value: Any) -> list[Any]:
    """Returns the values of a list, or the one value."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(each, str) or _is_number(each) for each in values):
        expected = "a text, a finite number, true, false, or a list of such values"
        raise Failed(f"[parameters] {name}: expected {expected}, found {value!r}")
    return values


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _value(word: str) -> Any:
    try:
        number = float(Decimal(word))
    except InvalidOperation:
        return word
    if not math.isfinite(number):
        return word
    typed = _Whole(word) if re.fullmatch(r"-?\d+", word) else _Real(number)
    typed.word = word
    return typed


def _draw(name: str, how: Mapping[str, Any], chance: random.Random) -> Any:
    kind, values = next(iter(how.items()), ("", None))
    if len(how) != 1 or kind not in _KINDS or not isinstance(values, list) or not values:
        raise Failed(f"[parameters] {name}: expected one of {', '.join(_KINDS)} with a list, found {dict(how)!r}")
    if kind == "choice":
        return chance.choice(_values(name, values))
    low, high = values if len(values) == 2 else (1, 0)
    numbers = all(isinstance(each, int) if kind == "range" else _is_number(each) for each in (low, high))
    if not numbers or not low <= high or (kind == "log_uniform" and low <= 0):
        of = {"range": ", whole numbers", "log_uniform": ", above 0"}.get(kind, "")
        raise Failed(f"[parameters] {name}: expected {kind} = [LOWEST, HIGHEST]{of}, found {values!r}")
    if kind == "range":
        return chance.randint(low, high)
    drawn = chance.uniform(low, high) if kind == "uniform" else math.exp(chance.uniform(math.log(low), math.log(high)))
    return min(max(float(f"{drawn:.6g}"), low), high)  # digits that people can read, and copy into a command
