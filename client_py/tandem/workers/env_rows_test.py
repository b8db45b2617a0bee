"""EnvRows compared with Gymnasium's SyncVectorEnv; reset flags, episodes, arguments."""

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tandem
from tandem import _native
from tandem.testing.row_workers import RESET, RESET_ONLY, SEEDED, SKIP, STEP, RowWorkers, Stop, started
from tandem.testing.sample_envs import RandomEnv, Results, ScriptedEnv
from tandem.testing.sample_spaces import FIXED, PICKLED, assert_same
from tandem.testing.sync_parity import ENVS, NUM_ENVS, assert_parity
from tandem.workers.env_failures import failure

MODES = list(AutoresetMode)


def _both(
    env_fn: Callable[[], gymnasium.Env[Any, Any]], mode: AutoresetMode, num_workers: int = 2
) -> tuple[SyncVectorEnv[Any, Any], RowWorkers]:
    envs = [env_fn() for _ in range(NUM_ENVS)]
    return SyncVectorEnv([env_fn] * NUM_ENVS, autoreset_mode=mode), RowWorkers(envs, mode, num_workers)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ENVS)
def test_results_equal_sync_vector_envs(name: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags and infos have the same types and digits."""
    for seed, num_workers in ((1, 2), (2, 3)):
        assert assert_parity(*_both(ENVS[name], mode, num_workers), steps=150, seed=seed) > 3


@pytest.mark.parametrize(
    "name", [name for name in FIXED | PICKLED if "without keys" not in name and "without items" not in name]
)
def test_observations_and_actions_of_all_spaces(name: str) -> None:
    """The environments get the same actions, and return samples. Gymnasium cannot iterate over the two left out."""
    space = (FIXED | PICKLED)[name]
    env_fn = functools.partial(RandomEnv, space, space)
    assert assert_parity(*_both(env_fn, AutoresetMode.SAME_STEP), steps=20, seed=3) == 2 * NUM_ENVS


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_environment_that_uses_its_array_again(mode: AutoresetMode) -> None:
    """In these modes SyncVectorEnv is right, too."""
    assert assert_parity(*_both(ScriptedEnv, mode), steps=20, seed=3) > 0


def test_final_obs_is_copied_before_the_reset() -> None:
    """The environment's reset overwrites the array. SyncVectorEnv then returns the reset's observation."""
    sync, ours = _both(ScriptedEnv, AutoresetMode.SAME_STEP)
    for envs in (sync, ours):
        envs.reset()
    for _ in range(3):
        expected, found = (envs.step(np.zeros(NUM_ENVS, int)) for envs in (sync, ours))
    assert [obs[0] for obs in expected[4]["final_obs"]] == [0] * NUM_ENVS
    assert [obs[0] for obs in found[4]["final_obs"]] == [3] * NUM_ENVS
    assert_same(found[0], expected[0])


def _without(results: Results, place: int, value: Any) -> Results:
    return (*results[:place], value, *results[place + 1 :])


@pytest.mark.parametrize(
    "reward",
    [
        *(1.5, -0.0, float("nan"), 3, True, 10**300, np.float64(1.1), np.float32(1.1), np.float16(1.1), np.int64(-3)),
        *(np.uint8(200), np.longdouble(1.1), np.True_, np.array(1.1), np.array(3)),
    ],
    ids=repr,
)
def test_rewards_of_all_types(reward: Any) -> None:
    """NumPy converts them to float64."""
    sync, ours = _both(
        lambda: ScriptedEnv(on_step=lambda env, results: _without(results, 1, reward)), AutoresetMode.NEXT_STEP
    )
    assert_parity(sync, ours, steps=5, seed=0)
    with np.errstate(over="ignore"):
        assert_same(ours.arrays.rewards, ours.arrays.reward.astype(np.float32))


def _with_flag(place: int, flag: Any, env: ScriptedEnv, results: Results) -> Results:
    return _without(_without(results, 0, env.obs.copy()), place, flag)


@pytest.mark.parametrize(
    "flag",
    [
        *(True, False, np.True_, np.False_, 1, 0, 0.5, float("nan"), None, "", "no"),
        [],
        [0],
        {},
        np.array(True),
        np.ones(1),
    ],
    ids=repr,
)
def test_flags_of_all_types(flag: Any) -> None:
    """The flags are the truth of any object."""
    for place in (2, 3):
        env_fn = functools.partial(ScriptedEnv, on_step=functools.partial(_with_flag, place, flag))
        assert_parity(*_both(env_fn, AutoresetMode.SAME_STEP), steps=5, seed=0)


def test_results_as_a_list() -> None:
    """SyncVectorEnv unpacks any sequence."""
    env_fn = functools.partial(
        ScriptedEnv, on_step=lambda env, results: list(results), on_reset=lambda env, results: list(results)
    )
    assert_parity(*_both(env_fn, AutoresetMode.NEXT_STEP), steps=10, seed=0)


def test_episodes_are_counted() -> None:
    """Return and length are written in the step that ends the episode, and stay."""
    for mode in MODES:
        workers = started(*(ScriptedEnv(length=length) for length in (2, 3, 4)), mode=mode)
        for step in range(1, 4):
            workers.run(STEP)
            returns, lengths = workers.arrays.episode_return, workers.arrays.episode_length
            assert list(returns) == [3 * (step >= 2), 6 * (step >= 3), 0]
            assert list(lengths) == [2 * (step >= 2), 3 * (step >= 3), 0]
            assert list(workers.arrays.dones) == [step == 2, step == 3, 0]


def test_second_episode_begins_at_zero() -> None:
    """Also if a flag has cut the first one."""
    workers = started(ScriptedEnv(length=2), ScriptedEnv(length=2), mode=AutoresetMode.SAME_STEP)
    workers.run(STEP)
    workers.arrays.resets[1] = RESET
    workers.run(STEP)
    assert list(workers.arrays.dones) == [1, 0]
    workers.run(STEP)
    workers.run(STEP)
    assert list(workers.arrays.episode_return) == [3, 3] and list(workers.arrays.episode_length) == [2, 2]


def _values(workers: RowWorkers, env_id: int) -> list[Any]:
    arrays: list[Any] = [*workers.arrays, workers.observations.array]
    return [np.copy(array[env_id]) for array in arrays]


@pytest.mark.parametrize("kind", [STEP, RESET_ONLY])
def test_skipped_environments_keep_all_values(kind: int) -> None:
    """They are not called, and have no infos."""
    envs = [ScriptedEnv(lambda step: {"step": step}) for _ in range(4)]
    workers = started(*envs)
    workers.run(STEP)
    before, calls = _values(workers, 1), list(envs[1].calls)
    workers.arrays.resets[:] = [RESET, SKIP, RESET, RESET]
    for worker in workers.workers:
        assert worker.run(kind, 1) == []
    workers.arrays.resets[1] = 0
    assert_same(_values(workers, 1), before)
    assert envs[1].calls == calls
    assert_same(workers.infos.read(), {"step": np.array([3, 0, 3, 3]), "_step": np.array([True, False, True, True])})


def test_flags_reset_some_environments_and_the_others_step() -> None:
    """A flag has priority over the reset of an ended episode; seeds are for this flag only."""
    envs = [ScriptedEnv(length=1) for _ in range(4)]
    workers = started(*envs)
    workers.actions.write([1, 2, 3, 4])
    workers.run(STEP)
    assert list(workers.arrays.dones) == [1] * 4
    workers.arrays.resets[:] = [RESET, RESET | SEEDED, SKIP | RESET, 0]
    workers.arrays.reset_seeds[:] = 2**64 - 1
    workers.run(STEP, {"a": 1})
    assert [env.calls[-1] for env in envs] == [("reset", None), ("reset", 2**64 - 1), ("reset", None), ("reset", None)]
    assert [env.options for env in envs] == [{"a": 1}, {"a": 1}, {"a": 1}, None]
    assert list(workers.arrays.reward) == [0] * 4 and list(workers.arrays.dones) == [0] * 4
    workers.run(STEP)
    assert [env.calls[-1] for env in envs] == [("step", action) for action in (1, 2, 3, 4)]


def test_reset_only_leaves_environments_without_a_flag() -> None:
    """An ended episode stays ended."""
    envs = [ScriptedEnv(length=1) for _ in range(3)]
    workers = started(*envs)
    workers.run(STEP)
    before = _values(workers, 1)
    workers.arrays.resets[0] = RESET
    workers.run(RESET_ONLY)
    assert_same(_values(workers, 1), before)
    assert [len(env.calls) for env in envs] == [3, 2, 2]
    workers.run(STEP)
    assert [env.calls[-1][0] for env in envs] == ["step", "reset", "reset"]


def test_disabled_autoreset_steps_on_after_the_end() -> None:
    """The trainer process refuses such a step before it is sent."""
    workers = started(ScriptedEnv(length=1), ScriptedEnv(length=9), mode=AutoresetMode.DISABLED)
    for _ in range(2):
        assert workers.run(STEP) == []
    assert list(workers.arrays.reward) == [2, 2]


def test_current_is_the_environment_in_work() -> None:
    """An observer in another process reads it."""
    seen: list[list[int]] = []

    def on_step(env: ScriptedEnv, results: Results) -> Results:
        seen.append(list(workers.current))
        return results

    workers = started(*(ScriptedEnv(on_step=on_step) for _ in range(4)))
    idle = _native.NO_ENVIRONMENT
    workers.run(STEP)
    assert seen == [[idle, 2], [idle, 3], [0, idle], [1, idle]]
    assert list(workers.current) == [idle, idle]


def test_replaced_step_is_used() -> None:
    """Such as by a debugger or a test."""
    env = ScriptedEnv()
    workers = started(env, ScriptedEnv())
    env.step = lambda action: (env.obs, 5, False, False, {})  # type: ignore[method-assign]
    workers.run(STEP)
    assert list(workers.arrays.reward) == [5, 1]


def test_environment_that_calls_run() -> None:
    """The call raises, which is a failure of this environment."""
    workers = RowWorkers([ScriptedEnv(on_step=lambda env, results: workers.workers[0].run(0, 0))], num_workers=1)
    workers.reset()
    ((_, error, _),) = workers.run(STEP)
    assert isinstance(error, tandem.ConcurrentUse)


@pytest.mark.parametrize("space", [spaces.Box(-1, 1, (2,)), spaces.Dict(a=spaces.MultiDiscrete([3, 3]))])
def test_actions_are_the_environments_to_keep(space: spaces.Space[Any]) -> None:
    """The next step does not change them."""
    env: Any = ScriptedEnv()
    env.action_space = space
    workers = started(env)
    batch: Any = [[1, 1]] if isinstance(space, spaces.Box) else {"a": [[1, 1]]}
    for factor in (1, 0):
        workers.actions.write([[factor, factor]] if isinstance(space, spaces.Box) else {"a": [[factor, factor]]})
        workers.run(STEP)
    kept = env.calls[1][1]
    assert_same(kept, space.sample() * 0 + 1 if isinstance(space, spaces.Box) else {"a": np.array(batch["a"][0])})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rewards": np.zeros(2)}, r"rewards: expected a writable float32\[2\], found float64\[2\]"),
        ({"status": np.zeros(3, np.uint8)}, r"status: expected a writable uint8\[2\], found uint8\[3\]"),
        ({"dones": np.zeros(4, np.uint8)[::2]}, r"dones: expected a writable uint8\[2\], found uint8\[2\]"),
        ({"resets": [0, 0]}, r"resets: expected a writable uint8\[2\], found list"),
        (
            {"info_area": np.zeros(64, np.uint8)},
            "info_bytes: expected 80 .. 1073741824 bytes for 2 environments, found 64",
        ),
        ({"info_area": np.zeros(2**12, np.int8)}, r"info_area: expected a writable uint8\[bytes\], found int8\[4096\]"),
        ({"current": np.zeros(2, np.uint32)}, r"current: expected a writable uint32\[1\], found uint32\[2\]"),
    ],
)
def test_arrays_that_do_not_fit(change: dict[str, Any], text: str) -> None:
    """The constructor refuses them."""
    workers = RowWorkers([ScriptedEnv(), ScriptedEnv()], num_workers=1)
    keywords = {
        "observations": workers.observations,
        "final_observations": workers.final_observations,
        "actions": workers.actions,
        "info_area": workers.areas[0].area,
        "current": workers.current,
        "stop": Stop,
        "failure": failure,
    }
    arrays = workers.arrays._replace(**{key: value for key, value in change.items() if key not in keywords})
    keywords.update({key: value for key, value in change.items() if key in keywords})
    with pytest.raises(tandem.InvalidArgument, match=text):
        _native.EnvRows(workers.envs, arrays, **keywords)  # type: ignore[arg-type]


def test_observations_of_a_read_only_array() -> None:
    """NumPy refuses the write: the memory may be mapped for reading only."""
    workers = RowWorkers([ScriptedEnv()], num_workers=1)
    array = workers.observations.array
    assert array is not None
    array.setflags(write=False)
    rows = _native.EnvRows(
        workers.envs,
        workers.arrays,
        observations=workers.observations,
        final_observations=workers.final_observations,
        actions=workers.actions,
        info_area=workers.areas[0].area,
        current=workers.current,
        stop=Stop,
        failure=failure,
    )
    workers.arrays.resets[:] = RESET
    ((_, error, _),) = rows.run(RESET_ONLY, 0)
    assert isinstance(error, ValueError) and "read-only" in str(error)


def test_unknown_kind_and_mode() -> None:
    """The numbers come from the region."""
    workers = RowWorkers([ScriptedEnv()], num_workers=1)
    for kind, mode in ((2, 0), (0, 3)):
        with pytest.raises(tandem.InvalidArgument, match=f"found {kind} and {mode}"):
            workers.workers[0].run(kind, mode)
