"""States of environments in Python: saved, loaded, damaged, and in checkpoints."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem import checkpoint
from tandem.environments.sealed_state import PYTHON, sealed, unsealed
from tandem.testing.engines import watchdog  # noqa: F401, the fixture

_ENVS = 4
_TASKS = "CartPole-v1 Pendulum-v1 Hopper-v5 Taxi-v4 Blackjack-v1 Acrobot-v1".split()


def _made(task: Any, mode: str = "NextStep", num_workers: int = 2) -> tandem.vector.WorkerVectorEnv:
    envs = tandem.make_vec(task, _ENVS, backend="python", autoreset_mode=mode, num_workers=num_workers)
    assert isinstance(envs, tandem.vector.WorkerVectorEnv)
    envs.reset(seed=1)
    envs.action_space.seed(3)
    return envs


def _same(one: Any, other: Any) -> bool:
    """Whether results are equal, bit for bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if one is None or other is None:
        return one is other
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype == object:
        return all(map(_same, one.ravel().tolist(), other.ravel().tolist()))
    return bool(one.tobytes() == other.tobytes())


def _run(envs: Any, actions: list[Any]) -> list[Any]:
    return [envs.step(action) for action in actions]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("task", _TASKS)
def test_the_future_of_a_state_is_the_same(task: str, mode: str) -> None:
    """In the same environments, in others, and from an episode that has just ended."""
    with closing(_made(task, mode)) as envs, closing(_made(task, mode, num_workers=3)) as others:
        last: Any = envs.reset(seed=1)
        for step in range(100):
            last = envs.step(envs.action_space.sample())
            if step > 9 and (last[2] | last[3]).any():
                break
        states = envs.save_state()
        actions = [envs.action_space.sample() for _ in range(60)]
        future = _run(envs, actions)
        obs, _ = envs.load_state(states)
        assert _same(obs, last[0])
        assert _same(_run(envs, actions), future)
        others.load_state(states)
        assert _same(_run(others, actions), future)


def test_copies_and_other_rows() -> None:
    """One state into all environments: equal actions, equal futures; a state in another row goes on there."""
    with closing(_made("Hopper-v5")) as envs:
        for _ in range(5):
            envs.step(envs.action_space.sample())
        states = envs.save_state()
        envs.load_state([states[2]] * _ENVS)
        for _ in range(20):
            obs = envs.step(np.repeat(envs.single_action_space.sample()[None], _ENVS, axis=0))[0]
            assert all(_same(row, obs[0]) for row in obs)
        obs, _ = envs.load_state([states[3], states[0]], env_ids=[0, 3])
        assert obs.shape[0] == 2
        (again,) = envs.save_state([3])
        envs.load_state([states[0]], env_ids=[1])
        assert (
            _same(envs.step(np.zeros((_ENVS, 3), np.float32))[0][[1]], envs.step(np.zeros((_ENVS, 3)))[0][[1]]) is False
        )
        envs.load_state([again, again], env_ids=[1, 3])
        obs = envs.step(np.zeros((_ENVS, 3), np.float32))[0]
        assert _same(obs[1], obs[3])


class Held(gymnasium.Env[Any, Any]):
    """Has what cannot be pickled."""

    observation_space = spaces.Box(0, 1e6, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, own: bool = False) -> None:
        """With `own` it saves itself."""
        self.count, self.device = 0, None if own else threading.Lock()
        if own:
            self.get_state, self.set_state = lambda: self.count, self._set

    def _set(self, count: int) -> None:
        self.count = count

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the count to 0."""
        self.count = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Counts."""
        self.count += 1
        return np.full(1, float(self.count)), 1.0, False, False, {"count": self.count}


def test_what_cannot_be_saved_is_named() -> None:
    """Attribute and type; an environment with methods of its own saves itself."""
    with closing(_made(Held)) as envs, pytest.raises(tandem.Unsupported, match=r"Held\.device, a _thread\.lock"):
        envs.save_state()
    with closing(_made(lambda: gymnasium.wrappers.TimeLimit(Held(own=True), 9))) as envs:
        envs.step([0] * _ENVS)
        states = envs.save_state()
        envs.step([0] * _ENVS)
        obs, infos = envs.load_state(states)
        assert obs[:, 0].tolist() == [1] * _ENVS and infos["count"].tolist() == [1] * _ENVS
        truncated = [bool(envs.step([0] * _ENVS)[3].all()) for _ in range(8)]
        assert truncated == [False] * 7 + [True]  # the wrapper's counter, too


def test_refused_states_change_nothing() -> None:
    """Damaged bytes, another task's, a newer version's, another number of them."""
    with closing(_made("CartPole-v1")) as envs, closing(_made("Pendulum-v1")) as others:
        states = envs.save_state()
        good, chance = states[1], random.Random(7)
        wrong: list[tuple[Any, type[Exception]]] = [
            (good[:-1], tandem.InvalidArgument),
            (b"", tandem.InvalidArgument),
            (7, tandem.InvalidArgument),
            (others.save_state()[0], tandem.LayoutMismatch),
            (good[:4] + b"\2" + good[5:], tandem.LayoutMismatch),
        ]
        for _ in range(200):
            at = chance.randrange(len(good))
            flipped = bytearray(good)
            flipped[at] ^= 1 << chance.randrange(8)
            wrong.append((bytes(flipped), tandem.TandemError))
        actions = [envs.action_space.sample() for _ in range(5)]
        future = _run(envs, actions)
        envs.load_state(states)
        for state, kind in wrong:
            with pytest.raises(kind):
                envs.load_state([states[0], state, *states[2:]])
        mark = int.from_bytes(good[8:16], "little")
        with pytest.raises(tandem.EnvFailed, match="zlib"):  # behind a valid checksum
            envs.load_state([states[0], sealed(PYTHON, mark, b"nonsense"), *states[2:]])
        with pytest.raises(tandem.InvalidArgument, match="expected 4, one for each"):
            envs.load_state(states[:3])
        assert _same(_run(envs, actions), future)
        envs.send(actions[0])
        with pytest.raises(tandem.StepPending):
            envs.save_state()
        envs.load_state(states)  # drops the step, as a reset does
        assert _same(_run(envs, actions), future)


def test_a_failed_environment_goes_on() -> None:
    """As after a reset."""

    class Fails(Held):
        def step(self, action: Any) -> Any:
            if action == 1:
                raise RuntimeError("failed")
            return super().step(action)

    with closing(_made(lambda: Fails(own=True))) as envs:
        envs.step([0] * _ENVS)
        states = envs.save_state()
        with pytest.raises(tandem.EnvFailed):
            envs.step([0, 1, 0, 0])
        assert envs.load_state(states)[0][:, 0].tolist() == [1] * _ENVS
        assert envs.step([0] * _ENVS)[0][:, 0].tolist() == [2] * _ENVS


def test_a_checkpoint_continues_generators_and_parts(tmp_path: Path) -> None:
    """The same numbers follow; damaged files are refused, and a full disk keeps the earlier one."""
    path = tmp_path / "checkpoint"
    with closing(_made("CartPole-v1")) as envs:
        checkpoint.save(path, gymnasium.wrappers.vector.RecordEpisodeStatistics(envs), update=3, weights=np.arange(4))
        drawn = np.random.random(), random.random(), envs.step([0] * _ENVS)
        parts = checkpoint.load(path, envs)
        assert parts["update"] == 3 and _same(parts["weights"], np.arange(4)) and parts["obs"].shape == (_ENVS, 4)
        assert _same(drawn, (np.random.random(), random.random(), envs.step([0] * _ENVS)))
        with pytest.raises(tandem.InvalidArgument, match="can be pickled"):
            checkpoint.save(path, envs, part=lambda: 0)
    with pytest.raises(tandem.SystemCallFailed, match="No such file"):
        checkpoint.save(tmp_path / "none" / "x")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(tandem.InvalidArgument, match="bytes behind the header"):
        checkpoint.load(path)
    assert list(tmp_path.iterdir()) == [path]


_WRITER = """
import sys
from tandem import checkpoint
for number in range(1_000_000):
    checkpoint.save(sys.argv[1], number=number, filling=b"x" * 200_000)
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """SIGKILL at 20 moments: the file has the last number that was reported, or the next."""
    path = tmp_path / "checkpoint"
    for moment in range(20):
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", textwrap.dedent(_WRITER), str(path)]
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(1 + moment % 4):
                reported = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            left = [int(line) for line in writer.stdout.read().splitlines()]
        last = max([reported, *left])
        assert checkpoint.load(path)["number"] in (last, last + 1)


def test_the_header_has_each_fact() -> None:
    """A fingerprint and a kind, before the payload is used."""
    state = sealed(PYTHON, 5, b"payload")
    assert unsealed("state", state, PYTHON, 5, "x") == b"payload"
    with pytest.raises(tandem.LayoutMismatch, match="expected a state of CartPole"):
        unsealed("state", state, PYTHON, 6, "CartPole")
    with pytest.raises(tandem.LayoutMismatch, match="expected a checkpoint, found an environment in Python"):
        unsealed("state", state, 3, 5, "x")
