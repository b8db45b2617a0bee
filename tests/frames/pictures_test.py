"""Frames and rendered images, compared with MuJoCo's and Gymnasium's own renderers."""

import os
import signal
import threading
from pathlib import Path

# Set before any module imports MuJoCo.
os.environ["MUJOCO_GL"] = "egl"

import gymnasium
import mujoco
import mujoco.egl
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.environments.registration import TASKS
from tandem.testing.engines import stop

# Rendering on a busy machine without a graphics card takes seconds.
_PATIENT = tandem.EngineOptions(timeout=120)
_TASKS = sorted(task for task in TASKS if task not in ("CartPole-v1", "Pendulum-v1"))

# Four objects with different shapes, places and colours, off all axes, on a slide that the action moves.
_SCENE = """
<mujoco>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    <body>
      <joint name="slide" type="slide" axis="1 0 0" damping="1"/>
      <geom type="sphere" size="0.1" pos="0.7 0 0.5" rgba="1 0 0 1"/>
      <geom type="sphere" size="0.2" pos="-0.7 0 0.5" rgba="0 1 0 1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="-0.7 0 -0.5" rgba="0 0 1 1"/>
      <geom type="capsule" size="0.1 0.3" pos="0.6 0 -0.4" rgba="1 1 0 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="slide"/></actuator>
</mujoco>
"""

_BALL = """
<mujoco>
  <option gravity="0 0 0"/>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    <body><freejoint/><geom type="sphere" size="0.5" mass="1" rgba="1 0 0 1"/><site name="middle"/></body>
  </worldbody>
  <actuator><motor site="middle" gear="1 0 0 0 0 0"/></actuator>
</mujoco>
"""


def _drawn_by_mujoco(model: mujoco.MjModel, data: mujoco.MjData, width: int, height: int) -> NDArray[np.uint8]:
    """Renders as an engine without effects does: MuJoCo's free camera; no shadow, reflection or multisampling."""
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
    gl = mujoco.egl.GLContext(width, height)
    gl.make_current()
    context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
    scene = mujoco.MjvScene(model, 1000)
    scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    everything = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, everything, scene)
    viewport = mujoco.MjrRect(0, 0, width, height)
    mujoco.mjr_render(viewport, scene, context)
    pixels = np.zeros((height, width, 3), np.uint8)
    mujoco.mjr_readPixels(pixels, None, viewport, context)
    context.free()
    gl.free()
    return pixels[::-1]


@pytest.mark.parametrize(("width", "height"), [(320, 240), (1, 1), (7, 5), (321, 239), (64, 200)])
def test_frame_equals_mujocos_own_rendering(width: int, height: int, tmp_path: Path) -> None:
    """Three environments of odd sizes, each with its own state, in a grid of four; the fourth place is black."""
    path = tmp_path / "scene.xml"
    path.write_text(_SCENE)
    model = mujoco.MjModel.from_xml_path(str(path))
    with (
        tandem.launch_engine(
            model=path,
            num_envs=3,
            frames=tandem.FrameOptions((width, height), envs=[0, 1, 2], hz=0, camera="gymnasium"),
        ) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        client.reset(seed=0)
        actions = np.array([[0.0], [3.0], [-5.0]], np.float32)
        for _ in range(200):
            client.step(actions)
        frame, _ = client.drawn_frame()
    assert frame.shape == (2 * height, 2 * width, 3)
    for place, action in enumerate(actions[:, 0]):
        data = mujoco.MjData(model)
        data.ctrl = action
        mujoco.mj_step(model, data, 200)
        row, column = divmod(place, 2)
        picture = frame[row * height :, column * width :][:height, :width]
        np.testing.assert_array_equal(picture, _drawn_by_mujoco(model, data, width, height))
    assert not frame[height:, width:].any()
    if width == 320:  # the image is not mirrored: the red ball is at the upper right, the green one at the upper left
        red, green = (np.argwhere(frame[:height, :width, i] > frame[:height, :width].sum(2) * 0.9) for i in (0, 1))
        assert red.size and green.size
        assert red[:, 0].mean() < height / 2 < red[:, 1].mean()
        assert green[:, 0].mean() < height / 2 and green[:, 1].mean() < width / 2


@pytest.mark.parametrize("task", _TASKS)
def test_render_equals_gymnasiums(task: str) -> None:
    """The images of the same run are equal byte by byte, after a reset and after steps."""
    with_engine = tandem.make_vec(task, num_envs=2, render_mode="rgb_array", width=120, height=90, engine=_PATIENT)
    of_gymnasium = gymnasium.make_vec(
        task, num_envs=2, vectorization_mode="sync", render_mode="rgb_array", width=120, height=90
    )
    of_gymnasium.action_space.seed(0)
    for envs in (with_engine, of_gymnasium):
        envs.reset(seed=11)
    for _ in range(4):
        ours, theirs = with_engine.render(), of_gymnasium.render()
        assert isinstance(ours, tuple) and theirs is not None
        assert [picture.shape for picture in ours] == [(90, 120, 3)] * 2
        for picture, expected in zip(ours, theirs, strict=True):
            assert picture.dtype == np.uint8 and picture.std() > 1
            np.testing.assert_array_equal(picture, expected)
        for _ in range(5):
            actions = of_gymnasium.action_space.sample()
            for envs in (with_engine, of_gymnasium):
                envs.step(actions)
    with_engine.close()
    of_gymnasium.close()


def test_rendered_images_are_copies_of_gymnasiums_default_size() -> None:
    """The default is 480 x 480; a later `render` does not change returned images."""
    with_engine = gymnasium.make_vec("tandem/InvertedPendulum-v5", num_envs=3, render_mode="rgb_array", engine=_PATIENT)
    assert with_engine.render_mode == "rgb_array"
    assert with_engine.metadata["render_modes"] == ["rgb_array"]
    with_engine.reset(seed=0)
    first = with_engine.render()
    assert first is not None
    kept = [np.array(picture) for picture in first]
    assert [picture.shape for picture in kept] == [(480, 480, 3)] * 3
    for _ in range(20):
        with_engine.step(np.ones((3, 1), np.float32))
    second = with_engine.render()
    assert second is not None
    for before, then, now in zip(kept, first, second, strict=True):
        np.testing.assert_array_equal(before, then)
        assert (before != now).any()
    with_engine.close()


def test_a_following_camera_keeps_the_robot_in_the_image(tmp_path: Path) -> None:
    """Gymnasium's camera stays at its place, and loses the robot."""
    path = tmp_path / "ball.xml"
    path.write_text(_BALL)

    def red_pixels(camera: str) -> int:
        with (
            tandem.launch_engine(model=path, frames=tandem.FrameOptions((64, 64), hz=0, camera=camera)) as engine,
            tandem.SharedMemoryClient(engine.name, timeout=120) as client,
        ):
            client.reset(seed=0)
            for _ in range(1000):
                client.step(np.full((1, 1), 10, np.float32))
            assert client.obs[0, 0] > 5  # metres from the start
            frame, _ = client.drawn_frame()
        return int((frame[..., 0] > frame.sum(2) * 0.9).sum())

    assert red_pixels("follow") > 100
    assert red_pixels("gymnasium") == 0


# A robot of which each part is red, on a floor of 100 m.
_ROBOT = """
<mujoco>
  <visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>
  <worldbody>
    <geom type="plane" size="50 50 1" rgba="0 0 1 1"/>
    <body pos="0 0 2"><freejoint/><geom size=".01" rgba="0 1 0 1"/></body>
    <body pos="20 5 {size}">
      <freejoint/>
      <geom type="box" size="{size} {half} {half}" rgba="1 0 0 1"/>
      <body pos="0 0 {size}">
        <joint name="neck" axis="0 1 0"/>
        <geom size="{half}" rgba="1 0 0 1"/>
        <camera name="eye" pos="0 0 1"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="neck" coef="1"/></fixed></tendon>
  <actuator><motor {drives} gear="0"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize(("size", "drives"), [(0.02, 'joint="neck"'), (0.3, 'tendon="cable"'), (2, 'joint="neck"')])
def test_a_robot_fills_a_third_of_the_height_on_any_floor(size: float, drives: str, tmp_path: Path) -> None:
    """The following camera measures the robot: the tree of bodies that has actuators."""
    path = tmp_path / "robot.xml"
    path.write_text(_ROBOT.format(size=size, half=size / 2, drives=drives))
    with (
        tandem.launch_engine(model=path, frames=tandem.FrameOptions((120, 120), hz=0)) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        client.reset(seed=0)
        frame, _ = client.drawn_frame()
    rows, columns = np.nonzero((frame[..., 0] > 200) & (frame[..., 2] < 50))
    assert 120 / 4 < np.ptp(rows) + 1 < 120 / 2.5
    assert abs((rows.min() + rows.max()) / 2 - 60) < 10
    assert abs((columns.min() + columns.max()) / 2 - 60) < 10


def test_a_models_camera_draws_frames(tmp_path: Path) -> None:
    """FrameOptions takes the name of a camera, as ImageOptions; both give the same picture. Other names are refused."""
    path = tmp_path / "robot.xml"
    path.write_text(_ROBOT.format(size=0.3, half=0.15, drives='joint="neck"'))
    with (
        tandem.launch_engine(
            model=path,
            frames=tandem.FrameOptions((64, 48), hz=0, camera="eye"),
            images=tandem.ImageOptions((64, 48), camera="eye", effects=()),
        ) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=120) as client,
    ):
        client.reset(seed=0)
        frame, _ = client.drawn_frame()
        assert client.images is not None
        np.testing.assert_array_equal(frame, client.images[0])
    with pytest.raises(tandem.InvalidArgument, match=r"FrameOptions.camera: expected follow, gymnasium .*eye.*'ear'"):
        tandem.launch_engine(model=path, frames=tandem.FrameOptions((64, 48), camera="ear"))


def test_without_a_render_mode_nothing_is_drawn() -> None:
    """`drawn_frame` is Unsupported; vector_texts_test.py tests `render` in this case."""
    envs = tandem.make_vec("Hopper-v5")
    envs.reset(seed=0)
    assert envs.metadata["render_modes"] == []
    with pytest.raises(tandem.Unsupported, match=r"frames=\(.*--frames"):
        envs.client.drawn_frame()
    envs.close()


def test_render_during_a_pending_step_is_refused() -> None:
    """The pending step and later renders work."""
    envs = tandem.make_vec("Hopper-v5", render_mode="rgb_array", width=16, height=16, engine=_PATIENT)
    envs.reset(seed=0)
    envs.send(np.zeros((1, 3), np.float32))
    with pytest.raises(tandem.StepPending):
        envs.render()
    envs.recv()
    assert envs.render() is not None
    envs.close()


def test_render_of_a_stopped_engine_is_a_time_out() -> None:
    """After SIGCONT the session continues; a killed engine is PeerGone."""
    envs = tandem.make_vec("Hopper-v5", render_mode="rgb_array", width=16, height=16, engine=_PATIENT)
    envs.reset(seed=0)
    pid = envs.client.engine_pid
    stop(pid)
    with pytest.raises(tandem.StepTimeout, match="no frame"):
        envs.client.drawn_frame(timeout=0.05)
    os.kill(pid, signal.SIGCONT)
    envs.step(np.zeros((1, 3), np.float32))
    assert envs.render() is not None
    waits = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
    stop(pid)
    waits.start()
    with pytest.raises(tandem.PeerGone):
        envs.render()
    envs.close()


def test_a_restarted_engine_renders() -> None:
    """The restart uses the same flags."""
    envs = tandem.make_vec(
        "Hopper-v5",
        render_mode="rgb_array",
        width=16,
        height=16,
        engine=tandem.EngineOptions(restart=True, timeout=120),
    )
    envs.reset(seed=0)
    os.kill(envs.client.engine_pid, signal.SIGKILL)
    envs.step(np.zeros((1, 3), np.float32))
    pictures = envs.render()
    assert pictures is not None and pictures[0].any()
    envs.close()


@pytest.mark.parametrize("lacking", ["library", "driver"])
def test_a_machine_without_renderer_reports_what_is_missing(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the missing packages; steps work; the log has the reason once."""
    if lacking == "library":
        (tmp_path / "libEGL.so.1").write_text("no library")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    else:
        monkeypatch.setenv("__EGL_VENDOR_LIBRARY_DIRS", str(tmp_path))
    with tandem.launch_engine("Hopper-v5", frames=tandem.FrameOptions((16, 16), envs="all")) as engine:
        client = tandem.SharedMemoryClient(engine.name, timeout=120)
        envs = tandem.SharedMemoryVectorEnv(client, render_mode="rgb_array")
        envs.reset(seed=0)
        for _ in range(3):
            with pytest.raises(tandem.Unsupported, match=r"libegl1.*libgl1-mesa-dri"):
                envs.render()
            envs.step(np.zeros((1, 3), np.float32))
        assert engine.log_tail().count("libgl1-mesa-dri") == 1
        envs.close()
