"""Descriptions of tasks whose arrays are float32 rows; they come from the engine process."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem.environments.description import InfoField, TaskDescription, describe

BOX = {"type": "Box", "shape": [2], "low": ["-inf"], "high": [1.0, "inf"], "dtype": "float64"}
DISCRETE = {"type": "Discrete", "n": 3}
SOUND: dict[str, Any] = {
    "observation_space": BOX,
    "action_space": DISCRETE,
    "max_episode_steps": 1000,
    "infos": [{"name": "x", "length": None, "dtype": "float64", "at_reset": True}],
}


def _described(act_size: int = 1, **changes: Any) -> TaskDescription:
    client: Any = SimpleNamespace(
        name="knee", description=json.dumps({**SOUND, **changes}), obs_size=2, act_size=act_size, infos=np.zeros((1, 1))
    )
    return describe(client)


def test_spaces_and_infos() -> None:
    """The dtypes are those of the task."""
    high = np.array([1, np.inf])
    expected = spaces.Box(np.full(2, -np.inf), high, (2,), np.float64), spaces.Discrete(3)
    task = _described()
    assert (task.observation_space, task.action_space) == expected
    assert task.infos == (InfoField("x", 0, None, np.dtype(np.float64), True),) and task.max_episode_steps == 1000
    box = {"type": "Box", "shape": [3], "low": [-1.0], "high": [0.4], "dtype": "float32"}
    assert _described(3, action_space=box).action_space == spaces.Box(-1, np.float32(0.4), (3,), np.float32)


@pytest.mark.parametrize(
    "changes",
    [
        {"observation_space": {**BOX, "shape": [3]}},
        {"observation_space": {**BOX, "shape": [2, 1]}},
        {"observation_space": {**BOX, "dtype": "uint8", "low": [0], "high": [1]}},
        {"observation_space": {**BOX, "low": ["-inf"] * 3}},
        {"observation_space": {**BOX, "low": [2.0]}},
        {"observation_space": {"type": "MultiBinary", "n": 2}},
        {"observation_space": {"type": "Tuple", "spaces": [BOX]}},
        {"observation_space": DISCRETE},
        {"observation_space": None},
        {"act_size": 2},
        {"action_space": {"type": "Discrete"}},
        {"action_space": {**DISCRETE, "n": 0}},
        {"action_space": {**DISCRETE, "start": 1}},
        {"action_space": {**DISCRETE, "dtype": "int8"}},
    ],
)
def test_a_space_that_float32_rows_do_not_hold_is_a_mismatch(changes: dict[str, Any]) -> None:
    """The rows have the sizes of the region, and one dtype."""
    with pytest.raises(tandem.LayoutMismatch, match="^region 'knee': expected the description of a task that fits"):
        _described(**changes)
