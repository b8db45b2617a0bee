"""`serve_program`: an engine in Python as a program."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.serving.command_line import flags_of
from tandem.testing import python_engines
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.python_engines import Counter

_PROGRAM = Path(python_engines.__file__)


@pytest.fixture(autouse=True)
def python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives this process's module search path to engines."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))


def _run(*flags: str) -> "subprocess.CompletedProcess[str]":
    command: list[str | Path] = [sys.executable, _PROGRAM, f"--name={unique_name()}", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_arguments_with_numbers_are_flags() -> None:
    """Other arguments with defaults are left alone."""

    class Many(Counter):
        def __init__(
            self, num_envs: int, *, on: bool = True, steps: int = 3, rate: float = 0.5, label: str = "x"
        ) -> None:
            super().__init__(num_envs)

    assert flags_of(Many) == {"on": True, "steps": 3, "rate": 0.5}


def test_arguments_must_have_defaults() -> None:
    """The message names the argument."""

    class Demanding(Counter):
        def __init__(self, num_envs: int, *, size: int) -> None:
            super().__init__(num_envs)

    with pytest.raises(tandem.InvalidArgument, match="expected a default of argument 'size'"):
        tandem.serve_program(Demanding, [])

    class Late(Counter):
        def __init__(self, size: int = 3) -> None:
            super().__init__(size)

    with pytest.raises(tandem.InvalidArgument, match="expected num_envs as first argument"):
        tandem.serve_program(Late, [])


def test_standard_flags_are_taken() -> None:
    """An argument with such a name is refused."""

    class Seeded(Counter):
        def __init__(self, num_envs: int, *, seed: int = 3) -> None:
            super().__init__(num_envs)

    with pytest.raises(tandem.InvalidArgument, match="argument 'seed' of the engine"):
        tandem.serve_program(Seeded, [])


def test_help_lists_the_engines_flags() -> None:
    """After the standard ones."""
    done = _run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Counts the steps of each episode" in done.stdout
    assert "--truncate_after (a number); default: 0" in done.stdout and "--num_envs" in done.stdout


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--truncate_after=many", "--truncate_after: expected a number, found 'many'"),
        ("--truncate_after=2.5", "--truncate_after: expected an integer, found 2.5"),
        ("--truncate=3", "truncate_after"),
    ],
)
def test_wrong_flags_print_one_line(flag: str, text: str) -> None:
    """The exit code is 2."""
    done = _run(flag)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "error: InvalidArgument: " in done.stderr and text in done.stderr


def test_a_class_that_raises_prints_its_traceback() -> None:
    """The exit code is 1; the last line has the error."""
    program = (
        "import tandem\n"
        "from tandem.testing.python_engines import Counter\n"
        "class Broken(Counter):\n"
        "    def __init__(self, num_envs):\n"
        "        raise OSError('no robot')\n"
        "tandem.serve_program(Broken)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("error: EngineFailed: OSError: no robot")


def test_launch_engine_starts_a_python_file() -> None:
    """With the flags of the engine, and its refusals as exceptions."""
    kwargs: dict[str, Any] = {"server": _PROGRAM, "num_envs": 2, "name": unique_name()}
    with (
        tandem.launch_engine(**kwargs, flags=("--truncate_after=1",)) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        assert client.step(client.actions)[2].tolist() == [1, 1]
    with pytest.raises(tandem.InvalidArgument, match="--truncate_after: expected an integer"):
        tandem.launch_engine(**kwargs, flags=("--truncate_after=0.5",))


def test_make_vec_starts_a_python_file() -> None:
    """With the flags of the engine, also when it is started again."""
    options = tandem.EngineOptions(server=_PROGRAM, flags=["--truncate_after=2"], timeout=60, restart=True)
    with closing(tandem.make_vec(num_envs=2, engine=options)) as envs:
        envs.reset(seed=0)
        for death in (False, True):
            if death:
                os.kill(envs.client.engine_pid, signal.SIGKILL)
                assert envs.step(envs.action_space.sample())[4]["engine_restarted"].all()
                envs.reset()
            assert not envs.step(envs.action_space.sample())[3].any()
            assert envs.step(envs.action_space.sample())[3].all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"task": "Ant-v5"}, r"task: expected none, found 'Ant-v5': .* no flag --task; omit it, or .*'--NAME=VALUE"),
        ({"model": "a.xml"}, r"model: expected none, found 'a.xml': .* no flag --model; omit it, .* --help lists them"),
        ({"truncate_after": 3}, r"truncate_after: expected none, found 3: .*\(flags=\('--truncate_after=3',\)\); its"),
        ({"x": "y"}, 'x: expected none, found "y": .* no flag --task_options; omit it, or'),
        ({"num_workers": 2}, "num_workers: expected none, found 2: it is no option of a task in C.*; threads"),
        ({"flags": ("--no_such=1",)}, "expected one of the flags --.* --truncate_after .*, found '--no_such=1';"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_arguments_that_a_python_engine_has_not(arguments: dict[str, Any], text: str) -> None:
    """The error names the argument as the caller wrote it, and what to do."""
    options = tandem.EngineOptions(server=_PROGRAM, flags=arguments.pop("flags", ()))
    with pytest.raises(tandem.InvalidArgument, match=f"^{text}"):
        tandem.make_vec(**arguments, num_envs=2, engine=options)
