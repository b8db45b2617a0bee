"""Halves, batches and subsets of which an environment or a worker fails."""

import os
import pickle
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import tandem
from tandem.testing import failing_batches
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv

GOOD, RAISE, WAIT, LARGE = range(4)
_RANDOM_BATCHES = int(os.environ.get("TANDEM_BATCHES", "250"))


class Numbered(gymnasium.Env[Any, Any]):
    """Its observation is its number and its steps since the reset; its action may be to fail, or a large info."""

    observation_space = spaces.Box(0, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(4)
    steps = 0

    def __init__(self, env_id: int, gate: Path = Path()) -> None:
        """Takes its number, and the path of a file for which WAIT waits."""
        self.env_id, self._gate = env_id, gate

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Sets the number of steps to 0, or to that of the options; or waits as WAIT before, or raises an exception."""
        options = options or {}
        if "wait" in options:
            self.step(WAIT)
        if "raise" in options:
            raise ValueError("the reset broke")
        if "die" in options:
            os._exit(3)
        self.steps = options.get("steps", 0)
        return np.array([self.env_id, self.steps], float), {"seed": -1 if seed is None else seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps, or raises an exception; the third step ends the episode."""
        self.steps += 1
        if action == RAISE:
            raise ValueError(f"joint {self.env_id} broke")
        while action == WAIT and not Path(self._gate).exists():
            time.sleep(0.001)
        obs = np.array([self.env_id, self.steps], float)
        return obs, 1.0 + self.env_id, self.steps == 3, False, {"steps": 10**30 if action == LARGE else self.steps}


def _made(num_workers: int, gate: Path = Path(), num_envs: int = 4, **options: Any) -> Any:
    functions = [lambda env_id=env_id: Numbered(env_id, gate) for env_id in range(num_envs)]
    envs = tandem.make_vec(functions, num_workers=num_workers, **options)
    envs.reset(seed=0)
    return envs


def _await_ready(envs: Any, count: int) -> None:
    """Waits until so many lanes have their results, without taking them."""
    while len(envs.lanes.ready) < count:
        envs.lanes.await_more(1)


@pytest.mark.parametrize("first", [0, 1], ids=["the other half first", "the failed half first"])
def test_a_failure_belongs_to_its_half(first: int) -> None:
    """Only its recv raises it, whichever is called first, and though all results have come before."""
    with closing(_made(4)) as envs:
        for _ in range(2):
            envs.send([GOOD, GOOD], half=0)
            envs.send([GOOD, RAISE], half=1)
            if first == 0:
                _await_ready(envs, 4)
            for half in (first, 1 - first):
                if half == 0:
                    obs, rewards, _, truncations, infos = envs.recv(half=0)
                    assert rewards.tolist() == [1, 2] and not truncations.any() and "env_failed" not in infos
                    assert obs[:, 0].tolist() == [0, 1]
                    continue
                with pytest.raises(tandem.EnvFailed, match="environment 3 of worker 3"):
                    envs.recv(half=1)
                obs, rewards, terminations, truncations, infos = envs.recv(half=1)
                assert infos["env_failed"].tolist() == infos["_env_failed"].tolist() == [False, True]
                assert rewards.tolist() == [3, 0] and truncations.tolist() == [False, True] and not terminations.any()
                assert infos["_steps"].tolist() == [True, False]
        with pytest.raises(tandem.NoStepPending):
            envs.recv(half=1)


def test_reset_of_a_failed_environment_keeps_all_steps() -> None:
    """The other half's step goes on, and the others of its worker keep results and infos; then all step on."""
    with closing(_made(2, num_envs=4, autoreset_mode="SameStep")) as envs:
        for _ in range(2):
            envs.send([GOOD, GOOD], half=0)
            envs.send([GOOD, GOOD], half=1)
            envs.recv(half=0), envs.recv(half=1)
        envs.send([GOOD, GOOD], half=0)
        envs.send([GOOD, RAISE], half=1)
        with pytest.raises(tandem.EnvFailed):
            envs.recv(half=1)
        with pytest.raises(tandem.StepPending):
            envs.send([GOOD, GOOD], half=1)
        with pytest.raises(tandem.StepPending):  # it would overwrite the results of 2
            envs.reset(env_ids=[2, 3])
        obs, infos = envs.reset(env_ids=[3], seed=[77], options={"steps": 5})
        assert obs.tolist() == [[3, 5]] and infos["seed"].tolist() == [77]
        obs, rewards, terminations, truncations, infos = envs.recv(half=1)
        assert obs.tolist() == [[2, 0], [3, 5]] and rewards.tolist() == [3, 0]
        assert terminations.tolist() == [True, False] and truncations.tolist() == [False, True]
        assert infos["final_obs"][0].tolist() == [2, 3] and infos["final_info"]["steps"].tolist() == [3, 0]
        assert infos["env_failed"].tolist() == [False, True]
        obs, rewards, terminations, _, infos = envs.recv(half=0)
        assert rewards.tolist() == [1, 2] and terminations.all() and infos["final_obs"][1].tolist() == [1, 3]
        envs.send([GOOD, GOOD], half=1)
        obs, rewards, _, _, infos = envs.recv(half=1)
        assert obs[:, 1].tolist() == [1, 6] and rewards.tolist() == [3, 4] and "env_failed" not in infos


def test_reset_while_the_other_half_steps(tmp_path: Path) -> None:
    """It does not wait for that step. A reset whose results would have its rows, or of its environments, is refused."""
    gate = tmp_path / "gate"
    with closing(_made(4, gate)) as envs:
        envs.send([WAIT, GOOD], half=0)
        envs.send([RAISE, GOOD], half=1)
        with pytest.raises(tandem.EnvFailed) as caught:
            envs.recv(half=1)
        assert caught.value.env_id == 2
        assert envs.reset(env_ids=[2])[0].tolist() == [[2, 0]]
        assert envs.recv(half=1)[0].tolist() == [[2, 0], [3, 1]]
        for arguments in ({"env_ids": [0]}, {"options": {"reset_mask": np.arange(4) == 2}}):
            with pytest.raises(tandem.StepPending, match=r"reset: .* found .*workers \[0"):
                envs.reset(**arguments)
        with pytest.raises(tandem.StepTimeout):
            envs.recv(0.0, half=0)
        gate.touch()
        assert envs.recv(half=0)[0].tolist() == [[0, 1], [1, 1]]


def test_failed_resets_beside_a_step() -> None:
    """EnvFailed says that the reset failed; the environment then fails in its next step."""
    with closing(_made(4)) as envs:
        envs.send([GOOD, GOOD], half=0)
        with pytest.raises(tandem.EnvFailed, match="the reset broke") as caught:
            envs.reset(env_ids=[2, 3], options={"raise": True})
        assert (caught.value.env_id, caught.value.episode, caught.value.step) == (2, 1, None)
        assert envs.recv(half=0)[0][:, 1].tolist() == [1, 1]
        envs.send([GOOD, GOOD], half=1)
        with pytest.raises(tandem.EnvFailed, match="the reset broke"):
            envs.recv(half=1)
        assert envs.recv(half=1)[4]["env_failed"].all()


def test_interrupted_reset_beside_a_step(tmp_path: Path) -> None:
    """A reset that timed out returns no rows as a step's; the next reset waits for it."""
    gate = tmp_path / "gate"
    functions = [lambda env_id=env_id: Numbered(env_id, gate) for env_id in range(4)]
    made: Any = tandem.make_vec(functions, num_workers=2, engine=tandem.WorkerOptions(timeout=0.2))
    with closing(made) as envs:
        _until_in_time(envs.reset)
        envs.send([GOOD, GOOD], half=0)
        with pytest.raises(tandem.StepTimeout):
            envs.reset(env_ids=[2], options={"wait": True})
        _until_in_time(lambda: envs.recv(half=0))
        with pytest.raises(tandem.StepPending, match=r"reset\(\) again"):
            envs.recv(half=1)
        with pytest.raises(tandem.StepPending, match=r"reset\(\) again"):
            envs.send([GOOD, GOOD], half=1)
        gate.touch()
        assert _until_in_time(lambda: envs.reset(env_ids=[2]))[0].tolist() == [[2, 0]]
        envs.send([GOOD, GOOD], half=1)
        assert _until_in_time(lambda: envs.recv(half=1))[0][:, 1].tolist() == [1, 1]


def test_a_worker_that_dies_in_a_reset_beside_a_step() -> None:
    """Each later call for its half says so."""
    with closing(_made(2)) as envs:
        envs.send([GOOD, GOOD], half=0)
        calls: list[Callable[[], Any]] = [
            lambda: envs.reset(env_ids=[2], options={"die": True}),
            lambda: envs.recv(half=1),
            lambda: envs.send([GOOD, GOOD], half=1),
        ]
        for call in calls:
            with pytest.raises(tandem.PeerGone, match="worker 1"):
                call()


def test_a_failure_before_a_reconnection_is_no_failure_of_the_next_step() -> None:
    """Nor does it hide one, nor make a step of a reset."""
    with closing(_made(2)) as envs:
        envs.send([GOOD, RAISE], half=1)
        with pytest.raises(tandem.EnvFailed, match="joint 3"):
            envs.recv(half=1)
        envs.client.reconnect()
        envs.send([RAISE, GOOD], half=1)
        with pytest.raises(tandem.EnvFailed, match="joint 2"):
            envs.recv(half=1)
        envs.client.reconnect()
        envs.send([GOOD, GOOD], half=0)
        assert envs.reset(env_ids=[2, 3])[0].tolist() == [[2, 0], [3, 0]]
        with pytest.raises(tandem.NoStepPending):
            envs.recv(half=1)


def test_infos_that_cannot_be_batched_do_not_block_a_half() -> None:
    """EnvFailed comes first; the error of the infos comes once, and the half steps on."""
    with closing(_made(2)) as envs:
        envs.send([RAISE, LARGE], half=0)
        with pytest.raises(tandem.EnvFailed, match="joint 0"):
            envs.recv(half=0)
        assert envs.reset(env_ids=[0])[0].tolist() == [[0, 0]]
        with pytest.raises(OverflowError):
            envs.recv(half=0)
        envs.send([GOOD, LARGE], half=0)
        with pytest.raises(OverflowError):
            envs.recv(half=0)
        envs.send([GOOD, GOOD], half=0)
        assert envs.recv(half=0)[0][:, 1].tolist() == [2, 3]


def _until_in_time(call: Callable[[], Any]) -> Any:
    """Calls until there is no StepTimeout: this machine may be slow; the watchdog ends it."""
    while True:
        try:
            return call()
        except tandem.StepTimeout:
            continue


def test_a_failure_belongs_to_its_batch() -> None:
    """Batches before it have all their rows, and its own batch comes once, with a mark, after the error."""
    with closing(_made(4, engine=tandem.WorkerOptions(batch_size=2))) as envs:
        for _ in range(5):
            envs.send([GOOD, GOOD, RAISE, GOOD])
            _await_ready(envs, 4)
            seen: dict[int, bool] = {}
            failures = 0
            for _ in range(2):
                try:
                    results = envs.recv()
                except tandem.EnvFailed as error:
                    failures += 1
                    assert envs.reset(env_ids=[error.env_id])[0].tolist() == [[2, 0]]
                    results = envs.recv()
                    assert 2 in results[4]["env_id"]
                marks = results[4].get("env_failed", np.zeros(2, bool)).tolist()
                seen |= dict(zip(results[4]["env_id"].tolist(), marks, strict=True))
            assert failures == 1
            assert seen == {0: False, 1: False, 2: True, 3: False}


def test_results_that_were_not_taken_are_not_overwritten() -> None:
    """A step or a reset of some by mask is refused; a reset of all drops them."""
    with closing(_made(4)) as envs:
        envs.send([GOOD, GOOD], half=0)
        _await_ready(envs, 2)
        with pytest.raises(tandem.StepPending):
            envs.step([GOOD] * 4)
        with pytest.raises(tandem.StepPending):
            envs.step([GOOD], [3])
        with pytest.raises(tandem.StepPending):
            envs.reset(options={"reset_mask": np.arange(4) == 3})
        assert envs.recv(half=0)[1].tolist() == [1, 2]
        envs.send([GOOD, GOOD], half=0)
        _await_ready(envs, 2)
        envs.reset()
        with pytest.raises(tandem.NoStepPending):
            envs.recv(half=0)
        assert envs.step([GOOD] * 4)[0][:, 1].tolist() == [1] * 4


def test_reset_by_mask_marks_what_still_awaits_its_reset() -> None:
    """It returns the observations of all environments; those that have failed are marked."""
    with closing(_made(2)) as envs:
        with pytest.raises(tandem.EnvFailed):
            envs.step([GOOD, RAISE, GOOD, RAISE])
        _, infos = envs.reset(options={"reset_mask": np.arange(4) == 3})
        assert infos["env_failed"].tolist() == infos["_env_failed"].tolist() == [False, True, False, False]
        assert "env_failed" not in envs.reset(env_ids=[0])[1]
        assert "env_failed" not in envs.reset(env_ids=[1])[1]
        assert envs.step([GOOD] * 4)[0][:, 1].tolist() == [1, 1, 2, 1]


def test_attributes_of_a_failure() -> None:
    """They name environment, worker, episode and step, and survive pickling."""
    with closing(_made(2)) as envs:
        envs.reset(env_ids=[3])
        envs.step([GOOD] * 4)
        with pytest.raises(tandem.EnvFailed, match=r"joint 3 broke") as caught:
            envs.step([GOOD, GOOD, GOOD, RAISE])
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert type(error) is tandem.EnvFailed and str(error) == str(caught.value)
            assert (error.env_id, error.worker, error.episode, error.step) == (3, 1, 1, 1)
        with pytest.raises(tandem.EnvFailed) as caught:  # of the same failure
            envs.step([GOOD] * 4)
        assert (caught.value.env_id, caught.value.episode, caught.value.step) == (3, 1, 1)
        with pytest.raises(tandem.EnvFailed) as caught:
            envs.call("missing")
        assert caught.value.env_id is None


def test_attributes_of_a_failure_in_an_exception_group() -> None:
    """They do not depend on how Python formats the exception."""

    def on_step(env: ScriptedEnv, results: Any) -> Any:
        raise ExceptionGroup("several", [ValueError("one"), ValueError("two, episode 8, step 9")])

    with closing(tandem.make_vec(lambda: ScriptedEnv(on_step=on_step), 2, num_workers=2)) as envs:
        envs.reset()
        with pytest.raises(tandem.EnvFailed) as caught:
            envs.step([0, 0])
        assert (caught.value.env_id, caught.value.episode, caught.value.step) == (0, 0, 0)


@pytest.mark.parametrize("call", ["step", "send", "send of a half"])
def test_step_after_a_first_reset_that_timed_out(call: str, tmp_path: Path) -> None:
    """StepPending, as after later resets: recv() has its results."""
    gate = tmp_path / "gate"
    made: Any = tandem.make_vec(lambda: Numbered(0, gate), 2, num_workers=2, engine=tandem.WorkerOptions(timeout=0.1))
    with closing(made) as envs:
        with pytest.raises(tandem.StepTimeout):
            envs.reset(options={"wait": True})
        with pytest.raises(tandem.StepPending, match=r"found one that is pending; call recv\(\) first"):
            envs.send([0], half=0) if call == "send of a half" else getattr(envs, call)([0, 0])
        gate.touch()
        assert _until_in_time(envs.recv)[1].tolist() == [0, 0]
        envs.send([GOOD, GOOD])
        assert _until_in_time(envs.recv)[0][:, 1].tolist() == [1, 1]


def test_random_halves_batches_and_subsets() -> None:
    """Each row is right or marked, and each error comes from its recv; `TANDEM_BATCHES` sets how many there are."""
    counts = failing_batches.compare(_RANDOM_BATCHES, seed=1)
    print(dict(sorted(counts.items())))
    assert counts["batches"] == _RANDOM_BATCHES
    if _RANDOM_BATCHES >= 1000:
        kinds = {f"{kind}, {mode.value}" for kind in ("halves", "batches", "subsets") for mode in AutoresetMode}
        assert kinds <= {*counts}
        assert all(counts[name] for name in ("EnvFailed", "PeerGone", "kills", "marked rows", "restarted rows"))
