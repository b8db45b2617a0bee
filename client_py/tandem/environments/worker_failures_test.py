"""Environments in Python, in worker processes, when something fails: exceptions, deaths, freezes, interrupts."""

import os
import re
import signal
import sys
import textwrap
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
from tandem.testing.engines import start_python, watchdog  # noqa: F401, the fixture
from tandem.workers.processes import WorkerProcesses

NUM_ENVS, NUM_WORKERS = 6, 3
GOOD, RAISE, DIE, HANG, FREEZE, EXIT, SHAPE, PRINT, FORK = range(9)
_ENDS_SECS = 20.0


class Faulty(gymnasium.Env[Any, Any]):
    """Does what the action says; its observation is the number of steps since the reset."""

    observation_space = spaces.Box(0, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(9)

    def __init__(self) -> None:
        """Makes an environment."""
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the number of steps to 0."""
        self.steps = 0
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Acts."""
        self.steps += 1
        if action == RAISE:
            raise ValueError("the joint broke")
        if action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        while action == HANG:
            time.sleep(0.01)
        if action == FREEZE:
            os.kill(os.getpid(), signal.SIGSTOP)
        if action == EXIT:
            sys.exit(3)
        if action == PRINT:
            print("a line of an environment")
        if action == FORK and os.fork() == 0:
            os._exit(0)
        return np.full(3 if action == SHAPE else 2, float(self.steps)), 1.0, False, False, {}


_RESTARTS = tandem.WorkerOptions(restart=True, timeout=30)


def _started(env: Any = Faulty, **options: Any) -> tandem.vector.WorkerVectorEnv:
    options.setdefault("engine", tandem.WorkerOptions(timeout=30))
    envs = tandem.make_vec(env, NUM_ENVS, num_workers=NUM_WORKERS, **options)
    assert isinstance(envs, tandem.vector.WorkerVectorEnv)
    envs.reset(seed=1)
    return envs


def _acting(env_id: int, action: int) -> Any:
    actions = np.zeros(NUM_ENVS, np.int64)
    actions[env_id] = action
    return actions


def _processes(envs: tandem.vector.WorkerVectorEnv) -> list[int]:
    workers: WorkerProcesses = envs._workers
    return [workers._process.pid, *(worker.pid for worker in workers._workers)]


def _await_ends(pids: list[int], region: str) -> None:
    """Waits until processes and region are gone."""
    deadline = time.monotonic() + _ENDS_SECS
    while (left := [pid for pid in pids if _lives(pid)]) or Path("/dev/shm", region).exists():
        assert time.monotonic() < deadline, (left, region)
        time.sleep(0.005)


def _state(pid: int) -> str:
    """Returns the letter of a process's state; "Z" also if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _lives(pid: int) -> bool:
    return _state(pid) != "Z"


def test_exception() -> None:
    """It becomes EnvFailed with worker, environment and traceback. The others are stepped; a reset ends that."""
    with closing(_started()) as envs:
        for _ in range(2):  # until its reset, each step reports the failure
            with pytest.raises(tandem.EnvFailed) as caught:
                envs.step(_acting(3, RAISE))
            text = str(caught.value)
            assert "environment 3 of worker 1" in text
            assert 'raise ValueError("the joint broke")' in text
            assert "Faulty" in text
        obs, _ = envs.reset(options={"reset_mask": np.arange(NUM_ENVS) == 3})
        assert obs[:, 0].tolist() == [2, 2, 2, 0, 2, 2]
        assert envs.step(_acting(0, GOOD))[0][:, 0].tolist() == [3, 3, 3, 1, 3, 3]


@pytest.mark.parametrize(
    ("action", "text"),
    [(EXIT, "SystemExit: 3"), (SHAPE, r"expected .*float64\[2\].*found .*float64\[3\]")],
    ids=["exit", "shape"],
)
def test_other_failures_of_an_environment(action: int, text: str) -> None:
    """They are reported as an exception is."""
    with closing(_started()) as envs, pytest.raises(tandem.EnvFailed, match=text):
        envs.step(_acting(2, action))


@pytest.mark.parametrize("action", [PRINT, FORK], ids=["print", "fork"])
def test_environments_that_print_or_fork(action: int) -> None:
    """They work."""
    with closing(_started()) as envs:
        for _ in range(3):
            assert envs.step(np.full(NUM_ENVS, action))[1].tolist() == [1.0] * NUM_ENVS


@pytest.mark.parametrize("when", ["in a step", "between steps"])
def test_killed_worker(when: str) -> None:
    """PeerGone names the worker, its environments and the signal; nothing is left."""
    envs = _started()
    pids = _processes(envs)
    if when == "between steps":
        os.kill(pids[2], signal.SIGKILL)
    with pytest.raises(
        tandem.PeerGone, match=rf"worker 1 \(pid {pids[2]}, environments 2 to 3\).*was killed by SIGKILL"
    ):
        for _ in range(10000):
            envs.step(_acting(3, DIE))
    with pytest.raises(tandem.PeerGone):
        envs.step(_acting(0, GOOD))
    envs.close()
    _await_ends(pids, envs.client.name)


@pytest.mark.parametrize(
    ("action", "text"),
    [(HANG, r"File .*worker_failures_test.py.*in step"), (FREEZE, r"its state is 'T \(stopped\)'")],
    ids=["hang", "freeze"],
)
def test_worker_that_does_not_answer(action: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """StepTimeout has its stack, or its state. close() ends it."""
    monkeypatch.setattr("tandem.workers.worker_pool._STACK_SECS", 30.0)
    envs = _started()
    pids = _processes(envs)
    envs.send(_acting(4, action))
    with pytest.raises(tandem.StepTimeout) as caught:
        envs.recv(1.0)
    while "worker 1 (pid" in str(caught.value) or "stepping environment 4" not in str(caught.value):
        # A worker had no core yet.
        with pytest.raises(tandem.StepTimeout) as caught:
            envs.recv(1.0)
    assert "worker 2 (pid" in str(caught.value)
    assert "stepping environment 4" in str(caught.value)
    assert "worker 1 (pid" not in str(caught.value)
    assert re.search(text, str(caught.value)), str(caught.value)
    envs.close()
    _await_ends(pids, envs.client.name)


def test_worker_that_is_continued() -> None:
    """The step is still pending, and its results are complete."""
    with closing(_started()) as envs:
        worker = _processes(envs)[3]
        envs.send(_acting(4, FREEZE))
        while _state(worker) != "T":
            time.sleep(0.001)
        with pytest.raises(tandem.StepTimeout):
            envs.recv(0.2)
        os.kill(worker, signal.SIGCONT)
        assert envs.recv()[0][:, 0].tolist() == [1.0] * NUM_ENVS
        assert envs.step(_acting(0, GOOD))[0][:, 0].tolist() == [2.0] * NUM_ENVS


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_restarted_worker(mode: str) -> None:
    """Its episodes are truncated and marked; the others go on."""
    with closing(_started(engine=_RESTARTS, autoreset_mode=mode)) as envs:
        envs.step(_acting(0, GOOD))
        before = _processes(envs)[2]
        mine = [2, 3]
        for _ in range(2):
            obs, rewards, terminations, truncations, infos = envs.step(_acting(3, DIE))
            assert np.flatnonzero(truncations).tolist() == mine
            assert rewards.tolist() == [1, 1, 0, 0, 1, 1]
            assert not terminations.any()
            if mode == "SameStep":
                assert infos["final_info"]["_worker_restarted"].tolist() == truncations.tolist()
                assert "worker_restarted" not in infos and infos["_final_obs"].tolist() == truncations.tolist()
                assert obs[2, 0] == 0
                continue
            assert infos["_worker_restarted"].tolist() == truncations.tolist()
            if mode == "Disabled":
                obs, _ = envs.reset(options={"reset_mask": truncations})
            else:
                obs = envs.step(_acting(0, GOOD))[0]
            assert obs[mine, 0].tolist() == [0, 0]
        assert envs.step(_acting(0, GOOD))[0][mine, 0].tolist() == [1, 1]
        assert envs.get_attr("steps")[2:4] == (1, 1)
        assert _processes(envs)[2] != before


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_truncated_by_an_exception(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The episode ends with the error in its infos; a reset follows; the traceback is printed once."""
    engine = tandem.WorkerOptions(timeout=30, on_error="truncate")
    with closing(_started(engine=engine, autoreset_mode=mode)) as envs:
        envs.step(_acting(0, GOOD))
        for _ in range(2):
            obs, rewards, terminations, truncations, infos = envs.step(_acting(3, RAISE))
            assert truncations.tolist() == [False, False, False, True, False, False]
            assert rewards.tolist() == [1, 1, 1, 0, 1, 1] and not terminations.any()
            last = infos["final_info"] if mode == "SameStep" else infos
            assert last["_env_failed"].tolist() == truncations.tolist()
            assert last["env_error"][3] == "ValueError: the joint broke"
            if mode == "SameStep":
                assert infos["final_obs"][3][0] == 1 and obs[3, 0] == 0
            else:
                assert obs[3, 0] == 1  # the last one
            if mode == "Disabled":
                envs.reset(options={"reset_mask": truncations})
            elif mode == "NextStep":
                assert envs.step(_acting(0, GOOD))[0][3, 0] == 0
            assert envs.step(_acting(0, GOOD))[0][3, 0] == 1
        with pytest.raises(tandem.EnvFailed, match="SystemExit"):
            envs.step(_acting(2, EXIT))  # not an Exception
    told = capfd.readouterr().err
    assert told.count("told once") == 1 and "in environment 3, " in told


def test_worker_that_dies_again_and_again() -> None:
    """It is started five times in a minute; the sixth death ends all."""
    restarts = 0
    with closing(_started(engine=_RESTARTS, autoreset_mode="SameStep")) as envs:
        with pytest.raises(tandem.PeerGone, match="it was started again 5 times in the last 60 s") as caught:
            while True:
                restarts += int(envs.step(_acting(3, DIE))[3].any())
        assert restarts == 5
        assert (caught.value.worker, caught.value.env_ids) == (1, (2, 3))
        with pytest.raises(tandem.PeerGone):
            envs.reset()


def test_options_of_each_environment_that_one_refuses() -> None:
    """The others are reset."""

    class Picky(Faulty):
        """Refuses options."""

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            """Resets, or raises an exception."""
            if options is not None:
                raise ValueError("no options for me")
            return super().reset(seed=seed)

    with closing(tandem.make_vec(Picky, 4, num_workers=2)) as envs:
        envs.reset()
        envs.step(np.zeros(4, int))
        with pytest.raises(tandem.EnvFailed, match="no options for me"):
            envs.reset_each([{"level": 1}, None, None, None])
        assert envs.get_attr("steps") == (1, 0, 0, 0)


def test_calls_after_many_restarts() -> None:
    """The trainer takes the channels of new processes when it calls; until then steps go on."""
    with closing(_started(engine=_RESTARTS)) as envs:
        for _ in range(4):
            for env_id in (0, 2, 4):
                envs.step(_acting(env_id, DIE))
        assert len(envs.get_attr("steps")) == NUM_ENVS


class _OddError(Exception):
    def add_note(self, note: str) -> None:
        raise RuntimeError(note)


class Odd(Faulty):
    """Raises an exception whose text UTF-8 cannot have, or whose methods raise exceptions."""

    def step(self, action: Any) -> Any:
        """Raises it."""
        if action == RAISE:
            raise ValueError("a lone \udcff")
        if action == DIE:
            raise _OddError
        return super().step(action)


@pytest.mark.parametrize(
    ("action", "text"),
    [(RAISE, r"ValueError: a lone \\udcff"), (DIE, "_OddError, of which no traceback can be made: RuntimeError")],
    ids=["surrogate", "odd"],
)
def test_odd_exceptions(action: int, text: str) -> None:
    """They are EnvFailed, too."""
    with closing(_started(Odd)) as envs, pytest.raises(tandem.EnvFailed, match=text):
        envs.step(_acting(1, action))


def test_reset_of_some_that_fails() -> None:
    """The next step is of all environments."""
    with closing(_started()) as envs:
        with pytest.raises(tandem.InvalidArgument, match="options: expected what can be pickled"):
            envs.reset(options={"lock": threading.Lock()}, env_ids=[2])
        envs.send(_acting(0, GOOD))
        assert envs.recv()[1].shape == (NUM_ENVS,)


def test_killed_supervisor() -> None:
    """PeerGone; no process and no region is left after close()."""
    envs = _started()
    pids = _processes(envs)
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(tandem.PeerGone):
        for _ in range(10000):
            envs.step(_acting(0, GOOD))
    envs.close()
    _await_ends(pids, envs.client.name)


def test_each_environment_is_closed(tmp_path: Path) -> None:
    """close() lets the workers close their environments, whatever the supervisor is doing."""

    class Closes(Faulty):
        def close(self) -> None:
            Path(tmp_path, f"{os.getpid()}-{id(self)}").touch()

    for _ in range(8):
        envs = tandem.make_vec(Closes, 4, num_workers=2)
        envs.reset(seed=1)
        envs.step(np.zeros(4, int))
        envs.close()
        closed = list(tmp_path.iterdir())
        assert len(closed) == 4
        for each in closed:
            each.unlink()


_TRAINER = """
    import numpy, signal, tandem
    from tandem.environments.worker_failures_test import Faulty
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    envs = tandem.make_vec(Faulty, 6, num_workers=3)
    envs.reset(seed=1)
    workers = envs._workers
    try:
        print(envs.client.name, workers._process.pid, *(worker.pid for worker in workers._workers), flush=True)
        while True:
            envs.step(numpy.zeros(6, int))
    except KeyboardInterrupt:
        print("interrupted", envs.client.pending, flush=True)
        envs.close()
"""


@pytest.mark.parametrize("stopped", ["none", "workers", "supervisor"])
def test_killed_trainer(stopped: str) -> None:
    """Supervisor, workers and region are gone, also if some of them are stopped."""
    trainer = start_python(textwrap.dedent(_TRAINER))
    assert trainer.stdout is not None
    region, *pids = trainer.stdout.readline().split()
    chosen = {"none": [], "workers": pids[1:], "supervisor": pids[:1]}[stopped]
    for pid in chosen:
        os.kill(int(pid), signal.SIGSTOP)
    trainer.kill()
    trainer.wait()
    _await_ends([int(pid) for pid in pids], region)


def test_interrupted_trainer() -> None:
    """Ctrl-C reaches the trainer alone, and close() ends all."""
    trainer = start_python(textwrap.dedent(_TRAINER))
    assert trainer.stdout is not None
    region, *pids = trainer.stdout.readline().split()
    trainer.send_signal(signal.SIGINT)
    assert trainer.stdout.readline().startswith("interrupted")
    assert trainer.wait(_ENDS_SECS) == 0
    _await_ends([int(pid) for pid in pids], region)
