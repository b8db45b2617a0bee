"""RPCs and attendants of environments in Python: the supervisor answers them beside the workers."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import tandem
from tandem._native import MethodId
from tandem.services import SimulationContract
from tandem.services.scene import SimulationMode
from tandem.testing.engines import start_python, watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv
from tools.testing import pytest_main

_NUM_ENVS = 4
_ACTIONS = np.zeros(_NUM_ENVS, np.int64)


@pytest.fixture
def envs() -> Iterator[Any]:
    """Starts environments in two workers, and resets them."""
    with closing(tandem.make_vec(ScriptedEnv, _NUM_ENVS, num_workers=2)) as made:
        made.reset(seed=0)
        yield made


@pytest.fixture
def panel(envs: Any) -> Iterator[tandem.Attendant]:
    """Attaches an attendant."""
    with tandem.Attendant(envs.client.name, label="panel", timeout=60) as attached:
        yield attached


def test_the_services_are_those_that_need_no_engine(envs: Any, panel: tandem.Attendant) -> None:
    """The client and an attendant see the same: the schema, and the pause."""
    for caller in (envs.client, panel):
        enabled = {name: info.methods for name, info in caller.services().items() if info.enabled}
        assert set(enabled) == {"agent", "scene"}
        assert {MethodId.SetPaused, MethodId.GetSimulationMode} <= enabled["scene"]
        assert caller.get_schema().observation_size == 2
        assert not caller.scene.paused()


@pytest.mark.parametrize(
    "call",
    [
        lambda caller: caller.camera.list(),
        lambda caller: caller.scene.entities(),
        lambda caller: caller.mujoco.joint_state(),
        lambda caller: caller.telemetry.schema(),
        lambda caller: caller.scene.set_simulation_mode(SimulationMode.REALTIME),
    ],
)
def test_other_calls_are_refused_by_name_at_once(
    envs: Any, panel: tandem.Attendant, call: Callable[[Any], Any]
) -> None:
    """No caller waits for its deadline, also while a step is pending."""
    for pending in (False, True):
        if pending:
            envs.send(_ACTIONS)
        for caller in (envs.client, panel):
            with pytest.raises(tandem.Unsupported):
                call(caller)
    envs.recv()


def test_a_client_cannot_step_or_reset_by_rpcs(envs: Any) -> None:
    """The errors name the reason."""
    with pytest.raises(tandem.Unsupported, match="randomises"):
        envs.client.agent.set_contract(SimulationContract(mass_scale_range=(0.8, 1.2)))
    envs.client.scene.pause()
    with pytest.raises(tandem.Unsupported, match="fields"):
        envs.client.scene.single_step()
    envs.client.scene.resume()
    envs.step(_ACTIONS)


def test_steps_wait_for_the_end_of_an_attendants_pause(envs: Any, panel: tandem.Attendant) -> None:
    """The client's deadline, far earlier than the pause's end, does not run; calls of environments work meanwhile."""
    envs.step(_ACTIONS)
    panel.scene.pause()
    assert envs.client.scene.paused()
    assert envs.get_attr("render_mode") == (None,) * _NUM_ENVS
    envs.send(_ACTIONS)
    with pytest.raises(tandem.StepTimeout):
        envs.client.recv(0)  # it polls once

    resumed = False

    def resume(*_: Any) -> None:  # runs inside recv
        nonlocal resumed
        panel.scene.resume()
        resumed = True

    before = signal.signal(signal.SIGALRM, resume)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        obs = envs.recv(0.005)[0]
    except tandem.StepTimeout:  # after the pause: the workers needed more than 5 ms
        assert resumed
        obs = envs.recv()[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert resumed
    assert obs[:, 0].tolist() == [2] * _NUM_ENVS


def test_the_pause_of_an_attendant_that_was_killed_ends(envs: Any) -> None:
    """The supervisor detects the death, and the step is done."""
    program = f"""
import tandem, time
panel = tandem.Attendant({envs.client.name!r}, timeout=60)
panel.scene.pause()
print("paused", flush=True)
time.sleep(1000)
"""
    process = start_python(program)
    assert process.stdout is not None and process.stdout.readline() == "paused\n", process.communicate()
    assert envs.client.scene.paused()
    process.kill()
    assert envs.step(_ACTIONS)[0][:, 0].tolist() == [1] * _NUM_ENVS
    process.communicate()
    assert not envs.client.scene.paused()


def test_a_pause_of_the_client_ends_with_the_client(envs: Any, panel: tandem.Attendant) -> None:
    """An attendant and its own pause stay."""
    envs.client.scene.pause()
    envs.send(_ACTIONS)
    with pytest.raises(tandem.StepTimeout):
        envs.recv(0.05)
    envs._client = envs.client.replaced(envs.client.autoreset_mode)
    assert not envs.client.scene.paused() and not panel.scene.paused()
    panel.scene.pause()
    envs._client = envs.client.replaced(envs.client.autoreset_mode)
    assert panel.scene.paused()
    panel.scene.resume()


def test_attendants_end_with_the_environments(envs: Any, panel: tandem.Attendant) -> None:
    """Their engine is the supervisor's process. Their next call gets PeerGone."""
    assert panel.engine_pid == envs.client.engine_pid != os.getpid()
    envs.close()
    with pytest.raises(tandem.PeerGone):
        panel.scene.paused()


if __name__ == "__main__":
    pytest_main.run(__file__)
