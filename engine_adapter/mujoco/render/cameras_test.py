"""The images of MujocoCameras, compared with MuJoCo's own renderer in the same states."""

import os
import subprocess
import zlib
from pathlib import Path
from typing import Any

# Set before any module imports MuJoCo.
os.environ["MUJOCO_GL"] = "egl"

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

_PICTURES = Path("engine_adapter/mujoco/render/camera_images")
_STEPS = 200
# A cart before a wall; a third of the image is beyond the far plane. One camera is fixed, one is orthographic, and one
# moves with the cart.
_SCENE = """
<mujoco>
  <visual><map znear="0.01" zfar="20"/><global offwidth="640" offheight="480"/></visual>
  <statistic extent="2"/>
  <worldbody>
    <light pos="0 -2 4" dir="0 0.4 -1"/>
    <geom type="plane" size="3 3 .1" rgba="0.3 0.4 0.5 1"/>
    <geom type="box" size="0.5 0.1 0.8" pos="0.5 1 0.8" rgba="0 0.6 0 1"/>
    <camera name="front" pos="0 -3 1" xyaxes="1 0 0 0 0.2 1"/>
    <camera name="flat" pos="0 -3 1" xyaxes="1 0 0 0 0.2 1" projection="orthographic" fovy="3"/>
    <body pos="0 0 0.3">
      <joint name="slide" type="slide" axis="1 0 0" damping="1"/>
      <geom type="box" size="0.3 0.2 0.2" rgba="0.8 0 0 1"/>
      <geom type="sphere" size="0.15" pos="0 0 0.35" rgba="0.9 0.8 0.1 1"/>
      <camera name="chase" pos="-2 -1 1" mode="trackcom" xyaxes="0.4 -1 0 0.2 0.1 1" fovy="60" resolution="80 60"/>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="10"/></actuator>
</mujoco>
"""
_CAMERAS = ("front", "flat", "chase")


class _Album:
    """The rendered images, and the state of each environment for MuJoCo's own renderer."""

    def __init__(self, folder: Path) -> None:
        path = folder / "scene.xml"
        path.write_text(_SCENE)
        images = folder / "images"
        images.mkdir()
        subprocess.run([_PICTURES.resolve(), path, images, str(_STEPS)], check=True)
        self.files = {file.name: file.read_bytes() for file in images.iterdir()}
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.states = []
        for env in range(2):
            data = mujoco.MjData(self.model)
            data.ctrl = (env + 1) / 2
            mujoco.mj_step(self.model, data, _STEPS)
            self.states.append(data)

    def colours(self, name: str) -> NDArray[np.uint8]:
        """Returns a raw image, with the size in its name."""
        width, height = map(int, name.rpartition("_")[2].split("x"))
        return np.frombuffer(self.files[name], np.uint8).reshape(height, width, 3)

    def depth(self, name: str) -> tuple[NDArray[Any], float]:
        """Returns the depth in metres, and the step of the codes in metres."""
        width, height = map(int, name.rpartition("_")[2].split("x"))
        (scale,) = np.frombuffer(self.files[name], "<f4", 1)
        numbers = np.frombuffer(self.files[name], "<u2", offset=4).reshape(height, width)
        return numbers * float(scale), float(scale)

    def by_mujoco(self, env: int, camera: str, width: int, height: int, *, depth: bool = False) -> NDArray[Any]:
        """Returns the image of mujoco.Renderer."""
        with mujoco.Renderer(self.model, height=height, width=width) as renderer:
            if depth:
                renderer.enable_depth_rendering()
            renderer.update_scene(self.states[env], camera=camera)
            image: NDArray[Any] = renderer.render()
            return image


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> _Album:
    """Renders once for all tests."""
    return _Album(tmp_path_factory.mktemp("album"))


@pytest.mark.parametrize("index", range(len(_CAMERAS)))
@pytest.mark.parametrize("env", [0, 1])
def test_a_cameras_colours_equal_mujocos(album: _Album, env: int, index: int) -> None:
    """Equal byte by byte, in the camera's own size, which the model may set, and in another size."""
    own = "80x60" if _CAMERAS[index] == "chase" else "640x480"
    for size in ("64x48", own):
        found = album.colours(f"{env}_camera{index}_raw_{size}")
        height, width, _ = found.shape
        np.testing.assert_array_equal(found, album.by_mujoco(env, _CAMERAS[index], width, height))
        assert found.std() > 10


@pytest.mark.parametrize("index", range(len(_CAMERAS)))
def test_a_cameras_depth_equals_mujocos(album: _Album, index: int) -> None:
    """Tolerances: half a step of the codes, and the rounding of mujoco.Renderer's float32, 2e-5 at the far plane."""
    (name,) = (name for name in album.files if name.startswith(f"1_camera{index}_gray16"))
    found, scale = album.depth(name)
    expected = album.by_mujoco(1, _CAMERAS[index], found.shape[1], found.shape[0], depth=True)
    far = 20 * 2
    assert scale == pytest.approx(far / 65535)
    np.testing.assert_allclose(found, expected, rtol=5e-5, atol=scale * 0.51)
    assert found.max() == pytest.approx(far, rel=1e-6)
    assert (found < 0.9 * far).mean() > 0.3


def test_images_of_environments_differ(album: _Album) -> None:
    """Each image shows its own environment."""
    assert (album.colours("0_camera0_raw_64x48") != album.colours("1_camera0_raw_64x48")).any()


def test_viewports_equal_mujocos_free_camera(album: _Album) -> None:
    """The model has no view of a task; one viewport is unchanged, the other has an endless floor."""
    found = album.colours("1_viewport1_raw_64x48")
    with mujoco.Renderer(album.model, height=48, width=64) as renderer:
        camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(album.model, camera)
        renderer.update_scene(album.states[1], camera=camera)
        np.testing.assert_array_equal(found, renderer.render())
    endless = album.colours("1_viewport0_raw_64x48")
    assert (endless != found).any(axis=2).mean() > 0.05


def test_marks_are_drawn_until_they_are_cleared(album: _Album) -> None:
    """The marks, a yellow line and a red arrow, are in one environment's colour images, not in its depth."""
    plain = album.colours("1_camera0_raw_64x48")
    marked = album.colours("1_markedcamera0_raw_64x48")
    changed = (plain != marked).any(axis=2)
    assert 20 < changed.sum() < 1000
    red, green, blue = (marked[changed][:, channel].astype(int) for channel in range(3))
    assert ((red > 150) & (green > 130) & (blue < 100)).sum() > 10
    assert ((red > 100) & (green < 80) & (blue < 80)).sum() > 10
    rows = np.flatnonzero(changed.any(axis=1))
    assert 0 < rows.min() < rows.max() < 47
    np.testing.assert_array_equal(album.colours("1_clearedcamera0_raw_64x48"), plain)
    np.testing.assert_array_equal(album.colours("0_markedcamera0_raw_64x48"), album.colours("0_camera0_raw_64x48"))
    unmarked, _ = album.depth("1_markedcamera0_gray16_64x48")
    expected = album.by_mujoco(1, "front", 64, 48, depth=True)
    np.testing.assert_allclose(unmarked, expected, rtol=5e-5, atol=0.001)


def test_a_png_has_the_same_pixels(album: _Album) -> None:
    """The test decodes the chunks: eight bits a colour, and row filters."""
    data = album.files["1_camera0_png_64x48"]
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            assert body[:10] == (64).to_bytes(4, "big") + (48).to_bytes(4, "big") + b"\x08\x02"
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(48, 1 + 64 * 3)
    before = np.zeros(64 * 3 + 3, int)  # with three zeros before each row
    for row, expected in zip(rows, album.colours("1_camera0_raw_64x48"), strict=True):
        now = np.zeros_like(before)
        for i in range(3, len(now)):
            left, up, corner = now[i - 3], before[i], before[i - 3]
            paeth = min((left, up, corner), key=lambda near: abs(left + up - corner - near))
            now[i] = (int(row[i - 2]) + (0, left, up, (left + up) // 2, paeth)[row[0]]) % 256
        np.testing.assert_array_equal(now[3:], expected.ravel())
        before = now
