"""The images of each step, compared with Gymnasium's and MuJoCo's own renderers."""

import os
import struct
from pathlib import Path
from typing import Any

# Set before any module imports MuJoCo.
os.environ["MUJOCO_GL"] = "egl"

import gymnasium
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem

# Tasks whose Gymnasium camera has a given target point, has none, or tracks a body. pictures_test has all tasks.
_TASKS = ("HalfCheetah-v5", "Hopper-v5", "Reacher-v5")
_SIZE = (48, 36)


class _Twin:
    """Gymnasium's environment of a task, with a camera that does not depend on the first rendered state."""

    def __init__(self, task: str) -> None:
        self.env = gymnasium.make(task, render_mode="rgb_array", width=_SIZE[0], height=_SIZE[1])
        unwrapped: Any = self.env.unwrapped
        initial = mujoco.MjData(unwrapped.model)
        mujoco.mj_kinematics(unwrapped.model, initial)
        middle = np.array([np.median(initial.geom_xpos[:, axis]) for axis in range(3)])
        renderer = unwrapped.mujoco_renderer
        renderer.default_cam_config = {"lookat": middle, **(renderer.default_cam_config or {})}
        self.data: mujoco.MjData = unwrapped.data
        self.model: mujoco.MjModel = unwrapped.model

    def picture(self) -> NDArray[np.uint8]:
        """Renders the current state."""
        picture = self.env.render()
        assert isinstance(picture, np.ndarray)
        return picture


def _images(client: tandem.SharedMemoryClient) -> NDArray[np.uint8]:
    images = client.images
    assert images is not None
    return images


def _assert_shows(client: tandem.SharedMemoryClient, twins: list[_Twin]) -> None:
    for image, twin in zip(_images(client), twins, strict=True):
        np.testing.assert_array_equal(image, twin.picture())


@pytest.mark.parametrize("task", _TASKS)
def test_images_equal_gymnasiums(task: str) -> None:
    """Each environment's image is equal byte by byte, after resets, steps, and a reset of one environment."""
    twins = [_Twin(task) for _ in range(2)]
    with (
        tandem.launch_engine(task, num_envs=2, images=_SIZE, seed=7) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        images = _images(client)
        assert images.shape == (2, _SIZE[1], _SIZE[0], 3)
        assert images.dtype == np.uint8
        for index, twin in enumerate(twins):
            twin.env.reset(seed=7 + index)
        _assert_shows(client, twins)  # the initial state, before any exchange
        assert client.image_step == 0
        client.reset(seed=11)
        for index, twin in enumerate(twins):
            twin.env.reset(seed=11 + index)
        _assert_shows(client, twins)
        assert client.image_step == 1
        actions = np.zeros((2, client.act_size), np.float32)
        for step in range(2):
            for index, twin in enumerate(twins):
                actions[index] = twin.env.action_space.sample() / 10
                twin.env.step(actions[index])
            client.step(actions)
            _assert_shows(client, twins)
            assert client.image_step == 2 + step
            assert images.std() > 1
        kept = images[0].copy()
        client.reset([1], seed=5)
        twins[1].env.reset(seed=5 + 1)
        _assert_shows(client, twins)
        np.testing.assert_array_equal(images[0], kept)
        assert client.image_step == 4


@pytest.mark.parametrize("mode", list(tandem.AutoresetMode))
def test_images_at_an_episodes_end_show_the_state_of_obs(mode: tandem.AutoresetMode) -> None:
    """SAME_STEP shows the new episode at once; NEXT_STEP first shows the old episode's end; DISABLED continues."""
    twin = _Twin("InvertedPendulum-v5")
    with (
        tandem.launch_engine("InvertedPendulum-v5", images=_SIZE) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120, autoreset_mode=mode) as client,
    ):
        client.reset(seed=3)
        twin.env.reset(seed=3)
        action = np.full((1, 1), 3, np.float32)
        ends, shown, reset_next = 0, 0, False
        for _ in range(20):
            begins = reset_next
            _, _, dones = client.step(action)
            if reset_next:
                twin.env.reset()
                reset_next = False
            elif twin.env.unwrapped.step(action[0])[2]:
                ends += 1
                assert dones[0]
                if mode is tandem.AutoresetMode.SAME_STEP:
                    twin.env.reset()
                reset_next = mode is tandem.AutoresetMode.NEXT_STEP
            if begins or dones[0]:
                shown += 1
                if shown <= 4:  # rendering is slow
                    _assert_shows(client, [twin])
        assert ends > 1
        assert shown >= 2


def test_final_images_show_the_last_state_of_an_episode() -> None:
    """With SAME_STEP; they equal Gymnasium's image of the state before the reset, byte by byte."""
    twin = _Twin("InvertedPendulum-v5")
    with (
        tandem.launch_engine("InvertedPendulum-v5", images=_SIZE) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        client.reset(seed=3)
        twin.env.reset(seed=3)
        action = np.full((1, 1), 3, np.float32)
        ends = 0
        while ends < 2:
            _, _, dones = client.step(action)
            if not twin.env.unwrapped.step(action[0])[2]:
                continue
            ends += 1
            assert dones[0] and client.final_images is not None
            np.testing.assert_array_equal(client.final_images[0], twin.picture())
            twin.env.reset()
            _assert_shows(client, [twin])


_TWO_CAMERAS = """
<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="1 1 0.1" rgba="0.2 0.4 0.2 1"/>
    <body pos="0 0 0.3">
      <joint name="slide" type="slide" axis="1 0 0"/><geom size="0.2" rgba="0.8 0.2 0.2 1"/>
      <camera name="hand" pos="0 -1 0.5" xyaxes="1 0 0 0 0.5 1"/>
    </body>
    <camera name="above" pos="0 0 2"/>
  </worldbody>
  <actuator><motor joint="slide"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("copy", [True, False])
def test_several_cameras_are_keys_of_the_observation(tmp_path: Path, copy: bool) -> None:
    """Each has the image that a client of this camera alone has; None is the default camera."""
    model = tmp_path / "two_cameras.xml"
    model.write_text(_TWO_CAMERAS, "utf-8")
    cameras = {"hand": "hand", "top": "above", "usual": None}

    def shown(camera: Any) -> Any:
        images = tandem.ImageOptions(_SIZE, camera=camera)
        its: dict[str, Any] = {"engine": tandem.EngineOptions(timeout=120), "options": tandem.TaskOptions(copy=copy)}
        envs = tandem.make_vec(num_envs=2, model=model, images=images, **its)
        envs.reset(seed=0)
        obs = envs.step(np.array([[1], [-1]], np.float32))[0]
        assert obs in envs.observation_space
        kept = {key: value.copy() for key, value in obs.items()}
        envs.close()
        return kept

    together = shown(cameras)
    assert list(together) == [*cameras, "state"]
    for key, camera in cameras.items():
        assert together[key].shape == (2, _SIZE[1], _SIZE[0], 3)
        np.testing.assert_array_equal(together[key], shown(camera)["image"])
    assert len({together[key].tobytes() for key in cameras}) == 3
    np.testing.assert_array_equal(shown(["above", "hand"])["above"], together["top"])


def test_a_model_camera_equals_mujocos_renderer() -> None:
    """The camera is chosen by name; it may move with a body."""
    twin = _Twin("HalfCheetah-v5")
    renderer = mujoco.Renderer(twin.model, height=_SIZE[1], width=_SIZE[0])
    with (
        tandem.launch_engine("HalfCheetah-v5", images=tandem.ImageOptions(_SIZE, camera="track")) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        client.reset(seed=0)
        twin.env.reset(seed=0)
        for _ in range(10):
            action = np.full((1, 6), 1, np.float32)
            client.step(action)
            twin.env.step(action[0])
        renderer.update_scene(twin.data, camera="track")
        np.testing.assert_array_equal(_images(client)[0], renderer.render())
        assert (_images(client)[0] != twin.picture()).any()
    renderer.close()


def test_make_vec_has_images_in_the_observations() -> None:
    """Also if Gymnasium makes the environments, and with a named camera."""
    pictures = []
    for camera in (None, "track"):
        images = tandem.ImageOptions(_SIZE, camera=camera)
        envs = gymnasium.make_vec("tandem/HalfCheetah-v5", num_envs=2, images=images)
        client = envs.unwrapped.client  # type: ignore[attr-defined]
        obs, _ = envs.reset(seed=0)
        assert obs["state"].shape == (2, 17)
        obs = envs.step(np.ones((2, 6)))[0]
        np.testing.assert_array_equal(obs["image"], _images(client))
        pictures.append(_images(client).copy())
        assert client.image_step == client.stats().exchanges
        envs.close()
    assert (pictures[0] != pictures[1]).any()
    assert pictures[0].shape == (2, _SIZE[1], _SIZE[0], 3)


def test_effects_can_be_left_out() -> None:
    """Each set of effects gives a different image of the same state."""
    pictures = []
    choices: tuple[Any, ...] = ("all", (), ("shadows",))
    for effects in choices:
        with (
            tandem.launch_engine("Hopper-v5", images=tandem.ImageOptions("48x36", effects=effects)) as engine,
            tandem.SharedMemoryClient(engine.name, timeout=120) as client,
        ):
            client.reset(seed=0)
            pictures.append(_images(client)[0].tobytes())
    assert len(set(pictures)) == 3


def test_a_new_client_finds_images_of_fresh_environments() -> None:
    """The images are rendered after the reset for the new client; `image_step` continues to count."""
    twin = _Twin("Hopper-v5")
    twin.env.reset(seed=0)
    with tandem.launch_engine("Hopper-v5", images=_SIZE) as engine:
        with tandem.SharedMemoryClient(engine.name, timeout=120) as first:
            first.reset(seed=0)
            np.testing.assert_array_equal(_images(first)[0], twin.picture())
            for _ in range(20):
                first.step(np.ones((1, 3), np.float32))
            last = _images(first)[0].copy()
        with tandem.SharedMemoryClient(engine.name, timeout=120) as second:
            assert (_images(second)[0] != last).any()
            assert second.image_step == 21
            second.reset(seed=0)
            np.testing.assert_array_equal(_images(second)[0], twin.picture())
            assert second.image_step == 22


def test_frames_and_images_do_not_disturb_each_other() -> None:
    """Each has its own thread and OpenGL context."""
    twins = [_Twin("Hopper-v5") for _ in range(2)]
    with tandem.launch_engine(
        "Hopper-v5", num_envs=2, images=_SIZE, frames=tandem.FrameOptions((64, 64), effects="all", hz=0)
    ) as engine:
        with tandem.SharedMemoryClient(engine.name, timeout=120) as client:
            client.reset(seed=0)
            for index, twin in enumerate(twins):
                twin.env.reset(seed=index)
            for _ in range(2):
                frame, _ = client.drawn_frame()
                assert frame.std() > 1
                actions = np.ones((2, 3), np.float32)
                client.step(actions)
                for twin in twins:
                    twin.env.step(actions[0])
                _assert_shows(client, twins)


def test_a_header_only_client_finds_images_by_the_header() -> None:
    """Offset, size, channels and `image_step` are at the layout's offsets; without images all are 0."""
    with tandem.launch_engine("Hopper-v5", num_envs=3, images=(7, 5)) as engine:
        header = Path("/dev/shm", engine.name).read_bytes()
        offset, width, height, channels = struct.unpack_from("<QIII", header, 448)
        assert (width, height, channels) == (7, 5, 3)
        assert struct.unpack_from("<Q", header, 648)[0] & 32
        with tandem.SharedMemoryClient(engine.name, timeout=120) as client:
            assert client.offsets["images"] == offset
            raw = Path("/dev/shm", engine.name).read_bytes()[offset : offset + 3 * 7 * 5 * 3]
            assert raw == _images(client).tobytes()
            client.reset()
            (tag,) = struct.unpack_from("<Q", Path("/dev/shm", engine.name).read_bytes(), 1928)
            assert tag == client.image_step == 1
    with tandem.launch_engine("Hopper-v5") as engine, tandem.SharedMemoryClient(engine.name, timeout=120) as client:
        header = Path("/dev/shm", engine.name).read_bytes()
        assert not any(header[448:468])
        assert not struct.unpack_from("<Q", header, 648)[0] & 32
        assert client.images is None
        assert client.image_step == 0
        assert "images" not in client.offsets
        assert client.final_images is None


def test_an_unknown_camera_is_refused_when_the_engine_starts() -> None:
    """The error has the keyword, and the model's cameras."""
    with pytest.raises(tandem.InvalidArgument, match="^ImageOptions.camera: .*track.*'side'"):
        tandem.launch_engine("HalfCheetah-v5", images=tandem.ImageOptions((8, 8), camera="side"))


def test_a_machine_without_renderer_reports_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes at the engine's start, not during a training."""
    monkeypatch.setenv("__EGL_VENDOR_LIBRARY_DIRS", str(tmp_path))
    with pytest.raises(tandem.Unsupported, match=r"images: .*libegl1.*libgl1-mesa-dri"):
        tandem.launch_engine("Hopper-v5", images=(16, 16))
