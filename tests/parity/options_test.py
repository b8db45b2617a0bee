"""Every keyword option of every task has the effect that it has in Gymnasium."""

import inspect
import math
import re
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.mujoco import mujoco_env
from gymnasium.vector import AutoresetMode

from tandem.environments.registration import TASKS
from tests.parity.comparison import compare

_ASSETS = Path(inspect.getfile(mujoco_env)).parent / "assets"
_SEED = 4294967295  # the second environment's seed has more than 32 bits

_RENDERING = {"default_camera_config", "render_mode"}

# Sets of keyword options for each task; together they have all options of the task. No two flags are changed in the
# same sets, so that the effect of each is visible.
_Options = dict[str, Any]
_OPTIONS: dict[str, list[_Options]] = {
    "Ant-v5": [
        {
            "xml_file": "own",
            "frame_skip": 3,
            "forward_reward_weight": 1.7,
            "ctrl_cost_weight": 0.3,
            "contact_cost_weight": 0.02,
            "healthy_reward": 2.3,
            "main_body": "front_left_leg",
            "healthy_z_range": (0.4, 0.9),
            "contact_force_range": (-0.5, 2.0),
            "reset_noise_scale": 0.3,
            "exclude_current_positions_from_observation": False,
        },
        {
            "main_body": 3,
            "terminate_when_unhealthy": False,
            "healthy_z_range": (0.6, 0.8),
            "include_cfrc_ext_in_observation": False,
        },
    ],
    "CartPole-v1": [{"sutton_barto_reward": True}],
    "HalfCheetah-v5": [
        {
            "xml_file": "own",
            "frame_skip": 2,
            "forward_reward_weight": 0.7,
            "ctrl_cost_weight": 0.3,
            "reset_noise_scale": 0.2,
            "exclude_current_positions_from_observation": False,
        },
        {"reset_noise_scale": 0},
    ],
    "Hopper-v5": [
        {
            "xml_file": "own",
            "frame_skip": 7,
            "forward_reward_weight": 1.3,
            "ctrl_cost_weight": 0.2,
            "healthy_reward": 0.4,
            "healthy_state_range": (-4, 4),
            "healthy_z_range": (0.5, 1.4),
            "healthy_angle_range": (-0.4, 0.3),
            "reset_noise_scale": 0.1,
            "exclude_current_positions_from_observation": False,
        },
        {"terminate_when_unhealthy": False},
    ],
    "Humanoid-v5": [
        {
            "xml_file": "own",
            "frame_skip": 3,
            "forward_reward_weight": 2.3,
            "ctrl_cost_weight": 0.3,
            "contact_cost_weight": 1e-4,
            "contact_cost_range": (0.2, 3),
            "healthy_reward": 1.5,
            "healthy_z_range": (1.2, 1.5),
            "reset_noise_scale": 0.05,
            "include_cinert_in_observation": False,
            "include_cvel_in_observation": False,
        },
        {
            "terminate_when_unhealthy": False,
            "exclude_current_positions_from_observation": False,
            "include_cinert_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
        },
        {"include_cfrc_ext_in_observation": False, "contact_cost_range": (-math.inf, math.inf)},
    ],
    "HumanoidStandup-v5": [
        {
            "xml_file": "own",
            "frame_skip": 3,
            "uph_cost_weight": 2.3,
            "ctrl_cost_weight": 0.3,
            "impact_cost_weight": 1e-4,
            "impact_cost_range": (0.2, 3),
            "reset_noise_scale": 0.05,
            "include_cinert_in_observation": False,
            "include_cvel_in_observation": False,
        },
        {
            "exclude_current_positions_from_observation": False,
            "include_cinert_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
        },
        {"include_cfrc_ext_in_observation": False},
    ],
    "InvertedDoublePendulum-v5": [
        {"xml_file": "own", "frame_skip": 3, "healthy_reward": 3.5, "reset_noise_scale": 0.2},
    ],
    "InvertedPendulum-v5": [{"xml_file": "own", "frame_skip": 3, "reset_noise_scale": 0.1}],
    "Pendulum-v1": [{"g": 9.81}],
    "Pusher-v5": [
        {
            "xml_file": "own",
            "frame_skip": 3,
            "reward_near_weight": 0.7,
            "reward_dist_weight": 1.3,
            "reward_control_weight": 0.3,
        },
    ],
    "Reacher-v5": [{"xml_file": "own", "frame_skip": 3, "reward_dist_weight": 1.3, "reward_control_weight": 0.3}],
    "Swimmer-v5": [
        {
            "xml_file": "own",
            "frame_skip": 3,
            "forward_reward_weight": 1.3,
            "ctrl_cost_weight": 0.3,
            "reset_noise_scale": 0.3,
            "exclude_current_positions_from_observation": False,
        },
    ],
    "Walker2d-v5": [
        {
            "xml_file": "own",
            "frame_skip": 7,
            "forward_reward_weight": 1.3,
            "ctrl_cost_weight": 0.2,
            "healthy_reward": 0.4,
            "healthy_z_range": (1.0, 1.4),
            "healthy_angle_range": (-0.4, 0.3),
            "reset_noise_scale": 0.1,
            "exclude_current_positions_from_observation": False,
        },
        {"terminate_when_unhealthy": False},
    ],
}


def _defaults(task: str) -> _Options:
    """Returns the keyword options of Gymnasium's environment with their defaults, without those for rendering."""
    creator = gymnasium.envs.registration.load_env_creator(str(gymnasium.spec(task).entry_point))
    parameters = inspect.signature(creator).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in _RENDERING}


def _with_own_model(options: _Options, default_xml: str, folder: Path) -> _Options:
    """Replaces xml_file by a copy of Gymnasium's file with a smaller timestep."""
    text, count = re.subn(r'timestep="[^"]+"', 'timestep="0.004"', (_ASSETS / default_xml).read_text())
    assert count == 1
    own = folder / "own.xml"
    own.write_text(text)
    return options | {"xml_file": str(own)}


def test_every_option_of_every_task_is_tested() -> None:
    """The table has all tasks with all options of Gymnasium's environments, none at its default."""
    assert sorted(_OPTIONS) == sorted(TASKS)
    for task, sets in _OPTIONS.items():
        defaults = _defaults(task)
        assert {name for options in sets for name in options} == set(defaults), task
        assert all(options[name] != defaults[name] for options in sets for name in options), task


_CASES = [(task, options) for task, sets in _OPTIONS.items() for options in sets]


@pytest.mark.parametrize(("task", "options"), _CASES, ids=[f"{task}-{len(options)}" for task, options in _CASES])
def test_a_task_with_options_equals_gymnasiums(tmp_path: Path, task: str, options: _Options) -> None:
    """Spaces, results and infos are equal, through autoresets and with a time limit."""
    if "xml_file" in options:
        options = _with_own_model(options, _defaults(task)["xml_file"], tmp_path)
    counts = compare(task, AutoresetMode.SAME_STEP, _SEED, steps=150, max_episode_steps=60, **options)
    assert counts["terminated"] + counts["truncated"] > 0
