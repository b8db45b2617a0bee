"""Steps of some environments: subsets, halves and batches."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv
from tandem.testing.sample_spaces import assert_same
from tandem.testing.sync_parity import ENVS

NUM_ENVS = 6


def _made(task: Any, **options: Any) -> tandem.vector.ClientVectorEnv:
    envs: tandem.vector.ClientVectorEnv = tandem.make_vec(task, NUM_ENVS, **options)
    return envs


def _rows(results: Any, rows: Any) -> Any:
    """Returns observations, rewards and flags of some rows of a SyncVectorEnv."""
    obs, rewards, terminations, truncations, _ = results
    rows_of = {key: value[rows] for key, value in obs.items()} if isinstance(obs, dict) else obs[rows]
    return rows_of, rewards[rows], terminations[rows], truncations[rows]


@pytest.mark.parametrize("backend", ["native", "python"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_subsets_of_both_backends(backend: str, mode: AutoresetMode) -> None:
    """Each environment sees its own actions only, as if it were alone."""
    with closing(_made("CartPole-v1", backend=backend, autoreset_mode=mode)) as envs:
        alone = [SyncVectorEnv([ENVS["CartPole"]], autoreset_mode=mode) for _ in range(NUM_ENVS)]
        first, _ = envs.reset(seed=3)
        for index, one in enumerate(alone):
            assert np.allclose(one.reset(seed=3 + index)[0][0], first[index], atol=1e-6)
        rng = np.random.default_rng(1)
        for _ in range(120):
            ids: list[int] = rng.permutation(NUM_ENVS)[: rng.integers(1, NUM_ENVS + 1)].tolist()
            actions = rng.integers(0, 2, len(ids))
            found = envs.step(actions, ids)
            expected = [alone[index].step(actions[place : place + 1]) for place, index in enumerate(ids)]
            for place, each in enumerate(expected):
                assert np.allclose(found[0][place], each[0][0], atol=1e-6)
                assert [results[place] for results in found[1:4]] == [results[0] for results in each[1:4]]
            assert ("final_obs" in found[4]) == any("final_obs" in each[4] for each in expected)
            if mode is AutoresetMode.DISABLED:
                for place in np.flatnonzero(found[2] | found[3]).tolist():
                    seed = int(rng.integers(100))
                    obs, _ = envs.reset(seed=[seed], env_ids=[ids[place]])
                    assert np.allclose(obs, alone[ids[place]].reset(seed=seed)[0], atol=1e-6)


@pytest.mark.parametrize("name", ["Dict", "image", "Text"])
def test_subsets_of_spaces(name: str) -> None:
    """Observations of a subset have the types of the whole batch."""
    ids = [4, 1, 5]
    with closing(_made(ENVS[name], num_workers=2)) as envs:
        alone = SyncVectorEnv([ENVS[name]] * len(ids))
        envs.reset(seed=1)
        alone.reset(seed=[1 + index for index in ids])
        alone.action_space.seed(2)
        for _ in range(12):
            actions = alone.action_space.sample()
            assert_same(envs.step(actions, ids), alone.step(actions))


def test_infos_of_a_subset() -> None:
    """Arrays and masks have the rows of the subset; keys of others are not there."""

    def infos(calls: int) -> dict[str, Any]:
        return {"calls": calls} | ({"third": "yes"} if calls == 3 else {})

    with closing(_made(lambda: ScriptedEnv(infos, length=100), num_workers=3)) as envs:
        envs.reset(seed=1)
        assert_same(envs.step([0, 0], [5, 0])[4], {"calls": np.array([2, 2]), "_calls": np.array([True, True])})
        assert_same(
            envs.step([0, 0], [1, 5])[4],
            {
                "calls": np.array([2, 3]),
                "_calls": np.array([True, True]),
                "third": np.array([None, "yes"], dtype=object),
                "_third": np.array([False, True]),
            },
        )


@pytest.mark.parametrize("ids", [[], [0, 0], [6], [-1], ["a"], np.zeros(3, bool)], ids=repr)
def test_invalid_indices(ids: Any) -> None:
    """They are refused; the next step is legal."""
    with closing(_made("CartPole-v1", backend="python")) as envs:
        envs.reset(seed=1)
        with pytest.raises(tandem.InvalidArgument, match="env_ids: expected"):
            envs.step([0] * len(ids), ids)
        envs.step([0, 1], [2, 3])
        with pytest.raises(tandem.InvalidAction):
            envs.step([0, 1, 1], [2, 3])


def test_halves() -> None:
    """Each half gives the results of its environments, while the other is in a step."""
    with closing(_made(ENVS["CartPole"], num_workers=3, autoreset_mode="SameStep")) as envs:
        assert isinstance(envs, tandem.vector.WorkerVectorEnv)
        ids = [envs.half_ids(0), envs.half_ids(1)]
        assert ids == [[0, 1], [2, 3, 4, 5]]
        both = [SyncVectorEnv([ENVS["CartPole"]] * len(half), autoreset_mode=AutoresetMode.SAME_STEP) for half in ids]
        envs.reset(seed=1)
        for half, sync in enumerate(both):
            sync.reset(seed=1 + ids[half][0])
            sync.action_space.seed(half)
        actions = [sync.action_space.sample() for sync in both]
        envs.send(actions[0], half=0)
        with pytest.raises(tandem.StepPending):
            envs.send(actions[0], half=0)
        for _ in range(60):
            envs.send(actions[1], half=1)
            for half in (0, 1):
                assert_same(envs.recv(half=half), both[half].step(actions[half]))
                actions[half] = both[half].action_space.sample()
                if half == 0:
                    envs.send(actions[0], half=0)
        with pytest.raises(tandem.NoStepPending):
            envs.recv(half=1)
        with pytest.raises(tandem.InvalidArgument, match=r"half: expected an integer in 0 \.\. 1"):
            envs.recv(half=2)
        assert_same(envs.reset(seed=9)[0], SyncVectorEnv([ENVS["CartPole"]] * NUM_ENVS).reset(seed=9)[0])
        envs.step(np.zeros(NUM_ENVS, int))


@pytest.mark.parametrize("backend", ["native", "python"])
def test_action_that_is_not_finite(backend: str) -> None:
    """It is refused, and does not hinder steps of other environments."""
    with closing(_made("Pendulum-v1", backend=backend)) as envs:
        envs.reset(seed=1)
        with pytest.raises(tandem.InvalidAction):
            envs.step(np.full((1, 1), np.nan, np.float32), [3])
        assert envs.step(np.zeros((2, 1), np.float32), [1, 5])[1].shape == (2,)
        if backend == "python":
            with pytest.raises(tandem.InvalidAction):
                envs.send(np.full((4, 1), np.nan, np.float32), half=1)  # type: ignore[call-arg]
            envs.send(np.zeros((len(envs.half_ids(0)), 1), np.float32), half=0)  # type: ignore[attr-defined, call-arg]


def test_halves_without_autoreset() -> None:
    """An episode that has ended must be reset first."""
    with closing(_made(lambda: ScriptedEnv(length=1), num_workers=2, autoreset_mode="Disabled")) as envs:
        envs.reset(seed=1)
        for _ in range(2):
            envs.send([0, 0, 0], half=1)  # type: ignore[call-arg]
            assert envs.recv(half=1)[2].all()  # type: ignore[call-arg]
            with pytest.raises(tandem.InvalidArgument, match=r"found environments \[3, 4, 5\]"):
                envs.send([0, 0, 0], half=1)  # type: ignore[call-arg]
            envs.reset(env_ids=[3, 4, 5])


def test_no_batches_for_stable_baselines3() -> None:
    """It steps all environments."""
    with closing(_made(ScriptedEnv, num_workers=2, engine=tandem.WorkerOptions(batch_size=3))) as envs:
        with pytest.raises(tandem.InvalidArgument, match="batch_size=3"):
            envs.as_sb3()


def test_batches() -> None:
    """`recv` returns those that are ready first; each environment sees its own actions in their order."""
    two = tandem.WorkerOptions(batch_size=2)
    with closing(_made(ENVS["CartPole"], num_workers=6, engine=two, autoreset_mode="SameStep")) as envs:
        alone = [SyncVectorEnv([ENVS["CartPole"]], autoreset_mode=AutoresetMode.SAME_STEP) for _ in range(NUM_ENVS)]
        envs.reset(seed=1)
        for index, one in enumerate(alone):
            one.reset(seed=1 + index)
        rng = np.random.default_rng(1)
        sent = rng.integers(0, 2, NUM_ENVS)
        envs.send(sent)
        steps = np.zeros(NUM_ENVS, int)
        for _ in range(200):
            obs, rewards, terminations, truncations, infos = envs.recv()
            ids = infos["env_id"]
            assert ids.dtype == np.int64 and len(set(ids)) == 2
            for place, index in enumerate(ids):
                each = alone[index].step(sent[index : index + 1])
                assert_same(obs[place], each[0][0])
                found = rewards[place], terminations[place], truncations[place]
                assert found == (each[1][0], each[2][0], each[3][0])
            steps[ids] += 1
            sent[ids] = rng.integers(0, 2, len(ids))
            envs.send(sent[ids], ids)
        assert steps.min() > 0
        envs.reset(seed=2)
        with pytest.raises(tandem.NoStepPending):
            envs.recv()
        with pytest.raises(tandem.InvalidArgument, match="batch_size: expected a multiple of"):
            tandem.make_vec(ENVS["CartPole"], 5, num_workers=2, engine=two)
