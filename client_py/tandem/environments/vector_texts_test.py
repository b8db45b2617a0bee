"""Error texts of step, reset, render and close for invalid arguments and for calls in a wrong order, in full."""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import tandem
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

Envs = tandem.SharedMemoryVectorEnv

_ZEROS = np.zeros((2, 3), np.float32)
_FITS = "nothing was sent; action_space.sample() shows what fits"
_WANTED = "actions: expected float32[2, 3], one for each environment, found"


@pytest.fixture(name="hoppers")
def hoppers_fixture() -> Iterator[Envs]:
    """Makes two environments whose action space is a Box."""
    envs = tandem.make_vec("Hopper-v5", 2)
    envs.reset(seed=0)
    yield envs
    envs.close()


@pytest.fixture(name="poles")
def poles_fixture() -> Iterator[Envs]:
    """Makes two environments with discrete actions."""
    envs = tandem.make_vec("CartPole-v1", 2)
    envs.reset(seed=0)
    yield envs
    envs.close()


def _error_text(call: Callable[[], Any]) -> str:
    with pytest.raises(tandem.TandemError) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        (np.zeros((3, 3), np.float32), f"{_WANTED} float32[3, 3]; {_FITS}"),
        (np.zeros((2, 4)), f"{_WANTED} float64[2, 4]; {_FITS}"),
        (np.zeros(6, np.float32), f"{_WANTED} float32[6]; {_FITS}"),
        (np.zeros((2, 3), bool), f"{_WANTED} bool[2, 3]; {_FITS}"),
        (np.full((2, 3), "a"), f"{_WANTED} <U1[2, 3]; {_FITS}"),
        (None, f"{_WANTED} object[]; {_FITS}"),
        (np.full((2, 3), np.nan), "actions: expected finite values, found nan at [0, 0]; nothing was sent"),
        ([[0, 0, 0], [0, 0, 1e300]], "actions: expected finite values, found inf at [1, 2]; nothing was sent"),
    ],
    ids=str,
)
def test_actions_of_boxes(hoppers: Envs, actions: Any, text: str) -> None:
    """`step` and `send` refuse the actions; the next step works."""
    for call in (hoppers.step, hoppers.send):
        assert _error_text(lambda call=call: call(actions)) == f"InvalidAction: {text}"  # type: ignore[misc]
    hoppers.step(_ZEROS)


def test_ragged_actions(hoppers: Envs) -> None:
    """NumPy's own reason is a part of the text."""
    text = _error_text(lambda: hoppers.step([[0, 0, 0], [0, 0]]))
    wanted = "InvalidAction: actions: expected Box(-1.0, 1.0, (2, 3), float32), found no array of numbers: "
    assert text.startswith(wanted) and text.endswith(f"; {_FITS}"), text


@pytest.mark.parametrize(
    ("actions", "found"),
    [([0.0, 1.0], "float64[2]"), ([[0], [1]], "int64[2, 1]"), ([0], "int64[1]"), ([True, False], "bool[2]")],
    ids=str,
)
def test_discrete_actions(poles: Envs, actions: Any, found: str) -> None:
    """The actions have a wrong dtype or shape."""
    text = f"InvalidAction: actions: expected int64[2], one for each environment, found {found}; {_FITS}"
    assert _error_text(lambda: poles.step(actions)) == text
    poles.step([0, 1])


@pytest.mark.parametrize(("actions", "found"), [([0, 2], "2 for environment 1"), ([-1, 0], "-1 for environment 0")])
@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_discrete_actions_out_of_range(poles: Envs, actions: list[int], found: str, dtype: Any) -> None:
    """The text is equal for int64, which C++ checks, and for int8, which Python checks."""
    text = f"InvalidAction: actions: expected 0 .. 1, found {found}; nothing was sent; see single_action_space"
    assert _error_text(lambda: poles.step(np.array(actions, dtype))) == text


_MASK = np.array([True, False])
_SEED = "seed: expected an integer in 0 .. 18446744073709551615, found"
_A_MASK = "reset_mask: expected a NumPy array bool[2], found"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"seed": -1}, f"{_SEED} -1; nothing was sent"),
        ({"seed": 2**64}, f"{_SEED} {2**64}; nothing was sent"),
        ({"seed": 1.5}, f"{_SEED} 1.5; nothing was sent"),
        (
            {"seed": [1, 2, 3]},
            "seed: expected 2 seeds, one for each environment, found 3; nothing was sent; a single integer is enough",
        ),
        ({"options": 3}, "options: expected None or a dict, found 3; nothing was sent"),
        (
            {"options": {"low": -1}},
            "options: expected nothing but 'reset_mask' and 'contract', found ['low']; nothing was sent; options of "
            "the task are make_vec's",
        ),
        ({"options": {"reset_mask": [True, False]}}, f"{_A_MASK} list; nothing was sent"),
        ({"options": {"reset_mask": _MASK.astype(int)}}, f"{_A_MASK} int64[2]; nothing was sent"),
        ({"options": {"reset_mask": _MASK[:1]}}, f"{_A_MASK} bool[1]; nothing was sent"),
        (
            {"options": {"reset_mask": ~(_MASK | True)}},
            "reset_mask: expected at least one True, found none; nothing was sent; omit the call",
        ),
        ({"options": {"contract": {}}}, "contract: expected a tandem.services.SimulationContract, found {}"),
    ],
    ids=str,
)
def test_arguments_of_reset(hoppers: Envs, arguments: dict[str, Any], text: str) -> None:
    """The text is the expected one, and no exchange is pending."""
    assert _error_text(lambda: hoppers.reset(**arguments)) == f"InvalidArgument: {text}"
    assert not hoppers.client.pending


def test_calls_while_a_step_is_pending(hoppers: Envs) -> None:
    """Calls out of order are refused, and `recv` still returns the pending step's results."""
    region = f"region '{hoppers.client.name}'"
    assert _error_text(hoppers.recv) == f"NoStepPending: {region}: nothing was sent; call send() before recv()"
    hoppers.send(_ZEROS)
    for call in (hoppers.step, hoppers.send):
        pending = f"StepPending: {region}: the last step or reset was not received; call recv() first"
        assert _error_text(lambda call=call: call(_ZEROS)) == pending  # type: ignore[misc]
    assert hoppers.recv()[0].shape == (2, 11)


def test_a_step_that_takes_too_long() -> None:
    """The text advises `recv`, `reset` and `close`, not `reconnect`, which environments do not have."""
    envs = tandem.make_vec("Hopper-v5", 2)
    envs.reset(seed=0)
    os.kill(envs.client.engine_pid, signal.SIGSTOP)
    os.waitid(os.P_PID, envs.client.engine_pid, os.WSTOPPED | os.WNOWAIT)
    envs.client._native.set_timeout(0)
    text = _error_text(lambda: envs.step(_ZEROS))
    assert text.startswith("StepTimeout: the engine of region ") and text.endswith(
        "the step or reset is still pending: recv() waits again, reset() waits and then starts new episodes, "
        "close() ends the session"
    )
    envs.close()


def test_as_sb3_of_a_dead_engine() -> None:
    """The error comes at once, also with `restart`: only a step or reset restarts an engine."""
    for restart in (False, True):
        envs = tandem.make_vec("Hopper-v5", 2, engine=tandem.EngineOptions(restart=restart))
        os.kill(envs.client.engine_pid, signal.SIGKILL)
        os.waitid(os.P_PID, envs.client.engine_pid, os.WEXITED | os.WNOWAIT)
        first, *others = _error_text(envs.as_sb3).splitlines()
        ended = "PeerGone: as_sb3: expected a running engine, found that it has ended"
        assert first == f"{ended}; close() these environments and make new ones"
        assert others[0] == "The end of the engine's log:"
        envs.close()


def test_step_before_reset_and_calls_after_close() -> None:
    """The error classes derive from Gymnasium's; a second `close` has no effect."""
    assert issubclass(tandem.ResetNeeded, gymnasium.error.ResetNeeded)
    assert issubclass(tandem.EnvironmentClosed, gymnasium.error.ClosedEnvironmentError)
    assert issubclass(tandem.EnvironmentClosed, tandem.ClientClosed)
    envs = tandem.make_vec("Hopper-v5", 2)
    needed = "expected a reset before the first step, found none; call reset() first"
    assert _error_text(lambda: envs.step(_ZEROS)) == f"ResetNeeded: step: {needed}"
    assert _error_text(lambda: envs.send(_ZEROS)) == f"ResetNeeded: send: {needed}"
    envs.close()
    envs.close()
    calls: dict[str, Callable[[], Any]] = {
        "reset": envs.reset,
        "step": lambda: envs.step(_ZEROS),
        "send": lambda: envs.send(_ZEROS),
        "recv": envs.recv,
        "render": envs.render,
        "as_sb3": envs.as_sb3,
    }
    for name, call in calls.items():
        closed = "expected open environments, found that close() was called; make new ones"
        assert _error_text(call) == f"EnvironmentClosed: {name}: {closed}"


def test_step_of_an_ended_episode_when_autoreset_is_disabled() -> None:
    """The text has the indices of the environments that were not reset."""
    refused = (
        "InvalidArgument: expected no ended episode at a step with autoreset disabled, found environments {}; "
        "nothing was sent; reset(options={{'reset_mask': mask}}) starts their next"
    )
    envs = tandem.make_vec("Hopper-v5", 2, autoreset_mode="Disabled", options=tandem.TaskOptions(max_episode_steps=1))
    envs.reset(seed=0)
    envs.step(_ZEROS)
    assert _error_text(lambda: envs.step(_ZEROS)) == refused.format([0, 1])
    envs.reset(options={"reset_mask": _MASK})
    assert _error_text(lambda: envs.step(_ZEROS)) == refused.format([1])
    envs.reset(options={"reset_mask": ~_MASK})
    envs.step(_ZEROS)
    envs.close()


@pytest.mark.parametrize(
    ("name", "arguments", "instead"),
    [
        ("call", ["set_wind"], "services"),
        ("get_attr", ["gravity"], "np_random_seed"),
        ("set_attr", ["g", 3], "make_vec"),
    ],
)
def test_calls_for_python_objects(hoppers: Envs, name: str, arguments: list[Any], instead: str) -> None:
    """The engine has no Python objects; the text names the alternative."""
    text = _error_text(lambda: getattr(hoppers, name)(*arguments))
    assert text.startswith(f"Unsupported: {name}('{arguments[0]}'): ") and instead in text, text


@pytest.mark.parametrize("client", [None, "tandem"])
def test_environments_of_an_invalid_client(client: Any) -> None:
    """The argument is None, or an engine's name."""
    text = f"InvalidArgument: client: expected a tandem.SharedMemoryClient, found {client!r}"
    assert _error_text(lambda: tandem.SharedMemoryVectorEnv(client)) == text


def test_render_without_a_render_mode(hoppers: Envs) -> None:
    """`render` warns and returns None, as Gymnasium's own environments do."""
    with pytest.warns(UserWarning, match='make the environments with render_mode="rgb_array"'):
        assert hoppers.render() is None
