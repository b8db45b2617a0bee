"""`tandem.vector.AsyncVectorEnv`: what is begun by one call and awaited by another."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv
from tandem.testing.sample_spaces import assert_same
from tandem.testing.sync_parity import ENVS, NUM_ENVS
from tandem.vector import AsyncVectorEnv

_ZEROS = np.zeros(NUM_ENVS, int)


class Gated(ScriptedEnv):
    """Waits in each call until a file exists, if there is one to wait for."""

    def __init__(self) -> None:
        """Makes an environment that waits for nothing."""
        super().__init__()
        self.gate: Path | None = None
        self.fails = False

    def _pass(self) -> None:
        while self.gate is not None and not self.gate.exists():
            time.sleep(0.001)
        if self.fails:
            raise ValueError("a fault")

    def reset(self, **arguments: Any) -> Any:
        """Starts an episode."""
        self._pass()
        return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        """Adds 1 to the number of steps."""
        self._pass()
        return super().step(action)

    def ask(self, number: int) -> int:
        """Returns the number."""
        self._pass()
        return number


def _made(**options: Any) -> AsyncVectorEnv:
    return AsyncVectorEnv([Gated] * NUM_ENVS, num_workers=2, **options)


# What begins something: its name, the call, and what takes its results.
_BEGIN: dict[str, tuple[Callable[[AsyncVectorEnv], Any], Callable[..., Any]]] = {
    "step": (lambda envs: envs.step_async(_ZEROS), lambda envs, **options: envs.step_wait(**options)[0]),
    "reset": (lambda envs: envs.reset_async(seed=1), lambda envs, **options: envs.reset_wait(**options)[0]),
    "call": (lambda envs: envs.call_async("ask", 3), lambda envs, **options: envs.call_wait(**options)),
}


@pytest.mark.parametrize("kind", _BEGIN)
def test_returns_before_the_environments_have_ended(kind: str, tmp_path: Path) -> None:
    """The environments go on when the trainer makes a file, which it does after the call has returned."""
    begin, wait = _BEGIN[kind]
    with closing(_made()) as envs:
        envs.reset(seed=0)
        envs.set_attr("gate", tmp_path / "gate")
        begin(envs)
        for _ in range(2):
            with pytest.raises(multiprocessing.TimeoutError) as caught:
                wait(envs, timeout=0.05)
            assert isinstance(caught.value, tandem.StepTimeout)
        (tmp_path / "gate").touch()
        assert len(wait(envs)) == NUM_ENVS
        envs.step(_ZEROS)


def test_results_equal_sync_vector_envs() -> None:
    """Those of resets, steps and calls."""
    sync = SyncVectorEnv([ENVS["CartPole"]] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    with closing(AsyncVectorEnv([ENVS["CartPole"]] * NUM_ENVS, autoreset_mode="SameStep", num_workers=2)) as envs:
        envs.reset_async(seed=4)
        assert_same(envs.reset_wait(), sync.reset(seed=4))
        for _ in range(40):
            envs.step_async(_ZEROS)
            assert_same(envs.step_wait(), sync.step(_ZEROS))
        envs.call_async("get_wrapper_attr", "gravity")
        assert envs.call_wait() == sync.call("get_wrapper_attr", "gravity")


_REFUSED: dict[str, Callable[[AsyncVectorEnv], Any]] = {
    "step_async": lambda envs: envs.step_async(_ZEROS),
    "reset_async": lambda envs: envs.reset_async(),
    "call_async": lambda envs: envs.call_async("ask", 1),
    "step": lambda envs: envs.step(_ZEROS),
    "send": lambda envs: envs.send(_ZEROS),
}


@pytest.mark.parametrize("kind", _BEGIN)
def test_other_calls_are_refused(kind: str) -> None:
    """The errors are Gymnasium's classes, too; the results can still be taken, once."""
    begin, wait = _BEGIN[kind]
    with closing(_made()) as envs:
        envs.reset(seed=0)
        begin(envs)
        for name, call in _REFUSED.items():
            with pytest.raises(
                gymnasium.error.AlreadyPendingCallError, match=rf"^{name}: .*{kind}_wait\(\) first"
            ) as caught:
                call(envs)
            assert isinstance(caught.value, tandem.StepPending)
        for other in _BEGIN.keys() - {kind}:
            with pytest.raises(gymnasium.error.NoAsyncCallError, match=f"{other}_wait"):
                _BEGIN[other][1](envs)
        wait(envs)
        with pytest.raises(gymnasium.error.NoAsyncCallError):
            wait(envs)
        envs.step(_ZEROS)


def test_calls_are_refused_while_one_is_pending() -> None:
    """An answer to another request would be lost."""
    with closing(_made()) as envs:
        envs.reset(seed=0)
        envs.call_async("ask", 5)
        for call in (lambda: envs.get_attr("fails"), lambda: envs.set_attr("fails", True), lambda: envs.reset()):
            with pytest.raises(gymnasium.error.AlreadyPendingCallError):
                call()
        assert envs.call_wait() == (5,) * NUM_ENVS


@pytest.mark.parametrize("kind", _BEGIN)
def test_exceptions_of_environments(kind: str) -> None:
    """The wait raises EnvFailed; the other environments can be used afterwards."""
    begin, wait = _BEGIN[kind]
    with closing(_made()) as envs:
        envs.reset(seed=0)
        envs.set_attr("fails", [True] + [False] * (NUM_ENVS - 1))
        begin(envs)
        with pytest.raises(tandem.EnvFailed, match="ValueError: a fault"):
            wait(envs)
        envs.set_attr("fails", False)
        envs.reset(options={"reset_mask": np.arange(NUM_ENVS) == 0})
        envs.step(_ZEROS)


def test_nothing_is_begun_after_a_refusal() -> None:
    """Invalid arguments leave no call behind."""
    with closing(_made()) as envs:
        with pytest.raises(tandem.ResetNeeded):
            envs.step_async(_ZEROS)
        envs.reset(seed=0)
        with pytest.raises(tandem.InvalidAction):
            envs.step_async(_ZEROS[1:])
        with pytest.raises(tandem.InvalidArgument):
            envs.reset_async(seed="x")  # type: ignore[arg-type]
        with pytest.raises(tandem.InvalidArgument):
            envs.call_async("ask", threading.Lock())
        envs.step(_ZEROS)


def test_a_reset_drops_what_was_begun() -> None:
    """The next step is one of the new episode."""
    with closing(_made()) as envs:
        envs.reset(seed=0)
        envs.step_async(_ZEROS)
        envs.reset(seed=0)
        envs.step_async(_ZEROS)
        assert envs.step_wait()[1].tolist() == [1.0] * NUM_ENVS


@pytest.mark.parametrize("kind", _BEGIN)
def test_close_warns_of_what_was_begun(kind: str, tmp_path: Path) -> None:
    """It ends all the same, also if the environments do not."""
    envs = _made()
    envs.reset(seed=0)
    envs.set_attr("gate", tmp_path / "gate")
    _BEGIN[kind][0](envs)
    with pytest.warns(UserWarning, match=f"{kind}_async was called without {kind}_wait"):
        envs.close(terminate=True)
    for call in (*_REFUSED.values(), *(wait for _, wait in _BEGIN.values())):
        with pytest.raises(gymnasium.error.ClosedEnvironmentError):
            call(envs)
