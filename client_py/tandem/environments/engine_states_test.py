"""States of environments in an engine: saved, loaded into other rows and processes, damaged, refused."""

import random
from contextlib import closing
from typing import Any

import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import tandem
from tandem.environments.sealed_state import ENGINE, sealed
from tandem.services import SimulationContract
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.python_engines import Counter, serving
from tandem.testing.sample_spaces import assert_same

_ENVS = 3
_STEPS = 200
_TASKS = sorted(tandem.list_tasks())
_RANDOMIZED = SimulationContract(
    friction_range=(0.5, 1.5),
    mass_scale_range=(0.8, 1.2),
    com_offset_range=(-0.01, 0.01),
    motor_strength_range=(0.8, 1.2),
    push_interval_range=(0.05, 0.2),
    push_velocity_range=(0.1, 0.5),
    joint_position_noise=0.01,
)
_NO_CONTRACTS = ("CartPole-v1", "Pendulum-v1")


def _opened(engine: Any, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> tandem.SharedMemoryVectorEnv:
    name = getattr(engine, "name", engine)
    client = tandem.SharedMemoryClient(name, timeout=60, autoreset_mode=tandem.AutoresetMode[mode.name])
    return tandem.SharedMemoryVectorEnv(client)


def _launched(task: str, num_envs: int = _ENVS, **options: Any) -> Any:
    return tandem.launch_engine(task, num_envs=num_envs, threads=1, **options)


def _stepped(envs: Any, actions: Any) -> Any:
    """Steps; with autoreset disabled, episodes that have ended are reset first."""
    if envs.autoreset_mode is AutoresetMode.DISABLED and (ended := np.flatnonzero(envs.client.dones)).size:
        envs.reset(env_ids=ended)
    return envs.step(actions)


def _rows(results: Any, order: list[int]) -> Any:
    """Returns the rows of results in another order."""
    if isinstance(results, dict):
        return {key: _rows(value, order) for key, value in results.items()}
    if isinstance(results, tuple | list):
        return tuple(_rows(value, order) for value in results)
    return results[order]


@pytest.mark.filterwarnings("ignore::tandem.services.UnusedContractFields")
@pytest.mark.parametrize("task", _TASKS)
def test_the_future_of_a_state_is_the_same(task: str) -> None:
    """In each autoreset mode, with and without a contract; here, in other rows, and in another engine."""
    with _launched(task, max_episode_steps=30) as engine, _launched(task, max_episode_steps=30) as another:
        for mode in AutoresetMode:
            for contract in (None,) if task in _NO_CONTRACTS else (None, _RANDOMIZED):
                _check_futures(engine, another, mode, contract)


def _check_futures(engine: Any, another: Any, mode: AutoresetMode, contract: SimulationContract | None) -> None:
    with closing(_opened(engine, mode)) as envs, closing(_opened(another, mode)) as others:
        envs.reset(seed=5, options={"contract": contract} if contract else None)
        envs.action_space.seed(7)
        for step in range(40):
            last = _stepped(envs, envs.action_space.sample())
            if step > 5 and (last[2] | last[3]).any():
                break
        states = envs.save_state()
        actions = [envs.action_space.sample() for _ in range(_STEPS)]
        future = [_stepped(envs, action) for action in actions]
        obs, _ = envs.load_state(states)
        assert_same(obs, last[0])
        for action, expected in zip(actions, future, strict=True):
            assert_same(_stepped(envs, action), expected)
        order = [2, 0, 1]
        obs, _ = others.load_state([states[i] for i in order])
        assert_same(obs, last[0][order])
        for action, expected in zip(actions[:50], future, strict=False):
            assert_same(_stepped(others, action[order]), _rows(expected, order))


def test_copies_for_planning() -> None:
    """One state in 64 environments: equal actions, equal futures; others as in a single run."""
    with _launched("Humanoid-v5", 64) as engine, closing(_opened(engine)) as envs:
        envs.reset(seed=1)
        envs.action_space.seed(2)
        for _ in range(3):
            envs.step(envs.action_space.sample())
        (state,) = envs.save_state([40])
        envs.load_state([state] * 64)
        for _ in range(5):
            results = envs.step(np.repeat(envs.single_action_space.sample()[None], 64, axis=0))
            assert all((results[0] == results[0][0]).all(axis=1)) and np.unique(results[1]).size == 1
        different = [envs.action_space.sample() for _ in range(5)]
        envs.load_state([state] * 64)
        branches = [envs.step(actions) for actions in different]
        for i in (0, 17, 63):
            envs.load_state([state], env_ids=[9])
            for actions, expected in zip(different, branches, strict=True):
                obs, rewards, *_ = envs.step(actions[[i]], env_ids=[9])
                assert_same(obs[0], expected[0][i])
                assert rewards[0] == expected[1][i]


def test_moved_bodies_and_controls_are_part_of_a_state() -> None:
    """Changes by services, also in an environment without them; the next client starts without."""
    with _launched("Ant-v5", 2) as engine:
        with closing(_opened(engine)) as envs:
            envs.reset(seed=1)
            leg = envs.client.scene.entity("front_left_leg").id
            envs.client.scene.set_transform(leg, env_id=0, position=(0.3, 0.3, 0.9))
            envs.client.mujoco.send_control([0.5] * 8, env_ids=[0])
            states = envs.save_state()
            future = [envs.step(np.zeros((2, 8), np.float32)) for _ in range(5)]
            envs.load_state(states[::-1])
            for expected in future:
                assert_same(envs.step(np.zeros((2, 8), np.float32)), _rows(expected, [1, 0]))
            envs.client.states.load(states)  # no reset follows
        with closing(_opened(engine)) as envs:
            first = envs.reset(seed=1)[0]
            assert_same(envs.load_state(envs.save_state())[0], first)


def test_an_ended_episode_in_another_mode() -> None:
    """Saved with NEXT_STEP: with SAME_STEP the next episode begins at once."""
    with _launched("Hopper-v5", max_episode_steps=5) as engine:
        with closing(_opened(engine)) as envs:
            envs.reset(seed=1)
            for _ in range(5):
                obs, *_ = envs.step(np.zeros((_ENVS, 3), np.float32))
            states = envs.save_state()
            next_obs, rewards, *_ = envs.step(np.zeros((_ENVS, 3), np.float32))
            assert not rewards.any()
        with closing(_opened(engine, AutoresetMode.SAME_STEP)) as envs:
            loaded, _ = envs.load_state(states)
            assert_same(loaded, next_obs)
            assert (loaded != obs).any(axis=1).all()


def test_refused_states_change_nothing() -> None:
    """Damaged, of another task or model, of a newer version, or too few of them; and while a step is pending."""
    with _launched("HalfCheetah-v5") as engine, _launched("Hopper-v5") as another, closing(_opened(engine)) as envs:
        with closing(_opened(another)) as others:
            foreign = others.save_state([0])[0]
        envs.reset(seed=3)
        states = envs.save_state()
        good, chance = states[1], random.Random(7)
        mark = int.from_bytes(good[8:16], "little")
        model = mujoco.MjModel.from_xml_path(envs.client.scene.info().scene_path)
        full = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION) * 8
        assert len(good) <= 1.5 * full
        wrong: list[tuple[Any, type[Exception]]] = [
            (good[:-1], tandem.InvalidArgument),
            (b"", tandem.InvalidArgument),
            (7, tandem.InvalidArgument),
            (foreign, tandem.LayoutMismatch),
            (good[:4] + b"\2" + good[5:], tandem.LayoutMismatch),
            (sealed(ENGINE, mark, good[28:-1]), tandem.InvalidArgument),  # behind a valid checksum
            (sealed(ENGINE, mark, good[28:] + b"x"), tandem.InvalidArgument),
            (sealed(ENGINE, mark, b"\7" + good[29:]), tandem.InvalidArgument),
        ]
        for _ in range(50):
            flipped = bytearray(good)
            flipped[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
            wrong.append((bytes(flipped), tandem.TandemError))
        actions = envs.action_space.sample()
        future = envs.step(actions)
        envs.load_state(states)
        for state, kind in wrong:
            with pytest.raises(kind):
                envs.load_state([states[0], state, states[2]])
        with pytest.raises(tandem.InvalidArgument, match="expected 3, one for each"):
            envs.load_state(states[:2])
        assert_same(envs.step(actions), future)
        envs.send(actions)
        with pytest.raises(tandem.StepPending):
            envs.save_state()
        envs.load_state(states)  # drops the step, as a reset does
        assert_same(envs.step(actions), future)


def test_an_attendant_saves_and_does_not_load() -> None:
    """By name; what it saved the client loads."""
    with _launched("HalfCheetah-v5") as engine, closing(_opened(engine)) as envs:
        envs.reset(seed=1)
        with tandem.Attendant(engine.name, timeout=60) as panel:
            states = panel.states.save()
            with pytest.raises(tandem.Unsupported, match="LoadStates: expected the client"):
                panel.states.load(states)
        actions = envs.action_space.sample()
        future = envs.step(actions)
        envs.load_state(states)
        assert_same(envs.step(actions), future)


class _Saved(Counter):
    """Saves its counts."""

    def save_state(self, env: int) -> bytes:
        return int(self.count[env]).to_bytes(8, "little")

    def load_state(self, env: int, data: bytes) -> None:
        self.count[env] = int.from_bytes(data, "little")


def test_an_engine_in_python_saves_its_own_part() -> None:
    """Rows and pending resets are the host's; an engine without the methods is named as such."""
    with serving(_Saved(truncate_after=4)) as engine, closing(_opened(engine)) as envs:
        _check_counts(envs)
    with serving(Counter()) as engine, closing(_opened(engine)) as envs:
        with pytest.raises(tandem.Unsupported, match="SaveStates"):
            envs.save_state()


def test_the_reset_of_a_step_puts_a_state_in_place() -> None:
    """Given without a reset; the episode ends in a later step."""
    with serving(_Saved(truncate_after=4)) as engine, closing(_opened(engine, AutoresetMode.SAME_STEP)) as envs:
        ones = np.ones((envs.num_envs, 3), np.float32)
        envs.reset(seed=0)
        for _ in range(2):
            saved = envs.step(ones)[0].copy()
        envs.client.states.load(envs.save_state())
        envs.step(ones)
        ended = envs.step(ones)
        assert ended[3].all()
        assert_same(ended[0], saved)


def _check_counts(envs: Any) -> None:
    ones = np.ones((envs.num_envs, 3), np.float32)
    envs.reset(seed=0)
    for _ in range(4):
        last = envs.step(ones)
    assert last[3].all()
    states = envs.save_state()
    future = [envs.step(ones) for _ in range(6)]
    obs, _ = envs.load_state(states)
    assert_same(obs, last[0])
    for expected in future:
        assert_same(envs.step(ones), expected)


def _reward(step: Any) -> NDArray[np.float64]:
    reward: NDArray[np.float64] = step.obs[:, 0].astype(np.float64) + step.steps
    return reward


def _observation(step: Any) -> NDArray[np.float32]:
    return np.concatenate([step.obs, step.actions], axis=1)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_own_rewards(mode: AutoresetMode) -> None:
    """Episodes that the trainer counts and ends."""
    with closing(
        tandem.make_vec(
            "Hopper-v5",
            _ENVS,
            autoreset_mode=mode,
            options=tandem.TaskOptions(
                reward=_reward, terminated=lambda step: step.steps >= 7 + np.arange(_ENVS), observation=_observation
            ),
        )
    ) as envs:
        envs.reset(seed=3)
        envs.action_space.seed(4)
        for _ in range(7):
            last = envs.step(envs.action_space.sample())
        assert last[2].any()
        states = envs.save_state()
        actions = [envs.action_space.sample() for _ in range(30)]
        future = [_stepped(envs, action) for action in actions]
        obs, _ = envs.load_state(states)
        assert_same(obs, last[0])
        for action, expected in zip(actions, future, strict=True):
            assert_same(_stepped(envs, action), expected)
        other = tandem.TaskOptions(observation=lambda step: step.obs.astype(np.float64))
        with closing(tandem.make_vec("Hopper-v5", _ENVS, autoreset_mode=mode, options=other)) as others:
            with pytest.raises(tandem.LayoutMismatch, match="own rewards and observations"):
                others.load_state(states)
