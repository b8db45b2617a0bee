"""Restarts of the engine that fail, are interrupted, or come after close."""

import logging
import os
import signal
from contextlib import closing

import numpy as np
import pytest

import tandem
from tandem.environments.restart import RestartingVectorEnv
from tandem.testing.engines import launch_trivial, nothing_left_behind, watchdog  # noqa: F401, the fixtures

_ZEROS = np.zeros((2, 6), np.float32)


def _kill(engine: tandem.EngineProcess) -> None:
    os.kill(engine.pid, signal.SIGKILL)
    os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("call", ["reset", "step", "send", "recv"])
def test_closed_environments_start_no_engine(call: str) -> None:
    """After `close`, each call is EnvironmentClosed and launches no engine, also if an earlier restart failed."""
    launches = []
    engine = launch_trivial()

    def failing(name: str) -> tandem.EngineProcess:
        launches.append(name)
        raise tandem.EngineStartFailed("no room")

    envs = RestartingVectorEnv(tandem.SharedMemoryClient(engine.name), engine=engine, relaunch=failing)
    envs.reset()
    _kill(engine)
    with pytest.raises(tandem.EngineStartFailed):
        envs.step(_ZEROS)
    envs.close()
    with pytest.raises(tandem.EnvironmentClosed, match=f"^{call}: "):
        getattr(envs, call)(*[_ZEROS] * (call in ("step", "send")))
    assert len(launches) == 1


def test_the_engine_of_an_interrupted_launch_is_waited_out() -> None:
    """The first engine of the interrupted launch still has the region's name; the restart retries until it exits."""
    engine = launch_trivial()
    launched: list[tandem.EngineProcess] = []

    def launch(name: str) -> tandem.EngineProcess:
        try:
            launched.append(launch_trivial(name=name))
        except tandem.AlreadyAttached:
            launched[0].close()
            raise
        if len(launched) == 1:
            raise KeyboardInterrupt
        return launched[-1]

    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    envs = RestartingVectorEnv(client, engine=engine, relaunch=launch)
    envs.reset()
    _kill(engine)
    with pytest.raises(KeyboardInterrupt):
        envs.step(_ZEROS)
    assert envs.step(_ZEROS)[3].all()
    assert client.engine_pid == launched[1].pid
    envs.close()


def test_the_log_asks_for_nothing_that_the_restart_does(caplog: pytest.LogCaptureFixture) -> None:
    """The log record has the cause of the death and the engine's last output, and no advice."""
    envs = tandem.make_vec("CartPole-v1", 2, engine=tandem.EngineOptions(restart=True))
    envs.reset()
    assert envs._engine is not None
    _kill(envs._engine)
    with caplog.at_level(logging.WARNING, "tandem"):
        envs.step(np.zeros(2, np.int64))
    (record,) = caplog.records
    assert "it died or was killed" in record.message and "client attached" in record.message
    assert "make new ones" not in record.message
    envs.close()


@pytest.mark.parametrize("pending", [False, True])
def test_a_load_starts_the_engine_again(pending: bool) -> None:
    """As a reset does; also in place of a step that was not received."""
    with closing(tandem.make_vec("Hopper-v5", 2, engine=tandem.EngineOptions(restart=True))) as envs:
        envs.reset(seed=1)
        actions = envs.action_space.sample()
        states = envs.save_state()
        future = envs.step(actions)[0]
        if pending:
            envs.send(actions)
        _kill(envs._engine)
        assert envs.load_state(states)[1]["engine_restarted"].all()
        assert np.array_equal(envs.step(actions)[0], future)
