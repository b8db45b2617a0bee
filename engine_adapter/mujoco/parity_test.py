"""Every task of the server against Gymnasium's own, over the region's bytes.

Speaks to the region as a foreign client would: multiprocessing.shared_memory, struct and NumPy, no Tandem code.
"""

import inspect
import json
import math
import re
import signal
import struct
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.envs.mujoco import mujoco_env

from tools.testing import pytest_main

_SERVER = Path("engine_adapter/server/server")
_ASSETS = Path(inspect.getfile(mujoco_env)).parent / "assets"
_MAGIC = 0x4C524243
_SECONDS = 60  # a watchdog: how long anything may take
_ENVS = 2
_SEED = 4294967295  # the second environment's has more than 32 bits
_FLOAT = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_BYTE = np.dtype(np.uint8)

_RENDERING = {"default_camera_config"}

# For each task, sets of keyword options, all together all that it has. Of sets that turn flags, no two flags are turned
# in the same ones, so that each is known by what it does.
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
    """The keyword options that Gymnasium's environment has, but for rendering, with their defaults."""
    creator = gymnasium.envs.registration.load_env_creator(str(gymnasium.spec(task).entry_point))
    parameters = inspect.signature(creator).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in _RENDERING}


class _ForeignClient:
    """What anyone can write against the documented offsets."""

    def __init__(self, name: str) -> None:
        self._memory = shared_memory.SharedMemory(name)
        # Else this process would unlink at its exit what it merely attached to.
        resource_tracker.unregister(self._memory._name, "shared_memory")  # type: ignore[attr-defined]
        assert self._memory.buf is not None
        self._bytes = self._memory.buf
        assert self._read("I", 0) == _MAGIC
        self.num_envs, self.obs_size, self.act_size = (self._read("I", at) for at in (20, 24, 28))
        info_size = self._read("I", 668)
        self.obs = self._array(384, _FLOAT, (self.num_envs, self.obs_size))
        self.actions = self._array(392, _FLOAT, (self.num_envs, self.act_size))
        self.rewards = self._array(400, _FLOAT, (self.num_envs,))
        self.resets = self._array(416, _BYTE, (self.num_envs,))
        self.truncateds = self._array(672, _BYTE, (self.num_envs,))
        self.terminateds = self._array(680, _BYTE, (self.num_envs,))
        self.final_obs = self._array(688, _FLOAT, (self.num_envs, self.obs_size))
        begin, size = self._read("Q", 704), self._read("Q", 712)
        row_bytes = -(-self.num_envs * info_size * 8 // 128) * 128
        shape = (self.num_envs, info_size)
        self.infos: Any = np.ndarray(shape, _DOUBLE, self._bytes, begin)
        self.final_infos: Any = np.ndarray(shape, _DOUBLE, self._bytes, begin + row_bytes)
        text = bytes(self._bytes[begin + 2 * row_bytes : begin + size])
        self.description = json.loads(text.rstrip(b"\0"))

    def step(self) -> None:
        seq = self._read("Q", 256) + 1
        struct.pack_into("<Q", self._bytes, 256, seq)
        deadline = time.monotonic() + _SECONDS
        while self._read("Q", 128) != seq:
            assert time.monotonic() < deadline, "the engine did not answer"

    def close(self) -> None:
        del self.obs, self.actions, self.rewards, self.resets, self.truncateds, self.terminateds, self.final_obs
        del self.infos, self.final_infos, self._bytes
        self._memory.close()

    def _read(self, kind: str, offset: int) -> int:
        value: int = struct.unpack_from("<" + kind, self._bytes, offset)[0]
        return value

    def _array(self, offset_at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return np.ndarray(shape, dtype, self._bytes, self._read("Q", offset_at))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., _ForeignClient]]:
    """Gives a function that starts a server with flags and returns a client of it; stops all at the end."""
    started: list[tuple[subprocess.Popen[bytes], _ForeignClient]] = []
    folder = tmp_path / "server"
    folder.mkdir()

    def start(*flags: str) -> _ForeignClient:
        name = f"tandem_parity_{uuid.uuid4().hex}"
        server = subprocess.Popen([_SERVER.resolve(), f"--name={name}", *flags], cwd=folder)
        deadline = time.monotonic() + _SECONDS
        while not Path("/dev/shm", name).exists():
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not open its region"
        client = _ForeignClient(name)
        started.append((server, client))
        return client

    yield start
    for server, client in started:
        client.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(_SECONDS) == 0
    assert list(folder.iterdir()) == [], "no MUJOCO_LOG.TXT, no other trace"


def _with_own_model(options: _Options, default_xml: str, folder: Path) -> _Options:
    """Replaces xml_file by a file in `folder`: Gymnasium's, but stiffer in time."""
    if "xml_file" not in options:
        return options
    text, count = re.subn(r'timestep="[^"]+"', 'timestep="0.004"', (_ASSETS / default_xml).read_text())
    assert count == 1
    own = folder / "own.xml"
    own.write_text(text)
    return options | {"xml_file": str(own)}


def _json_of(options: _Options) -> str:
    """As the flag wants them: infinities as text."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(each) for each in value]
        return str(value) if isinstance(value, float) and math.isinf(value) else value

    return json.dumps({name: plain(value) for name, value in options.items()}, allow_nan=False)


def _assert_infos(
    client: _ForeignClient, row: npt.NDArray[np.float64], expected: dict[str, Any], at_reset: bool
) -> None:
    """The row's fields are Gymnasium's by name, type, shape and value."""
    fields = [field for field in client.description["infos"] if field["at_reset"] or not at_reset]
    assert [field["name"] for field in fields] == list(expected)
    column = 0
    for field in fields:
        length = 1 if field["length"] is None else field["length"]
        value = np.asarray(expected[field["name"]])
        assert field["dtype"] == value.dtype.name, field
        assert value.shape == (() if field["length"] is None else (length,)), field
        found = row[column : column + length]
        np.testing.assert_allclose(found, value.reshape(length), rtol=1e-9, atol=1e-12, err_msg=field["name"])
        column += length


def _assert_space(described: dict[str, Any], space: gymnasium.Space[Any]) -> None:
    assert isinstance(space, gymnasium.spaces.Box)
    assert (described["type"], described["shape"], described["dtype"]) == ("Box", list(space.shape), space.dtype.name)
    for bounds, expected in ((described["low"], space.low), (described["high"], space.high)):
        np.testing.assert_array_equal(np.broadcast_to(np.array(bounds, np.float64), space.shape), expected)


def _assert_equal_runs(client: _ForeignClient, envs: list[gymnasium.Env[Any, Any]], steps: int) -> int:
    """Random actions, restarting episodes as they end; gives how many ended."""
    for env, obs, infos in zip(envs, client.obs, client.infos, strict=True):
        expected, info = env.reset(seed=_SEED + envs.index(env))
        np.testing.assert_array_equal(obs, np.asarray(expected, np.float32))
        _assert_infos(client, infos, info, at_reset=True)
    space = envs[0].action_space
    assert isinstance(space, gymnasium.spaces.Box)
    rng = np.random.default_rng(0)
    ended = 0
    for step in range(steps):
        client.actions[:] = rng.uniform(space.low, space.high, (len(envs), client.act_size))
        client.step()
        for i, env in enumerate(envs):
            expected, reward, terminated, truncated, info = env.step(client.actions[i].copy())
            assert (client.terminateds[i], client.truncateds[i]) == (terminated, truncated), (step, i)
            np.testing.assert_allclose(client.rewards[i], float(reward), rtol=1e-6, atol=1e-6)
            # A foreign client gets SAME_STEP: the last observation and infos lie in final_obs and final_infos.
            done = terminated or truncated
            obs, infos = (client.final_obs, client.final_infos) if done else (client.obs, client.infos)
            np.testing.assert_allclose(obs[i], expected, rtol=1e-6, atol=1e-6)
            _assert_infos(client, infos[i], info, at_reset=False)
            if done:
                ended += 1
                expected, info = env.reset()
                np.testing.assert_array_equal(client.obs[i], np.asarray(expected, np.float32))
                _assert_infos(client, client.infos[i], info, at_reset=True)
    return ended


def test_every_option_of_every_task_is_tried() -> None:
    """The table above has all tasks that are Gymnasium's, with all their options, none at its default."""
    listed = subprocess.run([_SERVER, "--list_tasks"], capture_output=True, text=True, check=True, timeout=_SECONDS)
    listed_v5 = [task for task in listed.stdout.split() if task.endswith("-v5")]
    assert listed_v5 == list(_OPTIONS)
    for task, sets in _OPTIONS.items():
        defaults = _defaults(task)
        assert {name for options in sets for name in options} == set(defaults), task
        assert all(options[name] != defaults[name] for options in sets for name in options), task


_CASES = [(task, options) for task, sets in _OPTIONS.items() for options in ({}, *sets)]


@pytest.mark.parametrize(("task", "options"), _CASES, ids=[f"{task}-{len(options)}" for task, options in _CASES])
def test_a_task_is_gymnasiums(
    serve: Callable[..., _ForeignClient], tmp_path: Path, task: str, options: _Options
) -> None:
    """Spaces, seeded starts, observations, rewards, ends and infos, through autoresets, are the same."""
    options = _with_own_model(options, _defaults(task)["xml_file"], tmp_path)
    limit = gymnasium.spec(task).max_episode_steps if not options else 60
    envs = [gymnasium.make(task, max_episode_steps=limit, **options) for _ in range(_ENVS)]
    flags = (f"--max_episode_steps={limit}",) if options else ()
    client = serve(
        f"--task={task}", f"--num_envs={_ENVS}", f"--seed={_SEED}", f"--task_options={_json_of(options)}", *flags
    )

    assert client.description["max_episode_steps"] == limit
    _assert_space(client.description["observation_space"], envs[0].observation_space)
    _assert_space(client.description["action_space"], envs[0].action_space)
    ended = _assert_equal_runs(client, envs, steps=150)
    assert ended > 0 or limit == 1000, "episodes that end are part of the test"
    for env in envs:
        env.close()


if __name__ == "__main__":
    pytest_main.run(__file__)
