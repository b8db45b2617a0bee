"""`call`, `get_attr` and `render` of environments in worker processes, and what they hold open."""

import os
import re
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture

NUM_ENVS = 4
_ACTIONS = np.zeros(NUM_ENVS, np.int64)
_ENDS_SECS = 20.0


class Called(gymnasium.Env[Any, Any]):
    """Has a method for `call`; its observation is the number of steps since the reset."""

    observation_space = spaces.Box(0, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the number of steps to 0."""
        self.steps = 0
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Counts."""
        self.steps += 1
        return np.full(2, float(self.steps)), 1.0, False, False, {}

    def ask(self, secs: float = 0.0, dies: bool = False, raises: str = "", exits: int = 0, file: str = "") -> int:
        """Waits, also for a file; dies, exits, or raises an exception with this text; returns the process's number."""
        time.sleep(secs)
        while file and not os.path.exists(file):
            time.sleep(0.005)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if raises:
            raise ValueError(raises)
        if exits:
            sys.exit(exits)
        return os.getpid()


def _started(**options: Any) -> tandem.vector.WorkerVectorEnv:
    engine = tandem.WorkerOptions(**{"timeout": 30, **options})
    envs = tandem.make_vec(Called, NUM_ENVS, num_workers=2, engine=engine)
    assert isinstance(envs, tandem.vector.WorkerVectorEnv)
    envs.reset(seed=1)
    return envs


def test_exceptions(tmp_path: Path) -> None:
    """A missing attribute is an AttributeError, too; threads may not call at the same time."""
    with closing(_started()) as envs:
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            envs.get_attr("nothing")
        with pytest.raises(tandem.EnvFailed, match="ValueError: the text"):
            envs.call("ask", raises="the text")
        with pytest.raises(tandem.EnvFailed, match="SystemExit: 3"):
            envs.call("ask", exits=3)
        file = tmp_path / "go"
        thread = threading.Thread(target=lambda: envs.call("ask", file=str(file)))
        thread.start()
        while not envs._workers.calls._in_call.locked():
            time.sleep(0.001)
        with pytest.raises(tandem.ConcurrentUse):
            envs.call("ask")
        file.touch()
        thread.join()
        assert len(envs.call("ask")) == NUM_ENVS


def test_calls_have_a_time_out_of_their_own() -> None:
    """A call may take longer than a step may."""
    with closing(_started(timeout=2.0, call_timeout=30.0)) as envs:
        assert len(set(envs.call("ask", secs=1.2))) == 2  # of two environments each
        assert envs.step(_ACTIONS)[0][:, 0].tolist() == [1.0] * NUM_ENVS


def test_a_call_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """StepTimeout has the stack and names the time-out. The worker stays in the call, as the next step's error says."""
    monkeypatch.setattr("tandem.workers.worker_pool._STACK_SECS", 30.0)
    envs = _started(timeout=2.0, call_timeout=1.0)
    with pytest.raises(tandem.StepTimeout) as caught:
        envs.call_chosen([1], "ask", secs=1000.0)
    text = str(caught.value)
    assert re.search(r"call\('ask'\): .* found none of worker 0 \(pid \d+, environments 0 to 1\)", text), text
    assert "WorkerOptions.call_timeout" in text and "in ask" in text
    assert tuple(caught.value.workers) == (0,)
    with pytest.raises(tandem.StepTimeout, match=r"not done: worker 0 \(pid .*\), calling environment 1 for .* s; "):
        envs.step(_ACTIONS)
    envs.close()


def test_answers_of_an_earlier_call_are_dropped() -> None:
    """After a time-out the next call gets its own answers."""
    with closing(_started(call_timeout=0.3)) as envs:
        with pytest.raises(tandem.StepTimeout):
            envs.call("ask", secs=0.5)
        deadline = time.monotonic() + _ENDS_SECS
        while time.monotonic() < deadline:
            try:
                assert envs.get_attr("steps") == (0,) * NUM_ENVS
                break
            except tandem.StepTimeout:
                pass
        else:
            pytest.fail("no answer")


def test_a_worker_that_dies_in_a_call() -> None:
    """PeerGone names call, worker, environment and signal, and says what to do; so do later calls."""
    envs = _started()
    found = r"worker 0 \(pid \d+, environments 0 to 1\), calling environment 1 for \d+\.\d\d s, was killed by SIGKILL"
    after = r"; WorkerOptions\(restart=True\) starts it again; close\(\) these environments and make new ones"
    with pytest.raises(tandem.PeerGone, match=rf"^call\('ask'\): expected .*, found that {found}{after}$"):
        envs.call_chosen([1], "ask", dies=True)
    with pytest.raises(tandem.PeerGone, match=rf"^call\('steps'\): expected .*, found that {found}{after}$"):
        envs.get_attr("steps")
    with pytest.raises(tandem.PeerGone, match=found):
        envs.step(_ACTIONS)
    envs.close()


def test_a_worker_that_dies_in_a_call_and_is_started_again() -> None:
    """The call raises PeerGone with the signal; the started worker serves steps and calls."""
    with closing(_started(restart=True)) as envs:
        found = r"worker 0 \(pid \d+, environments 0 to 1\), calling environment 1 for .* s, was killed by SIGKILL"
        with pytest.raises(tandem.PeerGone, match=rf"call\('ask'\): .* {found}; it was started again, .*: call again$"):
            envs.call_chosen([1], "ask", dies=True)
        assert envs.step(_ACTIONS)[3].tolist() == [True, True, False, False]
        assert len(set(envs.call("ask"))) == 2
        envs.step(_ACTIONS)


def test_a_supervisor_that_is_killed_before_a_call() -> None:
    """PeerGone says so."""
    envs = _started()
    envs._workers._process.kill()
    envs._workers._process.wait()
    with pytest.raises(tandem.PeerGone, match=r"call\('steps'\): .* the supervisor was killed by SIGKILL; close"):
        envs.get_attr("steps")
    envs.close()


def test_close_leaves_no_descriptor_open() -> None:
    """Although the closed environments still exist."""
    _started().close()  # imports what opens files
    before = sorted(os.listdir("/proc/self/fd"))
    envs = _started()
    envs.call("ask")
    assert len(os.listdir("/proc/self/fd")) > len(before)
    envs.close()
    assert sorted(os.listdir("/proc/self/fd")) == before
    envs.close()
    with pytest.raises(tandem.ClientClosed):
        envs.step(_ACTIONS)


def test_a_failed_start_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor's program is missing: EngineStartFailed names it."""
    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(tandem.EngineStartFailed, match="expected a process of '/nowhere/python', found none: "):
        tandem.make_vec(Called, NUM_ENVS, frames=(8, 6))
    assert sorted(os.listdir("/proc/self/fd")) == before
