"""States of environments in Python: saved, loaded, damaged, and in checkpoints."""

import os
import random
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import tandem
from tandem import checkpoint
from tandem.environments.sealed_state import PYTHON, batches, sealed, unsealed
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
    """Steps; with autoreset disabled, ended episodes are reset first. Also returns what the region has of ends."""
    results = []
    for action in actions:
        if envs.autoreset_mode is AutoresetMode.DISABLED and (ended := np.flatnonzero(envs.client.dones)).size:
            envs.reset(env_ids=ended)
        results.append((*envs.step(action), *_of_ends(envs.client)))
    return results


def _of_ends(client: Any) -> list[Any]:
    done = client.dones != 0
    return [client.fields[role, ""][done] for role in ("episode_return", "episode_length")]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("task", _TASKS)
def test_the_future_of_a_state_is_the_same(task: str, mode: str) -> None:
    """In the same environments, in others, and from an episode that has just ended."""
    with closing(_made(task, mode)) as envs, closing(_made(task, mode, num_workers=3)) as others:
        last: Any = envs.reset(seed=1)
        for step in range(100):
            (last,) = _run(envs, [envs.action_space.sample()])
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


def test_a_reset_ends_what_a_state_has_begun() -> None:
    """After a state whose episode has ended; and with autoreset disabled a step waits for that reset."""
    for mode in ("NextStep", "Disabled"):
        with closing(_made(lambda: gymnasium.wrappers.TimeLimit(Held(own=True), 3), mode)) as envs:
            _run(envs, [[0] * _ENVS] * 3)
            states = envs.save_state()
            envs.load_state(states)
            if mode == "Disabled":
                with pytest.raises(tandem.InvalidArgument, match="no ended episode"):
                    envs.step([0] * _ENVS)
            envs.reset()
            assert envs.step([0] * _ENVS)[0][:, 0].tolist() == [1] * _ENVS


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
            self.get_state, self.set_state = self._get, self._set

    def _get(self) -> Any:
        if self.count == 11:
            raise RuntimeError("get_state")
        return threading.Lock() if self.count == 12 else self.count

    def _set(self, count: int) -> None:
        self.count = count
        if count == 10:
            raise RuntimeError("halfway")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the count to 0."""
        self.count = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Counts."""
        self.count += 1
        return np.full(1, float(self.count)), 1.0, False, False, {"count": self.count}


class Fails(Held):
    """Fails at action 1."""

    def step(self, action: Any) -> Any:
        """Counts, or raises an exception."""
        if action == 1:
            raise RuntimeError("failed")
        return super().step(action)


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


def _counts(envs: Any, to_add: int) -> list[float]:
    for _ in range(to_add):
        obs = envs.step([0] * _ENVS)[0]
    return [float(each) for each in obs[:, 0]]


@pytest.mark.parametrize("num_workers", [1, 3])
def test_no_half_of_a_state_stays(num_workers: int) -> None:
    """`set_state` fails in one environment: all go on as they were, and the next reset draws."""
    for made in (lambda: Held(own=True), lambda: gymnasium.wrappers.TimeLimit(Held(own=True), 50)):
        with closing(_made(made, num_workers=num_workers)) as envs:
            early, _ = envs.save_state(), _counts(envs, 10)
            late = envs.save_state([2])[0]
            envs.load_state(early)
            _counts(envs, 5)
            with pytest.raises(tandem.EnvFailed, match="halfway"):
                envs.load_state([early[0], early[1], late, early[3]])
            assert _counts(envs, 1) == [6] * _ENVS
            envs.reset()
            assert _counts(envs, 1) == [1] * _ENVS


def test_environments_that_cannot_be_saved_now() -> None:
    """Before the first reset, after a failed step, and when `get_state` fails; named, and they step on."""
    with closing(tandem.make_vec(Held, 2, num_workers=1)) as envs, pytest.raises(tandem.ResetNeeded):
        envs.save_state()
    with closing(_made(lambda: Fails(own=True))) as envs:
        _counts(envs, 11)
        with pytest.raises(tandem.EnvFailed, match="get_state"):
            envs.save_state()
        _counts(envs, 1)
        with pytest.raises(tandem.Unsupported, match=r"Fails\.get_state\(\), a _thread\.lock"):
            envs.save_state()
        _counts(envs, 1)
        with pytest.raises(tandem.EnvFailed):
            envs.step([0, 1, 0, 0])
        with pytest.raises(tandem.Unsupported, match=r"found that \[1\] await a reset"):
            envs.save_state()


def test_a_state_of_another_environment_is_refused() -> None:
    """Also if the spaces are equal."""
    with closing(tandem.make_vec([lambda: Held(own=True), lambda: Fails(own=True)])) as envs:
        envs.reset()
        states = envs.save_state()
        envs.load_state(states)
        with pytest.raises(tandem.LayoutMismatch, match=r"states\[0\]: expected a state of .*Held"):
            envs.load_state(states[::-1])


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
        for parts in ({"part": lambda: 0}, {"obs": 0}):
            with pytest.raises(tandem.InvalidArgument, match="parts: expected"):
                checkpoint.save(path, envs, **parts)
        checkpoint.save(tmp_path / "plain")
        with pytest.raises(tandem.InvalidArgument, match="expected states of environments, found none"):
            checkpoint.load(tmp_path / "plain", envs)
    for call in (checkpoint.save, checkpoint.load):
        with pytest.raises(tandem.InvalidArgument, match="envs: expected what make_vec returned, found a int"):
            call(path, 7)
        with pytest.raises(tandem.InvalidArgument, match="path: expected a path"):
            call("a\0b")
    (tmp_path / "plain").write_bytes(sealed(3, 0, b"cnone\nNone\n."))
    with pytest.raises(tandem.InvalidArgument, match="expected parts of known classes.*none"):
        checkpoint.load(tmp_path / "plain")
    (tmp_path / "plain").unlink()
    with pytest.raises(tandem.SystemCallFailed, match="No such file"):
        checkpoint.save(tmp_path / "none" / "x")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(tandem.InvalidArgument, match="bytes behind the header"):
        checkpoint.load(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_is_a_file_as_others(tmp_path: Path) -> None:
    """Its mode is by the umask, a link stays one, and what killed writers have left is removed after an hour."""
    path, link = tmp_path / "checkpoint", tmp_path / "link"
    link.symlink_to(path)
    for age, name in ((3500, "new"), (3700, "old")):
        left = tmp_path / f".checkpoint-{name}.part"
        left.touch()
        os.utime(left, (time.time() - age,) * 2)
    (tmp_path / "plain").touch()
    checkpoint.save(link, number=1)
    assert link.is_symlink() and checkpoint.load(path) == {"number": 1}
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert {each.name for each in tmp_path.iterdir()} == {"checkpoint", "link", "plain", ".checkpoint-new.part"}


class _Calls:
    """The module os; the process is killed at one moment before or after a call."""

    def __init__(self, moment: int) -> None:
        self._left = moment

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._count()
            result = value(*args, **kwargs)
            self._count()
            return result

        return call if callable(value) else value

    def _count(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def test_a_writer_killed_at_each_call_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each call of the operating system; the file has the earlier number, then the new one."""
    numbers: list[int] = []
    status = signal.SIGKILL.value
    while status == signal.SIGKILL:
        path = tmp_path / str(len(numbers)) / "checkpoint"
        path.parent.mkdir()
        checkpoint.save(path, number=1)
        if (writer := os.fork()) == 0:
            try:
                monkeypatch.setattr(checkpoint, "os", _Calls(len(numbers)))
                checkpoint.save(path, number=2)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(writer, 0)[1]
        numbers.append(checkpoint.load(path)["number"])
    assert status == 0 and numbers == sorted(numbers) and {*numbers} == {1, 2} and len(numbers) > 12


def test_states_are_sent_in_parts() -> None:
    """Of at most 32 MiB, or of one state."""
    large = bytes(20 << 20)
    parts = [(part.start, part.stop) for part in batches([b"1", b"2", large, large, large + large, b"3"])]
    assert parts == [(0, 3), (3, 4), (4, 5), (5, 6)]


def test_the_header_has_each_fact() -> None:
    """A fingerprint and a kind, before the payload is used."""
    state = sealed(PYTHON, 5, b"payload")
    assert unsealed("state", state, PYTHON, 5, "x") == b"payload"
    with pytest.raises(tandem.LayoutMismatch, match="expected a state of CartPole"):
        unsealed("state", state, PYTHON, 6, "CartPole")
    with pytest.raises(tandem.LayoutMismatch, match="expected a checkpoint, found an environment in Python"):
        unsealed("state", state, 3, 5, "x")
