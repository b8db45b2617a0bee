"""`tandem.ray.rollout_workers` on a cluster of several nodes: values, counts, versions, bytes, refusals."""

import functools
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import ray
from numpy.typing import NDArray

import tandem
from tandem.ray import Placement, Rollout, WorkerLost, rollout_workers
from tandem.testing.commanded_cart import arguments, commanding, commands_of
from tests.ray.clusters import LocalCluster, engines, expect, local_cluster
from tests.ray.policies import Failing, Linear, train

_SEED = 3
_ON_TWO = Placement(resources={"CPU": 1, "single": 1})
_ON_ONE = Placement(resources={"CPU": 1, "double": 0.5}, share_nodes=True)
_WEIGHTS = {
    "CartPole-v1": np.random.default_rng(0).normal(size=(4, 2)),
    "HalfCheetah-v5": np.random.default_rng(0).normal(size=(17, 6)),
    "Acrobot-v1": np.random.default_rng(0).normal(size=(6, 3)),
}
_SMALL: dict[str, Any] = {"num_envs": 2, "horizon": 8, "policy": Linear, "seed": _SEED}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two nodes with one core, and one with two."""
    with local_cluster(0) as local:
        local.add(single=1)
        local.add(single=1)
        local.add(cores=2, double=1)
        yield local


def _by_loop(task: str, worker: int, num_envs: int, horizon: int, rounds: int) -> list[dict[str, Any]]:
    """Returns what the worker must return, by a loop in this process."""
    envs = tandem.make_vec(task, num_envs, options=tandem.TaskOptions(copy=False))
    policy = Linear(envs.single_observation_space, envs.single_action_space)
    policy.load(_WEIGHTS[task])
    random = np.random.default_rng([_SEED, worker, 0])
    now = envs.reset(seed=_SEED + worker * num_envs)[0].copy()
    results = []
    for _ in range(rounds):
        rows: dict[str, list[Any]] = {"obs": [now], "actions": [], "rewards": [], "terminations": [], "truncations": []}
        for _ in range(horizon):
            actions, _ = policy.act(now, random)
            obs, rewards, terminations, truncations, _ = envs.step(actions)
            now = obs.copy()
            for name, value in (
                ("obs", now),
                ("actions", actions),
                ("rewards", rewards),
                ("terminations", terminations),
                ("truncations", truncations),
            ):
                rows[name].append(value)
        results.append({name: np.stack(values) for name, values in rows.items()})
    envs.close()
    return results


def _rounds(task: str, placement: Placement, rounds: int) -> list[list[Rollout]]:
    arguments: dict[str, Any] = {"nodes": 2, "num_envs": 4, "horizon": 100, "policy": Linear, "seed": _SEED}
    with rollout_workers(task, **arguments, synchronous=True, placement=placement) as workers:
        workers.publish(_WEIGHTS[task])
        return [workers.collect() for _ in range(rounds)]


@pytest.mark.parametrize("task", ["CartPole-v1", "HalfCheetah-v5", "Acrobot-v1"])
def test_rollouts_do_not_depend_on_the_nodes(cluster: LocalCluster, task: str) -> None:
    """On one node, on two, and by a loop without Ray: the same digits, in C++ and in Python."""
    on_two, on_one = _rounds(task, _ON_TWO, 3), _rounds(task, _ON_ONE, 3)
    expected = [_by_loop(task, worker, 4, 100, 3) for worker in range(2)]
    for number in range(3):
        for rollouts in (on_two[number], on_one[number]):
            assert [(each.worker, each.number, each.version) for each in rollouts] == [(0, number, 1), (1, number, 1)]
            for rollout in rollouts:
                for name, value in expected[rollout.worker][number].items():
                    np.testing.assert_array_equal(getattr(rollout, name), value, strict=True)


def test_episodes_and_resets(cluster: LocalCluster) -> None:
    """Returns and lengths are those of the rewards between the resets, also across rollouts."""
    with rollout_workers("CartPole-v1", nodes=1, num_envs=3, horizon=50, policy=Linear, seed=1) as workers:
        rollouts = workers.collect(4)
    rewards = np.concatenate([rollout.rewards for rollout in rollouts])
    resets = np.concatenate([rollout.resets[:-1] for rollout in rollouts])
    done = np.concatenate([rollout.terminations | rollout.truncations for rollout in rollouts])
    assert not resets[0].any() and (resets[1:] == done[:-1]).all() and (rewards[resets] == 0).all()
    for one, following in zip(rollouts[:-1], rollouts[1:], strict=True):
        np.testing.assert_array_equal(one.obs[-1], following.obs[0])
        np.testing.assert_array_equal(one.resets[-1], following.resets[0])
    returns, lengths, total, steps = [], [], np.zeros(3), np.zeros(3, int)
    for row in range(len(rewards)):
        total += rewards[row]
        steps += ~resets[row]
        for env_id in np.flatnonzero(done[row]):
            returns.append(total[env_id])
            lengths.append(steps[env_id])
            total[env_id], steps[env_id] = 0, 0
    assert len(returns) > 10
    assert np.concatenate([rollout.episode_returns for rollout in rollouts]).tolist() == returns
    assert np.concatenate([rollout.episode_lengths for rollout in rollouts]).tolist() == lengths


def test_workers_start_by_the_reset_options(cluster: LocalCluster, tmp_path: Path) -> None:
    """Each worker's environments have their contracts, in later episodes and after a failure, too."""
    its = {**arguments(tmp_path), "options": tandem.TaskOptions(max_episode_steps=5)}
    options = {"contract": [commanding(1), commanding(2)]}
    with rollout_workers(
        None, nodes=1, **{**_SMALL, "policy": Linear}, env_options=its, reset_options=options
    ) as workers:
        for incarnation in range(2):
            rollout = next(each for each in iter(lambda: workers.collect()[0], None) if each.incarnation == incarnation)
            assert commands_of(rollout.obs).tolist() == [[1, 2]] * 9
            assert rollout.truncations.sum() == 2
            if incarnation == 0:
                os.kill(engines()[0], signal.SIGKILL)
    with pytest.raises(tandem.InvalidArgument, match="reset_options: expected None or a dict"):
        rollout_workers("CartPole-v1", nodes=1, **_SMALL, reset_options=[1])  # type: ignore[arg-type]


def test_each_rollout_is_counted_once(cluster: LocalCluster) -> None:
    """Numbers of each worker have no gaps but dropped rollouts; no lag is above the limit; the counts add up."""
    seen: set[tuple[int, int, int]] = set()
    with rollout_workers("CartPole-v1", num_envs=4, horizon=32, policy=Linear, max_lag=1) as workers:
        for _ in range(40):
            version = workers.publish(_WEIGHTS["CartPole-v1"])
            for rollout in workers.collect(2):
                assert 0 <= rollout.lag <= 1 and rollout.version + rollout.lag == version
                seen.add((rollout.worker, rollout.incarnation, rollout.number))
        stats = workers.stats()
        assert stats.workers == 3 and stats.version == 40 and not workers.losses
        assert len(seen) == stats.delivered == 80
        assert stats.requested == stats.delivered + stats.stale + stats.lost + stats.outstanding + stats.untaken
        assert stats.lost == 0 and stats.greatest_lag >= 1


@pytest.mark.parametrize("max_lag", [1, 2])
def test_requests_wait_for_the_next_weights(cluster: LocalCluster, max_lag: int) -> None:
    """With a learner that is slower than the worker, rollouts are at most one version old; the worker has a request."""
    with rollout_workers("CartPole-v1", nodes=1, num_envs=4, horizon=32, policy=Linear, max_lag=max_lag) as workers:
        for version in range(1, 7):
            assert workers.publish(_WEIGHTS["CartPole-v1"]) == version and workers.stats().outstanding == max_lag
            assert workers.collect()[0].version == max(1, version - 1)
            assert workers.stats().outstanding == 1
            ray.wait(list(workers._outstanding))  # the worker is idle now
        assert len(workers.collect(5)) == 5  # more than are outstanding
        assert workers.stats().greatest_lag == 1 and workers.stats().stale == 0


def test_old_rollouts_are_dropped(cluster: LocalCluster) -> None:
    """Rollouts whose lag is above max_lag do not reach the caller."""
    with rollout_workers("CartPole-v1", nodes=1, num_envs=1, horizon=5000, policy=Linear, max_lag=0) as workers:
        workers.publish(_WEIGHTS["CartPole-v1"])
        with pytest.raises(tandem.StepTimeout):
            workers.collect(timeout=0.01)  # it is outstanding now
        assert workers.publish(_WEIGHTS["CartPole-v1"]) == 2
        rollout = workers.collect()[0]
        assert (rollout.version, rollout.lag) == (2, 0)
        assert workers.stats().stale >= 1 and workers.stats().greatest_lag == 1


def test_only_the_arrays_are_sent(cluster: LocalCluster) -> None:
    """What Ray stores of a rollout of 4,096 steps is at most 2 % more than its arrays."""
    context = ray._private.worker.global_worker.get_serialization_context()
    for task in ("CartPole-v1", "HalfCheetah-v5"):
        with rollout_workers(task, nodes=1, num_envs=16, horizon=256, policy=Linear) as workers:
            rollout = workers.collect()[0]
        assert rollout.steps == 4096
        stored = context.serialize(rollout).total_bytes
        assert rollout.nbytes < stored <= 1.02 * rollout.nbytes


def test_arrays_are_views_of_the_object_store(cluster: LocalCluster) -> None:
    """They are read-only, own no memory, and stay valid after `close`."""
    with rollout_workers("CartPole-v1", nodes=1, num_envs=16, horizon=1024, policy=Linear) as workers:
        rollout = workers.collect()[0]
    before = rollout.obs.copy()
    assert not rollout.obs.flags.writeable and not rollout.obs.flags.owndata
    expect(lambda: not engines(), "no engine")
    np.testing.assert_array_equal(rollout.obs, before)


class _Dicts(gymnasium.Env[Any, Any]):
    """Observations and actions are dicts."""

    observation_space = gymnasium.spaces.Dict(
        {"at": gymnasium.spaces.Box(-1e6, 1e6, (2,), np.float64), "kind": gymnasium.spaces.Discrete(5)}
    )
    action_space = gymnasium.spaces.Dict({"by": gymnasium.spaces.Box(-1, 1, (2,), np.float64)})

    def __init__(self) -> None:
        self._at = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Returns to zero."""
        self._at = np.zeros(2)
        return {"at": self._at, "kind": 0}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Adds the action."""
        self._at = self._at + action["by"]
        return {"at": self._at, "kind": 3}, float(self._at.sum()), bool(self._at.sum() > 3), False, {}


class _Halves:
    """Acts by halves."""

    def __init__(self, obs_space: Any, act_space: Any) -> None:
        pass

    def load(self, weights: Any) -> None:
        """Takes nothing."""

    def act(self, obs: Any, random: np.random.Generator) -> tuple[Any, dict[str, NDArray[Any]]]:
        """Returns 0.5 for each number."""
        return {"by": np.full_like(obs["at"], 0.5)}, {"kinds": obs["kind"] + 1}


def test_dicts(cluster: LocalCluster) -> None:
    """Observations and actions may be dicts of arrays; functions make environments in Python."""
    make = functools.partial(_Dicts)
    with rollout_workers(make, nodes=2, num_envs=2, horizon=6, policy=_Halves) as workers:
        rollout = workers.collect()[0]
    assert rollout.obs["at"].shape == (7, 2, 2) and rollout.actions["by"].shape == (6, 2, 2)
    assert rollout.obs["at"][:, 0, 0].tolist() == [0, 0.5, 1, 1.5, 2, 0, 0.5]
    assert rollout.resets[:, 0].tolist() == [False] * 4 + [True, False, False]
    assert rollout.extras["kinds"][:3, 1].tolist() == [1, 4, 4]


def test_a_training_learns(cluster: LocalCluster) -> None:
    """CartPole by policy gradient, on all nodes."""
    with rollout_workers("CartPole-v1", num_envs=16, horizon=200, policy=Linear, seed=0) as workers:
        returns = train(workers, 80).returns
    assert np.mean(returns[-5:]) > 120 > 40 > returns[0]


def test_invalid_arguments_are_refused(cluster: LocalCluster) -> None:
    """The message is that of make_vec in the worker, or names the argument."""
    with pytest.raises(tandem.InvalidArgument, match="HalfCheetah-v5"):
        rollout_workers("HalfCheetah-v55", nodes=1, **_SMALL)
    with pytest.raises(tandem.InvalidArgument, match="num_envs"):
        rollout_workers("CartPole-v1", nodes=1, **{**_SMALL, "num_envs": 0})
    with pytest.raises(tandem.InvalidArgument, match="env_options: expected no 'num_envs'"):
        rollout_workers("CartPole-v1", nodes=1, **_SMALL, env_options={"num_envs": 2})
    with pytest.raises(tandem.InvalidArgument, match=r"Placement.resources\['CPU'\]"):
        Placement(resources={"CPU": 0.5})
    few = Placement(start_timeout=12)
    with pytest.raises(tandem.NotReady, match="nodes: expected 5 .* found 3 within 12 s"):
        rollout_workers("CartPole-v1", nodes=5, **_SMALL, placement=few)
    expect(lambda: not engines(), "no engine")


def test_a_policy_that_fails_ends_the_training(cluster: LocalCluster) -> None:
    """After three attempts the caller gets its exception as text."""
    with rollout_workers("CartPole-v1", nodes=1, **{**_SMALL, "policy": Failing}) as workers:
        with pytest.raises(WorkerLost, match="a fault of the policy"):
            workers.collect()
        assert [loss.incarnation for loss in workers.losses] == [0, 1, 2]
        assert workers.stats().lost == sum(loss.rollouts for loss in workers.losses) == workers.stats().requested


def test_closed_workers_refuse_calls(cluster: LocalCluster) -> None:
    """`close` is safe twice."""
    workers = rollout_workers("CartPole-v1", nodes=1, **_SMALL)
    workers.close()
    workers.close()
    for call in (workers.collect, lambda: workers.publish(1)):
        with pytest.raises(tandem.ClientClosed):
            call()
