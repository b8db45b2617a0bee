"""Failures of environments in EnvRows, and the exception that stops a worker."""

import os
import signal
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import tandem
from tandem import _native
from tandem.testing.row_workers import RESET, RESET_ONLY, SEEDED, STEP, RowWorkers, Stop, started
from tandem.testing.sample_envs import Results, ScriptedEnv

MODES = list(AutoresetMode)


def _without(results: Results, place: int, value: Any) -> Results:
    return (*results[:place], value, *results[place + 1 :])


def _raise(error: BaseException) -> Any:
    raise error


class _TwoArguments(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


_NUMBER = "expected a number, found"
FAILURES: dict[str, tuple[Callable[[ScriptedEnv, Results], Any], type[BaseException], str]] = {
    "exception": (lambda env, results: 1 // 0, ZeroDivisionError, "integer division or modulo by zero"),
    "exception with two arguments": (lambda env, results: _raise(_TwoArguments(1, 2)), _TwoArguments, "(1, 2)"),
    "KeyboardInterrupt": (lambda env, results: _raise(KeyboardInterrupt()), KeyboardInterrupt, ""),
    "sys.exit": (lambda env, results: _raise(SystemExit(3)), SystemExit, "3"),
    "RecursionError": (lambda env, results: env.step(0), RecursionError, "maximum recursion depth exceeded"),
    "None": (
        lambda env, results: None,
        tandem.InvalidArgument,
        "step of environment 2: expected (observation, reward, terminated, truncated, info), found NoneType",
    ),
    "four values": (lambda env, results: results[:4], tandem.InvalidArgument, "found a tuple of 4 items"),
    "an array": (lambda env, results: results[0], tandem.InvalidArgument, "found float32[2]"),
    "a generator": (lambda env, results: iter(results), tandem.InvalidArgument, "found tuple_iterator"),
    "shape": (
        lambda env, results: _without(results, 0, np.zeros(3, np.float32)),
        tandem.InvalidArgument,
        "observation of environment 2: expected float32[2], found float32[3]",
    ),
    "dtype": (
        lambda env, results: _without(results, 0, np.zeros(2, complex)),
        tandem.InvalidArgument,
        "observation of environment 2: expected float32[2], found complex128[2]",
    ),
    "observation None": (
        lambda env, results: _without(results, 0, None),
        tandem.InvalidArgument,
        "observation of environment 2: expected float32[2], found object[]",
    ),
    "reward None": (
        lambda env, results: _without(results, 1, None),
        tandem.InvalidArgument,
        f"reward of environment 2: {_NUMBER} NoneType",
    ),
    "reward array": (
        lambda env, results: _without(results, 1, np.ones(1)),
        tandem.InvalidArgument,
        f"reward of environment 2: {_NUMBER} float64[1]",
    ),
    "reward str": (lambda env, results: _without(results, 1, "1.5"), tandem.InvalidArgument, f"{_NUMBER} str"),
    "reward complex": (lambda env, results: _without(results, 1, 1j), tandem.InvalidArgument, f"{_NUMBER} complex"),
    "large reward": (
        lambda env, results: _without(results, 1, 10**400),
        tandem.InvalidArgument,
        f"{_NUMBER} int: int too large to convert to float",
    ),
    "terminated": (
        lambda env, results: _without(results, 2, np.zeros(2)),
        tandem.InvalidArgument,
        "terminated of environment 2: expected a bool, found float64[2]",
    ),
    "truncated": (
        lambda env, results: _without(results, 3, np.zeros(2)),
        tandem.InvalidArgument,
        "truncated of environment 2: expected a bool, found float64[2]",
    ),
    "info": (
        lambda env, results: _without(results, 4, None),
        tandem.InvalidArgument,
        "info of environment 2: expected a dict, found NoneType",
    ),
    "info that pickle refuses": (
        lambda env, results: _without(results, 4, {"x": lambda: 0}),
        tandem.InvalidArgument,
        "info of environment 2: expected values that pickle accepts, found ",
    ),
    "large info": (
        lambda env, results: _without(results, 4, {"x": "x" * 10**6}),
        tandem.InvalidArgument,
        "info of environment 2: expected at most 65",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FAILURES)
def test_failure_of_one_environment(name: str, mode: AutoresetMode) -> None:
    """The others step. The failure is reported in each step, until a reset; it says which environment failed."""
    on_step, error_class, text = FAILURES[name]
    failing = ScriptedEnv(
        lambda step: {"step": step}, lambda env, results: results if len(env.calls) < 3 else on_step(env, results)
    )
    envs = [ScriptedEnv(lambda step: {"step": step}) for _ in range(4)]
    envs[2] = failing
    workers = started(*envs, mode=mode)
    assert workers.run(STEP) == []
    calls = 0
    for step in range(3):
        ((env_id, error, shown),) = workers.run(STEP)
        assert env_id == 2 and type(error) is error_class
        assert text in str(error)
        assert "in environment 2, tandem.testing.sample_envs.ScriptedEnv" in shown
        assert shown.startswith("Traceback") or shown.startswith(f"{error_class.__module__}."), shown
        assert list(workers.arrays.status) == [0, 0, 1, 0]
        assert workers.arrays.reward[2] == 0 and workers.arrays.dones[2] == 0
        if step == 0:
            first, calls = (error, shown), len(failing.calls)
            assert list(workers.infos.read()["_step"]) == [True, True, False, True]
        assert (error, shown) == first and error.__traceback__ is None
        assert len(failing.calls) == calls
        assert [len(env.calls) >= 3 + step for env in envs if env is not failing] == [True] * 3
    workers.arrays.resets[2] = RESET | SEEDED
    assert workers.run(RESET_ONLY) == []
    assert list(workers.arrays.status) == [0] * 4
    assert failing.calls[-1] == ("reset", 9)


@pytest.mark.parametrize("mode", MODES)
def test_failure_in_a_reset(mode: AutoresetMode) -> None:
    """Also in the reset that follows an episode's end; then the row has no final info."""

    def on_reset(env: ScriptedEnv, results: tuple[Any, Any]) -> Any:
        return results if len(env.calls) == 1 else (*results, 1)

    workers = started(ScriptedEnv(length=1, on_reset=on_reset), ScriptedEnv(length=1), mode=mode)
    for _ in range(2):
        failures = workers.run(STEP)
    if mode == AutoresetMode.DISABLED:
        workers.arrays.resets[:] = RESET
        failures = workers.run(RESET_ONLY)
    ((env_id, error, _),) = failures
    assert env_id == 0 and type(error) is tandem.InvalidArgument
    assert "reset of environment 0: expected (observation, info), found a tuple of 3 items" in str(error)
    assert not workers.infos.read().get("_final_obs", [False])[0]


def test_text_has_the_traceback_and_the_wrapped_class() -> None:
    """The user sees the line in the environment's code."""
    env = gymnasium.make("CartPole-v1")
    workers = RowWorkers([env], num_workers=1)
    ((_, error, text),) = workers.run(STEP)
    assert isinstance(error, gymnasium.error.ResetNeeded)
    assert 'wrappers/common.py", line' in text
    assert "in environment 0, gymnasium.envs.classic_control.cartpole.CartPoleEnv (CartPole-v1)" in text


def test_stop_ends_the_exchange() -> None:
    """A signal handler raises it inside env.step. A later exchange is legal."""

    def stop(signum: int, frame: Any) -> None:
        raise Stop

    def on_step(env: ScriptedEnv, results: Results) -> Any:
        if len(env.calls) == 2:
            os.kill(os.getpid(), signal.SIGUSR1)
        return results

    previous = signal.signal(signal.SIGUSR1, stop)
    try:
        workers = started(ScriptedEnv(on_step=on_step), ScriptedEnv())
        with pytest.raises(Stop):
            workers.run(STEP)
        assert list(workers.current) == [_native.NO_ENVIRONMENT] * 2
        assert workers.run(STEP) == []
    finally:
        signal.signal(signal.SIGUSR1, previous)
