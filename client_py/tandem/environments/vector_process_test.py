"""Environments of `make_vec` whose engine or trainer process is killed, stopped, forked or interrupted."""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.environments.restart import RestartingVectorEnv
from tandem.testing.engines import (  # noqa: F401, the fixtures
    EXIT,
    HANG,
    launch_trivial,
    nothing_left_behind,
    run_python,
    start_python,
    watchdog,
)

_MODES = [mode.value for mode in tandem.AutoresetMode]


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks that this process's engines have exited after each test, and that their files in /dev/shm are gone."""
    names, pids = [], []
    start = tandem.EngineProcess.__init__

    def noted(engine: tandem.EngineProcess, name: str, command: list[str]) -> None:
        names.append(name)
        start(engine, name, command)
        pids.append(engine.pid)

    monkeypatch.setattr(tandem.EngineProcess, "__init__", noted)
    yield
    assert [pid for pid in pids if _is_running(pid)] == []
    assert [path.name for path in Path("/dev/shm").iterdir() if any(name in path.name for name in names)] == []


def _zeros(envs: tandem.SharedMemoryVectorEnv) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros(envs.action_space.shape or (), np.float32)


def _kill(envs: tandem.SharedMemoryVectorEnv) -> None:
    """Kills the engine and waits for its death; a live engine may still answer."""
    pid = envs.client.engine_pid
    os.kill(pid, signal.SIGKILL)
    while _is_running(pid):
        time.sleep(0.001)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_engine_killed_between_and_during_calls_is_peer_gone() -> None:
    """Each call raises PeerGone, and `close` works."""
    for during in ("send", "recv", "reset", "stopped step", "stopped reset"):
        envs = tandem.make_vec("HalfCheetah-v5", num_envs=2)
        envs.reset(seed=0)
        if during == "recv" or "stopped" in during:
            os.kill(envs.client.engine_pid, signal.SIGSTOP)  # so that it does not answer before the kill
        if during == "recv":
            envs.send(_zeros(envs))
        if "stopped" in during:
            threading.Timer(0.1, _kill, [envs]).start()
        else:
            _kill(envs)
        with pytest.raises(tandem.PeerGone):
            if during == "recv":
                envs.recv()
            elif "reset" in during:
                envs.reset()
            else:
                envs.step(_zeros(envs))
        with pytest.raises(tandem.PeerGone):
            envs.reset()
        envs.close()


def test_engine_killed_before_close() -> None:
    """After `close`, or after collection of the environments, there is no engine process and no region."""
    envs = tandem.make_vec("HalfCheetah-v5")
    _kill(envs)
    envs.close()
    envs = tandem.make_vec("HalfCheetah-v5")
    os.kill(envs.client.engine_pid, signal.SIGSTOP)
    envs.close()
    envs = tandem.make_vec("HalfCheetah-v5")
    del envs


def test_engine_killed_during_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is killed between its launch and the client's attach."""

    def launch_and_kill(*arguments: Any, **options: Any) -> tandem.EngineProcess:
        engine = tandem.launch_engine(*arguments, **options)
        os.kill(engine.pid, signal.SIGKILL)
        return engine

    monkeypatch.setattr("tandem.environments.make_vec.launch_engine", launch_and_kill)
    with pytest.raises((tandem.NotReady, tandem.PeerGone, tandem.StepTimeout)):
        tandem.make_vec("HalfCheetah-v5", engine=tandem.EngineOptions(timeout=1.0))


_WORKERS = """
import multiprocessing, sys
import numpy as np, tandem

def work(seed, results):
    envs = tandem.make_vec("Hopper-v5", num_envs=2)
    obs, _ = envs.reset(seed=seed)
    for _ in range(50):
        obs = envs.step(np.zeros((2, 3), np.float32))[0]
    results.put((seed, float(obs.sum())))
    envs.close()

if __name__ == "__main__":
    own = tandem.make_vec("Hopper-v5", num_envs=2)
    own.reset(seed=1)
    context = multiprocessing.get_context(sys.argv[1])
    results = context.Queue()
    workers = [context.Process(target=work, args=(seed, results)) for seed in (1, 2)]
    for worker in workers:
        worker.start()
    sums = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    for _ in range(50):
        obs = own.step(np.zeros((2, 3), np.float32))[0]
    assert abs(sums[1] - obs.sum()) < 1e-9 and sums[2] != sums[1]
    own.close()
    print("fine")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_make_environments_of_their_own(tmp_path: Path, method: str) -> None:
    """Two worker processes make environments while the parent process has open ones, which still step."""
    program = tmp_path / "trainer.py"
    program.write_text(_WORKERS, encoding="utf-8")
    assert run_python(program, method).strip() == "fine"


def test_restart_truncates_every_environment(caplog: pytest.LogCaptureFixture) -> None:
    """Holds in each autoreset mode, for a death before and after `send`."""
    for mode in _MODES:
        for sent_before in (False, True):
            with caplog.at_level(logging.WARNING, "tandem"):
                _restart_once(mode, sent_before)
    assert sum("starting the engine" in record.message for record in caplog.records) == 6


def _restart_once(mode: str, sent_before: bool) -> None:
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=3, engine=tandem.EngineOptions(restart=True), autoreset_mode=mode)
    envs.reset(seed=0)
    seen = envs.step(_zeros(envs))[0]
    old_pid = envs.client.engine_pid
    if sent_before:
        os.kill(old_pid, signal.SIGSTOP)
        envs.send(_zeros(envs))
        _kill(envs)
    else:
        _kill(envs)
        envs.send(_zeros(envs))
    obs, rewards, terminations, truncations, infos = envs.recv()
    assert envs.client.engine_pid != old_pid
    assert rewards.tolist() == [0, 0, 0] and not terminations.any() and truncations.all()
    assert infos["engine_restarted"].all() and infos["_engine_restarted"].all()
    if mode == "SameStep":
        assert not np.array_equal(obs, seen)
        np.testing.assert_array_equal(np.stack(infos["final_obs"]), seen)
        assert infos["_final_obs"].all()
        assert infos["_x_position"].all()
    else:
        np.testing.assert_array_equal(obs, seen)
    if mode == "Disabled":
        with pytest.raises(tandem.InvalidArgument, match="reset_mask"):
            envs.step(_zeros(envs))
        reset, _ = envs.reset(options={"reset_mask": np.array([True, True, False])})
        assert not np.array_equal(reset[0], seen[0])
        np.testing.assert_array_equal(reset[2], envs.client.obs[2])
        with pytest.raises(tandem.InvalidArgument, match=r"\[2\]"):
            envs.step(_zeros(envs))
        envs.reset(options={"reset_mask": np.array([False, False, True])})
    if mode == "NextStep":
        obs, rewards, _, truncations, infos = envs.step(np.ones((3, 6), np.float32))
        assert rewards.tolist() == [0, 0, 0] and not truncations.any()
        assert np.abs(obs).max() < 1 and "x_velocity" not in infos  # the step was a reset
    _, _, terminations, truncations, infos = envs.step(_zeros(envs))
    assert not terminations.any() and not truncations.any()
    assert infos["_x_velocity"].all() and "engine_restarted" not in infos
    envs.reset(seed=0)
    np.testing.assert_array_equal(envs.step(_zeros(envs))[0], seen)
    envs.close()


class _Interrupts:
    """Raises KeyboardInterrupt once, before or after the wrapped call."""

    def __init__(self, call: Any, after: bool) -> None:
        self._call, self._after = call, after
        self.left = 1

    def __call__(self, *arguments: Any) -> Any:
        if self.left and not self._after:
            self.left -= 1
            raise KeyboardInterrupt
        result = self._call(*arguments)
        if self.left:
            self.left -= 1
            raise KeyboardInterrupt
        return result


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("what", ["launch", "reconnect"])
@pytest.mark.parametrize("then", ["step", "reset", "recv"])
def test_the_next_call_completes_an_interrupted_restart(
    monkeypatch: pytest.MonkeyPatch, then: str, what: str, after: bool, mode: str
) -> None:
    """Exactly one result reports `engine_restarted`, and the new engine is not restarted."""
    launches = []

    def launch(name: str | None = None) -> tandem.EngineProcess:
        launches.append(name)
        return launch_trivial(name=name)

    engine = launch()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode(mode))
    relaunch = _Interrupts(launch, after) if what == "launch" else launch
    if what == "reconnect":
        monkeypatch.setattr(client, "reconnect", _Interrupts(client.reconnect, after))
    envs = RestartingVectorEnv(client, engine=engine, relaunch=relaunch)
    envs.reset()
    zeros = np.zeros((2, 6), np.float32)
    envs.step(zeros)
    _kill(envs)
    with pytest.raises(KeyboardInterrupt):
        envs.step(zeros)
    if then == "reset":
        infos = envs.reset()[1]
    else:
        _, rewards, _, truncations, infos = envs.recv() if then == "recv" else envs.step(zeros)
        assert truncations.all() and not rewards.any()
    assert infos["engine_restarted"].all()
    pid, started = client.engine_pid, len(launches)
    if mode == "Disabled" and then != "reset":
        envs.reset()
    for _ in range(3):
        _, _, _, truncations, infos = envs.step(zeros)
        assert not truncations.any() and "engine_restarted" not in infos
    assert (client.engine_pid, len(launches)) == (pid, started)
    envs.close()


def test_reset_restarts_an_engine_that_dies_several_times() -> None:
    """Two new engines die before `reset` attaches to the third."""
    dying = 2

    def launch(name: str | None = None) -> tandem.EngineProcess:
        nonlocal dying
        engine = launch_trivial(name=name)
        if dying:
            dying -= 1
            os.kill(engine.pid, signal.SIGKILL)
        return engine

    engine = launch_trivial()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    envs = RestartingVectorEnv(client, engine=engine, relaunch=launch, start_timeout=1)
    envs.reset()
    _kill(envs)
    assert envs.reset()[1]["engine_restarted"].all()
    assert dying == 0
    envs.step(np.zeros((2, 6), np.float32))
    envs.close()


def test_an_engine_of_another_task_is_refused() -> None:
    """Each call is LayoutMismatch, and the engine that it launched has exited."""
    engine = launch_trivial(obs_size=4)
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    launched = []

    def launch(name: str) -> tandem.EngineProcess:
        launched.append(launch_trivial(name=name, obs_size=5))
        return launched[-1]

    envs = RestartingVectorEnv(client, engine=engine, relaunch=launch)
    envs.reset()
    _kill(envs)
    for call in (envs.reset, lambda: envs.step(np.zeros((2, 6), np.float32))):
        with pytest.raises(tandem.LayoutMismatch):
            call()
        assert launched[-1].poll() is not None
    envs.close()


def test_a_forked_child_writes_nothing_into_the_region() -> None:
    """The child's step raises ForkedChild and sets no flag in `resets`."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2, engine=tandem.EngineOptions(restart=True))
    envs.reset()
    _kill(envs)
    envs.step(_zeros(envs))  # the next step resets all environments
    child = os.fork()
    if child == 0:
        try:
            envs.step(_zeros(envs))
        except tandem.ForkedChild:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not envs.client.resets.any()
    envs.step(_zeros(envs))
    envs.close()


def test_restart_in_a_reset_resets_every_environment() -> None:
    """The reset uses the given seed for all environments, also those outside the mask."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=3, engine=tandem.EngineOptions(restart=True))
    first, _ = envs.reset(seed=5)
    _kill(envs)
    obs, infos = envs.reset(seed=5, options={"reset_mask": np.array([True, False, False])})
    np.testing.assert_array_equal(obs, first)
    assert infos["engine_restarted"].all() and infos["_x_position"].all()
    envs.close()


def test_an_engine_that_keeps_dying_is_not_started_for_ever() -> None:
    """After three restarts in a row the call raises PeerGone."""
    launches = []

    def launch(name: str | None = None) -> tandem.EngineProcess:
        launches.append(name)
        return launch_trivial(name=name)

    engine = launch()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.SAME_STEP)
    envs = RestartingVectorEnv(client, engine=engine, relaunch=launch)
    envs.reset()
    actions = np.zeros((2, 6), np.float32)
    actions[0, 0] = EXIT
    with pytest.raises(tandem.PeerGone, match="times in a row"):
        for _ in range(10):
            envs.step(actions)
    assert len(launches) == 4
    envs.close()


def test_without_restart_a_death_is_an_error_with_the_engines_last_output() -> None:
    """PeerGone advises to make new environments, which is possible, and not to reconnect."""
    engine = launch_trivial()
    envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name), engine=engine)
    envs.reset()
    actions = np.zeros((2, 6), np.float32)
    actions[0, 0] = EXIT
    with pytest.raises(tandem.PeerGone, match=f"{engine.pid}.*make new ones") as death:
        envs.step(actions)
    assert "reconnect" not in str(death.value)  # environments have no such method
    envs.close()


def test_a_stuck_engine_is_a_time_out_also_with_restart() -> None:
    """A stuck engine may still answer, so the environments do not restart it."""
    engine = launch_trivial()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    envs = RestartingVectorEnv(client, engine=engine, relaunch=lambda name: launch_trivial(name=name))
    envs.reset()
    actions = np.zeros((2, 6), np.float32)
    actions[0, 0] = HANG
    envs.send(actions)
    with pytest.raises(tandem.StepTimeout):
        envs.recv(1)
    _kill(envs)
    assert envs.recv()[3].all()
    envs.close()


def test_a_second_thread_is_refused_and_closes_nothing() -> None:
    """The second thread gets ConcurrentUse; the first thread's call ends with its own time-out."""
    engine = launch_trivial()
    client = tandem.SharedMemoryClient(engine.name, autoreset_mode=tandem.AutoresetMode.NEXT_STEP)
    envs = tandem.SharedMemoryVectorEnv(client, engine=engine)
    envs.reset()
    actions = np.zeros((2, 6), np.float32)
    actions[0, 0] = HANG
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            envs.send(actions)
            envs.recv(5)
        except tandem.TandemError as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not client.pending:
        time.sleep(0.001)
    with pytest.raises(tandem.ConcurrentUse):
        while True:  # until the waiter waits
            with contextlib.suppress(tandem.StepPending):
                envs.step(np.zeros((2, 6), np.float32))
    with pytest.raises(tandem.ConcurrentUse):
        envs.close()
    assert engine.poll() is None
    waiter.join()
    assert [type(error) for error in raised] == [tandem.StepTimeout]
    envs.close()


def test_an_interrupted_close_leaves_closed_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call is EnvironmentClosed, and a second `close` ends the engine."""
    envs = tandem.make_vec("CartPole-v1", 2)
    envs.reset()
    engine = envs._engine
    assert engine is not None
    monkeypatch.setattr(engine, "close", _Interrupts(engine.close, after=False))
    with pytest.raises(KeyboardInterrupt):
        envs.close()
    with pytest.raises(tandem.EnvironmentClosed, match=r"^step: .* close\(\) was called"):
        envs.step(np.zeros(2, np.int64))
    envs.close()
    assert engine.poll() == 0
