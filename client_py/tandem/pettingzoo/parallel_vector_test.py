"""`tandem.pettingzoo.parallel_vec` with environments that need no package; tests/environments has PettingZoo's own."""

import functools
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import tandem
from tandem.pettingzoo.joint_env import JointEnv
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.parallel_envs import LoopedEnvs, Tag, assert_rows


class _DictTag(Tag):
    """Has observations in a Dict, as environments with masks of actions do, and actions in a Box."""

    def observation_space(self, agent: str) -> Any:
        """Returns a Dict."""
        return spaces.Dict(action_mask=spaces.MultiBinary(3), observation=super().observation_space(agent))

    def action_space(self, agent: str) -> Any:
        """Returns a Box."""
        return spaces.Box(-1, 1, (1,), np.float32)

    def _observed(self, agent: str) -> Any:
        return {"action_mask": np.array([1, 0, 1], np.int8), "observation": super()._observed(agent)}


class _Unequal(Tag):
    """Its agents have different action spaces."""

    def action_space(self, agent: str) -> Any:
        """Returns a space of this agent."""
        return spaces.Discrete(3 + (agent == "blue"))


@pytest.mark.parametrize("env", [Tag, _DictTag])
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_equals_a_loop(mode: AutoresetMode, env: type[Tag]) -> None:
    """Rows, infos and resets are those of environments that are stepped in a loop; agents end before others."""
    with closing(tandem.pettingzoo.parallel_vec(env, 4, num_workers=2, autoreset_mode=mode)) as ours:
        assert ours.num_envs == 12 and ours.num_parallel_envs == 4 and ours.possible_agents == ["red", "green", "blue"]
        assert ours.autoreset_mode is mode
        counts = assert_rows(ours, LoopedEnvs([env() for _ in range(4)], mode), 100, seed=3)
        assert min(counts.values()) > 20, counts


def test_statistics_of_episodes() -> None:
    """RecordEpisodeStatistics has the returns and lengths of each agent's episodes."""
    with closing(RecordEpisodeStatistics(tandem.pettingzoo.parallel_vec(Tag, 2))) as envs:
        _, infos = envs.reset(seed=0)
        last = np.minimum(infos["last"], 12)
        lengths = np.zeros(6, int)
        for _ in range(12):
            infos = envs.step(np.ones(6, int))[4]
            if "episode" in infos:
                new = infos["_episode"] & (lengths == 0)
                lengths[new] = infos["episode"]["l"][new]
        assert lengths.tolist() == last.tolist()


def test_seeds_and_masks() -> None:
    """A seed of an environment is that of its first row. Parts of a live environment are refused."""
    with closing(tandem.pettingzoo.parallel_vec(Tag, 2, autoreset_mode="Disabled")) as envs:
        first, _ = envs.reset(seed=[7, 0, 0, 9, 0, 0])
        again, _ = envs.reset(seed=[7, 1, 1, 9, 1, 1])
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first[:3], first[3:])
        with pytest.raises(tandem.InvalidArgument, match="all agents of an environment.*environments \\[1\\]"):
            envs.reset(options={"reset_mask": np.array([1, 1, 1, 1, 0, 0], bool)})
        with pytest.raises(tandem.InvalidArgument, match="seed: expected 6 seeds"):
            envs.reset(seed=[1, 2])
        assert envs.step(np.zeros(6, int))[0].shape == (6, 2)


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_resets_of_others_change_no_row(mode: AutoresetMode) -> None:
    """Padding stays zero, and other rows are the environments' own, also if the caller wrote into the last results."""
    with closing(tandem.pettingzoo.parallel_vec(Tag, 2, autoreset_mode=mode)) as envs:
        envs.reset(seed=0)
        ended = np.zeros(6, bool)
        while not (some := ended.reshape(2, 3).any(axis=1) & ~ended.reshape(2, 3).all(axis=1)).any():
            assert not ended.any()
            obs, _, terminations, truncations, _ = envs.step(np.ones(6, int))
            ended = terminations | truncations
        own = np.repeat(np.arange(2) == np.argmax(some), 3)
        padding = ended & own
        expected = obs.copy()
        expected[padding] = 0
        obs[:] = 7
        if mode is AutoresetMode.DISABLED:
            found, infos = envs.reset(options={"reset_mask": padding.copy()})
            assert infos == {}
            np.testing.assert_array_equal(found[own], expected[own])
        found, infos = envs.reset(options={"reset_mask": ~own})
        np.testing.assert_array_equal(found[own], expected[own])
        assert not np.array_equal(found[~own], expected[~own]) and not infos["_last"][own].any()


def test_options_of_each_environment() -> None:
    """`reset_each` is for Stable-Baselines3: the options of a row that is an environment's first are its own."""

    class Told(Tag):
        """Has its options in the infos."""

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            """Starts an episode."""
            observations, infos = super().reset(seed)
            return observations, {agent: info | {"told": str(options)} for agent, info in infos.items()}

    with closing(tandem.pettingzoo.parallel_vec(Told, 3, num_workers=2)) as envs:
        plain, _ = envs.reset(seed=5)
        obs, parts = envs.reset_each([{"level": row} if row < 6 else None for row in range(9)], seed=5)
        np.testing.assert_array_equal(obs, plain)
        told = {row: infos["told"][row] for rows, infos in parts for row in rows}
        assert [told[row] for row in range(9)] == ["{'level': 0}"] * 3 + ["{'level': 3}"] * 3 + ["None"] * 3
        with pytest.raises(tandem.InvalidArgument, match="options: expected 9, one for each row, found 3"):
            envs.reset_each([None] * 3)


@pytest.mark.parametrize(
    ("env", "actions", "text"),
    [
        (Tag, np.zeros(3, int), r"expected int64\[6\], found int64\[3\]; nothing was sent"),
        (Tag, np.zeros(6), r"expected int64\[6\], found float64\[6\]; nothing was sent"),
        (Tag, [0, 0, 0, 0, "up", 0], r"expected .*, found .*; nothing was sent"),
        (_DictTag, np.zeros((6, 2)), r"expected float32\[6, 1\], found float64\[6, 2\]; nothing was sent"),
        (
            _DictTag,
            np.array([[0.0]] * 4 + [[np.nan], [0]]),
            "expected finite values, found .*nan.* for agent 'green' of environment 1 .row 4.",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_invalid_actions_name_rows_and_agents(env: type[Tag], actions: Any, text: str) -> None:
    """As the caller knows them: rows, not environments with several agents. The next step is legal."""
    with closing(tandem.pettingzoo.parallel_vec(env, 2)) as envs:
        envs.reset(seed=0)
        with pytest.raises(tandem.InvalidAction, match=f"^actions: {text}"):
            envs.step(actions)
        envs.step(envs.action_space.sample())


@pytest.mark.parametrize("mode", [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
@pytest.mark.parametrize("hidden", ["by EnvFailed", "by a reset"])
def test_ends_in_a_step_without_results(mode: AutoresetMode, hidden: str) -> None:
    """They count: the padding of these agents begins, and a mask may have their rows."""

    class Failing(Tag):
        """Raises an exception if agent blue acts by 2. Agent red ends in the first step, the others later."""

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            """Starts an episode."""
            results = super().reset(seed)
            self._last = {"red": 1, "green": 9, "blue": 9}
            return results

        def step(self, actions: dict[str, Any]) -> Any:
            """Steps, or fails."""
            if actions["blue"] == 2:
                raise ValueError("blue fell")
            return super().step(actions)

    with closing(tandem.pettingzoo.parallel_vec(Failing, 2, num_workers=2, autoreset_mode=mode)) as envs:
        envs.reset(seed=0)
        mask = np.array([1, 1, 1, 1, 0, 0], bool)  # all of environment 0; of the other one red, which has ended
        if hidden == "by EnvFailed":
            with pytest.raises(tandem.EnvFailed, match="blue fell"):
                envs.step(np.array([0, 0, 2, 0, 0, 0]))
            for others in ([0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1]):
                _, infos = envs.reset(options={"reset_mask": np.array(others, bool)})
                assert infos["env_failed"].tolist() == [True] * 3 + [False] * 3
            envs.reset(seed=0)
            with pytest.raises(tandem.EnvFailed, match="blue fell"):
                envs.step(np.array([0, 0, 2, 0, 0, 0]))
        else:
            envs.send(np.zeros(6, int))
        with pytest.raises(tandem.InvalidArgument, match=r"found only some of environments \[0\]"):
            envs.reset(options={"reset_mask": mask[::-1].copy()})
        obs, infos = envs.reset(options={"reset_mask": mask})
        assert obs[3].tolist() == [0, 0] and (obs[4:, 1] == 1).all()
        assert obs[:3, 1].tolist() == [0, 0, 0] and infos["_last"].tolist() == [True] * 3 + [False] * 3
        obs, _, terminations, truncations, infos = envs.step(np.zeros(6, int))
        assert infos["active"].tolist() == [True, True, True, False, True, True]
        assert (terminations | truncations).tolist() == [True] + [False] * 5
        assert obs[3].tolist() == [0, 0]


def test_a_reset_beside_one_that_fails() -> None:
    """The other environment was reset: its agents live, and a mask may not have some of them alone."""

    class Picky(Tag):
        """Refuses a seed. Agent red ends in the first step."""

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            """Starts an episode, or raises an exception."""
            if seed == 8:
                raise ValueError("not this seed")
            results = super().reset(seed)
            self._last["red"] = 1
            return results

    with closing(tandem.pettingzoo.parallel_vec(Picky, 2, autoreset_mode="Disabled")) as envs:
        envs.reset(seed=1)
        envs.step(np.zeros(6, int))
        red = np.array([0, 0, 0, 1, 0, 0], bool)
        envs.reset(options={"reset_mask": red.copy()})
        with pytest.raises(tandem.EnvFailed, match="not this seed"):
            envs.reset(seed=[8, 0, 0, 2, 0, 0])
        with pytest.raises(tandem.InvalidArgument, match=r"environments \[1\]"):
            envs.reset(options={"reset_mask": red.copy()})


def test_stable_baselines_is_told_what_it_takes() -> None:
    """Its error prints the class."""
    assert "envs.as_sb3()" in str(tandem.pettingzoo.ParallelVectorEnv)


class _Wrong(Tag):
    """Returns invalid results if an agent acts by 1 or 2."""

    def step(self, actions: dict[str, Any]) -> Any:
        """Steps, and spoils the results."""
        observations, rewards, *others = super().step(actions)
        if 1 in actions.values():
            rewards["green"] = None  # type: ignore[assignment]
        if 2 in actions.values():
            observations["green"] = np.zeros(3, np.float32)
        return observations, rewards, *others


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (1, "reward of agent 'green': expected a number, found None"),
        (2, r"observation of agent 'green': expected a value of Box\(.*, found float32\[3\]: "),
    ],
)
def test_an_invalid_result_names_the_agent(action: int, text: str) -> None:
    """The environment fails, as one of Gymnasium does."""
    with closing(tandem.pettingzoo.parallel_vec(_Wrong, 1)) as envs:
        envs.reset(seed=0)
        with pytest.raises(tandem.EnvFailed, match=text):
            envs.step(np.full(3, action))


def test_attributes_are_those_of_environments() -> None:
    """`call`, `get_attr` and `render` give a value for each environment; `call_chosen` one for each row."""
    with closing(tandem.pettingzoo.parallel_vec(Tag, 2)) as envs:
        envs.reset(seed=0)
        envs.step(np.zeros(6, int))
        assert [image.shape for image in envs.render() or ()] == [(4, 4, 3)] * 2
        envs.set_attr("color", [1, 2])
        assert envs.get_attr("color") == (1, 2)
        assert envs.call_chosen([5, 0, 1], "color") == (2, 1, 1)
        assert envs.metadata["name"] == "tag" and envs.render_mode == "rgb_array"


def test_a_joint_env_has_the_attributes_that_it_returns() -> None:
    """Those of the ParallelEnv, without those of gymnasium.Env."""
    env = JointEnv(Tag)
    for name in ("possible_agents", "single_spaces", "render", "metadata", "agents"):
        assert env.has_wrapper_attr(name)
        env.get_wrapper_attr(name)
    for name in ("np_random", "color"):
        assert not env.has_wrapper_attr(name)
        with pytest.raises(AttributeError):
            env.get_wrapper_attr(name)
    assert not env.set_wrapper_attr("color", 1, force=False) and not env.has_wrapper_attr("color")
    assert env.set_wrapper_attr("color", 1) and env.get_wrapper_attr("color") == 1


@pytest.mark.parametrize(
    ("env_fn", "text"),
    [
        (_Unequal, "action_space: expected equal spaces.*Discrete\\(3\\) of 'red' and Discrete\\(4\\) of 'blue'"),
        (int, "expected a function that returns a pettingzoo.ParallelEnv, found a int without possible_agents"),
        (functools.partial(Tag, ()), "expected an environment with agents, found a Tag whose possible_agents are"),
    ],
)
def test_other_environments_are_refused(env_fn: Any, text: str) -> None:
    """The text has the agents, the spaces, and what to use."""
    with pytest.raises(tandem.EngineStartFailed, match=text):
        tandem.pettingzoo.parallel_vec(env_fn, 2)


def test_different_agents_are_refused() -> None:
    """Environments have the same agents."""
    others = functools.partial(Tag, ("a", "b", "c"))
    with pytest.raises(tandem.InvalidArgument, match="expected environments with the same agents"):
        tandem.pettingzoo.parallel_vec([Tag, others])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"env_fn": 5}, "env_fn: expected a function that makes an environment, .*, found 5"),
        ({"engine": 5}, "engine: expected tandem.WorkerOptions, found 5"),
        ({"engine": tandem.WorkerOptions(batch_size=2)}, "WorkerOptions.batch_size: expected None, found 2"),
        ({"num_envs": 0}, "num_envs: "),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], text: str) -> None:
    """Errors name the argument."""
    given: dict[str, Any] = {"env_fn": Tag} | arguments
    with pytest.raises(tandem.InvalidArgument, match=text):
        tandem.pettingzoo.parallel_vec(**given)


def test_make_vec_names_the_function_to_use() -> None:
    """A ParallelEnv is no environment of Gymnasium."""
    with pytest.raises(tandem.EngineStartFailed, match="parallel_vec takes environments of PettingZoo"):
        tandem.make_vec(Tag, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_a_worker_that_is_started_again(mode: AutoresetMode) -> None:
    """All rows of its environments are truncated with reward 0, and marked."""

    class Fatal(Tag):
        """Kills its process if an agent acts by 2."""

        def step(self, actions: dict[str, Any]) -> Any:
            """Steps, or dies."""
            if 2 in actions.values():
                import os
                import signal

                os.kill(os.getpid(), signal.SIGKILL)
            return super().step(actions)

    with closing(
        tandem.pettingzoo.parallel_vec(
            Fatal, 2, num_workers=2, engine=tandem.WorkerOptions(restart=True), autoreset_mode=mode
        )
    ) as envs:
        envs.reset(seed=1)
        envs.step(np.zeros(6, int))
        _, rewards, terminations, truncations, infos = envs.step(np.array([0, 0, 0, 0, 2, 0]))
        assert truncations.tolist() == [False] * 3 + [True] * 3 and not terminations.any()
        assert rewards[3:].tolist() == [0, 0, 0] and (rewards[:3] != 0).all()
        marked = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
        assert marked["_worker_restarted"].tolist() == truncations.tolist()
        for _ in range(20):
            envs.step(np.zeros(6, int))
