"""`RecordEpisodes` prints each episode once, in every autoreset mode, with the counts of Gymnasium's wrapper."""

import io
import json
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import tandem
from tandem.telemetry import EventWriter, RecordEpisodes
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_Make = Callable[[str, int, AutoresetMode], VectorEnv]


def _sync(task: str, num_envs: int, mode: AutoresetMode) -> VectorEnv:
    return gymnasium.make_vec(task, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})


def _tandem(task: str, num_envs: int, mode: AutoresetMode) -> VectorEnv:
    return tandem.make_vec(task, num_envs, autoreset_mode=mode)


def _workers(task: str, num_envs: int, mode: AutoresetMode) -> VectorEnv:
    return tandem.make_vec(task, num_envs, backend="python", num_workers=2, autoreset_mode=mode)


_MAKERS = pytest.mark.parametrize("make", [_sync, _tandem, _workers], ids=["sync", "tandem", "workers"])
_MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)


def _events(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def _wrap(envs: VectorEnv, **options: Any) -> tuple[RecordEpisodes, io.StringIO]:
    out = io.StringIO()
    return RecordEpisodes(envs, EventWriter(out, timestamps=False), **options), out


@_MAKERS
@_MODES
def test_episodes_equal_gymnasiums_statistics(make: _Make, mode: AutoresetMode) -> None:
    """Returns, lengths, ends and environments equal those of RecordEpisodeStatistics, which wraps the environments."""
    theirs = RecordEpisodeStatistics(make("CartPole-v1", 3, mode))
    envs, out = _wrap(theirs)
    envs.action_space.seed(1)
    envs.reset(seed=2)
    expected = []
    for _ in range(200):
        _, _, terminations, truncations, infos = envs.step(envs.action_space.sample())
        ended = terminations | truncations
        for index in np.flatnonzero(ended):
            ran = infos["episode"]["r"][index], infos["episode"]["l"][index]
            expected.append((index, *ran, terminations[index], truncations[index]))
        if mode is AutoresetMode.DISABLED and ended.any():
            # Gymnasium's wrapper reads the mask after the environments removed it, and resets all its counts.
            kept = np.where(ended, 0, theirs.episode_returns), np.where(ended, 0, theirs.episode_lengths)
            envs.reset(options={"reset_mask": ended})
            theirs.episode_returns, theirs.episode_lengths = kept
    events = _events(out)
    assert [
        (each["metadata"]["env"], each["total_reward"], each["steps"], each["terminated"], each["truncated"])
        for each in events
    ] == expected
    assert len(expected) > 15 and envs.episode_count == len(expected)
    assert sorted(each["episode"] for each in events)[:10] == list(range(10))
    assert len({each["episode"] for each in events}) == len(events)
    envs.close()


@_MAKERS
@_MODES
def test_steps_add_up_to_the_episodes(make: _Make, mode: AutoresetMode) -> None:
    """Steps are numbered from 0; the last step has the final observation, with the pole out of bounds."""
    envs, out = _wrap(make("CartPole-v1", 2, mode), steps=True)
    envs.action_space.seed(3)
    envs.reset(seed=4)
    for _ in range(100):
        _, _, terminations, truncations, _ = envs.step(envs.action_space.sample())
        ended = terminations | truncations
        if mode is AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    steps: dict[int, list[dict[str, Any]]] = {}
    finished = 0
    for event in _events(out):
        if event["event_type"] == "step":
            steps.setdefault(event["episode"], []).append(event)
            continue
        finished += 1
        own = steps.pop(event["episode"])
        assert [step["step_index"] for step in own] == list(range(event["steps"]))
        assert sum(step["reward"] for step in own) == event["total_reward"]
        assert [step["terminated"] for step in own] == [False] * (len(own) - 1) + [True]
        assert {step["action"] for step in own} <= {0, 1}
        out_of_bounds = [abs(step["observation"][2]) > 0.2095 for step in own]
        assert out_of_bounds == [False] * (len(own) - 1) + [True]
    assert finished > 5
    envs.close()


@_MAKERS
def test_episode_interrupted_by_a_reset_is_not_printed(make: _Make) -> None:
    """The next episode has a new number; a reset before any step uses no number."""
    envs, out = _wrap(make("CartPole-v1", 2, AutoresetMode.DISABLED))
    envs.reset(seed=0)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.ones(2, np.int64))
    envs.reset(options={"reset_mask": np.array([True, False])})
    while not out.getvalue():
        _, _, terminations, _, _ = envs.step(np.ones(2, np.int64))
    (event,) = _events(out)
    assert (event["episode"], event["metadata"]) == (1, {"env": 1}) and terminations.tolist() == [False, True]
    envs.reset(options={"reset_mask": terminations})
    while len(_events(out)) == 1:
        envs.step(np.ones(2, np.int64))
    event = _events(out)[1]
    assert (event["episode"], event["metadata"]) == (2, {"env": 0})
    envs.close()


def test_wrapper_does_not_change_results() -> None:
    """Results are equal with and without the wrapper, through resets."""
    results = []
    for wrapped in (False, True):
        envs: Any = _tandem("Hopper-v5", 2, AutoresetMode.NEXT_STEP)
        envs = _wrap(envs, steps=True)[0] if wrapped else envs
        envs.action_space.seed(0)
        result: list[Any] = [envs.reset(seed=1)[0]]
        for _ in range(60):
            obs, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
            result += [obs, rewards, terminations, truncations, infos["x_position"]]
        results.append(result)
        envs.close()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


class _Structured(gymnasium.Env[Any, Any]):
    """An environment with Dict observations, Tuple actions and episodes of two steps."""

    observation_space = gymnasium.spaces.Dict(
        {"at": gymnasium.spaces.Box(-9, 9, (2,)), "door": gymnasium.spaces.Discrete(3)}
    )
    action_space = gymnasium.spaces.Tuple((gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(-1, 1, (1,))))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets the position to 0."""
        self._at = 0.0
        return {"at": np.zeros(2, np.float32), "door": 1}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Increments the position."""
        self._at += 1
        return {"at": np.full(2, self._at, np.float32), "door": 2}, 0.5, False, self._at == 2, {}


def test_structured_spaces_are_printed_by_environment() -> None:
    """A Dict is printed as an object and a Tuple as a list."""
    envs, out = _wrap(gymnasium.vector.SyncVectorEnv([_Structured] * 2), steps=True)
    envs.reset()
    envs.step((np.array([1, 3]), np.array([[0.5], [-0.5]], np.float32)))
    assert [(event["action"], event["observation"]) for event in _events(out)] == [
        ([1, [0.5]], {"at": [1.0, 1.0], "door": 2}),
        ([3, [-0.5]], {"at": [1.0, 1.0], "door": 2}),
    ]
    envs.close()


def test_other_environments_are_refused() -> None:
    """A single environment, arguments of other types, and environments without an autoreset mode."""
    with pytest.raises(TypeError, match="VectorEnv"):
        RecordEpisodes(gymnasium.make("CartPole-v1"))  # type: ignore[arg-type]
    envs = _sync("CartPole-v1", 1, AutoresetMode.NEXT_STEP)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"events": io.StringIO()}, "events: expected an EventWriter or None, found <_io.StringIO"),
        ({"events": EventWriter}, "events: expected an EventWriter"),
        ({"steps": 5}, "steps: expected a bool, found 5"),
        ({"steps": None}, "steps: expected a bool, found None"),
    ]
    for options, fact in refused:
        with pytest.raises(tandem.InvalidArgument, match=fact):
            RecordEpisodes(envs, **options)
    envs.metadata = {"autoreset_mode": "sometimes"}
    with pytest.raises(tandem.InvalidArgument, match="sometimes"):
        RecordEpisodes(envs)
    envs.close()


class _Fails(gymnasium.Env[Any, Any]):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        self.steps = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == 3:
            raise ArithmeticError("diverged")
        return 0, 1.0, False, False, {}


@_MODES
def test_errors_of_environments_are_counted(mode: AutoresetMode) -> None:
    """The scalar has their number; the events of their episodes have the texts."""
    engine = tandem.WorkerOptions(on_error="truncate")
    envs, out = _wrap(tandem.make_vec(_Fails, 2, num_workers=1, autoreset_mode=mode, engine=engine))
    envs.reset()
    for _ in range(3):
        envs.step(np.zeros(2, np.int64))
    scalars, *episodes = _events(out)
    assert scalars["scalars"] == {"env_errors": 2} and scalars["step"] == 6
    assert [each["metadata"]["error"] for each in episodes] == ["ArithmeticError: diverged"] * 2
    envs.close()
