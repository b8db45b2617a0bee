"""Scenes of MuJoCo's models in Chromium: poses and silhouettes are those of MuJoCo itself."""

import base64
import io
import os
import re
from pathlib import Path
from typing import Any

os.environ["MUJOCO_GL"] = "egl"  # before any module imports MuJoCo

import gymnasium.envs.mujoco
import mujoco
import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest

import tandem
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import browser_fixture, page_fixture, view_fixture  # noqa: F401, fixtures
from tests.web.page_fixture import DEADLINE_SECS, Page, wait_for
from tests.web.scene_samples import open_run_in_3d, shown_poses, world_poses

_ROOT = Path(__file__).parents[2]
_ASSETS = Path(gymnasium.envs.mujoco.__file__).parent / "assets"
# Their files, and how far the camera is from what it looks at.
_MODELS = {
    "cheetah": (_ASSETS / "half_cheetah.xml", 2.5, (0, 0, 0.6)),
    "humanoid": (_ASSETS / "humanoid.xml", 3, (0, 0, 1.2)),
    # A textured mesh, a height field, a skin.
    "parts": (_ROOT / "engine_adapter/mujoco/scene/testdata/parts.xml", 14, (4, 0, 0)),
}
_WIDTH, _HEIGHT = 640, 480

_PANEL = "const { panel } = document.querySelector('canvas.scene'); "

# Draws everything in white but planes, which are black, as a camera sees it.
_SILHOUETTE = """
const [fov, at, target, width, height, done] = arguments;
(async () => {
  const { view } = document.querySelector("canvas.scene").panel;
  const three = await import("/three.js");
  const renderer = new three.WebGLRenderer({ canvas: document.createElement("canvas"), preserveDrawingBuffer: true });
  renderer.setSize(width, height, false);
  const camera = new three.PerspectiveCamera(fov, width / height, 0.01, 100);
  camera.position.set(...at);
  camera.lookAt(...target);
  const { background } = view.scene;
  view.scene.background = null;
  const [white, black] = ["#ffffff", "#000000"].map(
    (color) => new three.MeshBasicMaterial({ color, skinning: true, side: three.DoubleSide }));
  const materials = new Map();
  view.scene.traverse((object) => {
    if (!object.isMesh) return;
    materials.set(object, object.material);
    object.material = object.userData.tandem?.plane ? black : white;
  });
  renderer.render(view.scene, camera);
  view.scene.background = background;
  for (const [object, material] of materials) object.material = material;
  done(renderer.domElement.toDataURL());
})().catch((error) => done(String(error)));
"""


def _upright(place: npt.ArrayLike) -> list[float]:
    x, y, z = np.asarray(place, float)
    return [x, z, -y]


def _drawn_by_the_page(page: Page, fov: float, at: npt.ArrayLike, target: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    arguments = fov, _upright(at), _upright(target), _WIDTH, _HEIGHT
    url = page.driver.execute_async_script(_SILHOUETTE, *arguments)
    picture = PIL.Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
    return np.asarray(picture.convert("L")) > 127


def _drawn_by_mujoco(model: mujoco.MjModel, data: mujoco.MjData, camera: mujoco.MjvCamera) -> npt.NDArray[np.bool_]:
    with mujoco.Renderer(model, _HEIGHT, _WIDTH) as renderer:
        renderer.enable_segmentation_rendering()
        renderer.update_scene(data, camera)
        ids, kinds = np.moveaxis(renderer.render(), 2, 0)
    geoms = kinds == int(mujoco.mjtObj.mjOBJ_GEOM)
    planes = geoms & (model.geom_type[np.where(geoms, ids, 0)] == int(mujoco.mjtGeom.mjGEOM_PLANE))
    return np.asarray((geoms & ~planes) | (kinds == int(mujoco.mjtObj.mjOBJ_SKIN)))


def _body(model: mujoco.MjModel, name: str) -> int:
    unnamed = re.fullmatch(r"body (\d+)", name)
    return int(unnamed[1]) if unnamed else mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)


@pytest.mark.parametrize("name", _MODELS)
def test_the_page_shows_what_mujoco_computes_and_draws(page: Page, name: str) -> None:
    """World matrices to 1e-5 of the extent; silhouettes from two sides by 95 %."""
    path, distance, target = _MODELS[name]
    model = mujoco.MjModel.from_xml_path(str(path))
    twins = [mujoco.MjData(model) for _ in range(2)]
    with (
        tandem.launch_engine(model=path, name=unique_name(), num_envs=len(twins)) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=DEADLINE_SECS) as client,
    ):
        rng = np.random.default_rng(0)
        client.reset(seed=0)
        open_run_in_3d(page, engine.name)
        looks = 0

        def newest() -> list[dict[str, Any]] | None:
            """Steps the engine and the twins, now and then, until a snapshot of this step is shown."""
            nonlocal looks
            looks += 1
            if twins[0].time < 40 * model.opt.timestep or not page.all("canvas.scene") or looks % 20 == 0:
                actions = rng.uniform(-1, 1, (len(twins), client.act_size)).astype(np.float32)
                client.step(actions)
                for data, action in zip(twins, actions, strict=True):
                    data.ctrl = action
                    mujoco.mj_step(model, data)
            rows = shown_poses(page) if page.all("canvas.scene") else None
            return rows if rows and abs(rows[0]["time"] - twins[0].time) < 1e-6 else None

        rows = wait_for(newest, "the newest step")
        names = page.driver.execute_script(_PANEL + "return panel.bodies.map((body) => body.name)")
        bodies = [_body(model, each) for each in names]
        assert len(rows) == len(twins)
        for row in rows:
            data = twins[row["env"]]
            expected = world_poses(np.hstack([data.xpos[bodies], data.xquat[bodies][:, [1, 2, 3, 0]]]))
            assert np.abs(np.array(row["matrices"]) - expected).max() <= 1e-5 * model.stat.extent

        page.driver.execute_script(_PANEL + "panel.count.value = '1'; panel.setFocus(0); panel.draw(performance.now())")
        for azimuth in (120, 30):
            camera = mujoco.MjvCamera()
            camera.lookat, camera.distance, camera.azimuth, camera.elevation = target, distance, azimuth, -20
            turn, tilt = np.radians([azimuth, -20])
            forward = np.array([np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)])
            ours = _drawn_by_the_page(page, float(model.vis.global_.fovy), target - distance * forward, target)
            theirs = _drawn_by_mujoco(model, twins[0], camera)
            if folder := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
                both = np.dstack([ours, theirs, ours & theirs]).astype(np.uint8) * 255
                PIL.Image.fromarray(both).save(Path(folder) / f"{name}-{azimuth}.png")
            assert theirs.sum() > 5000
            assert (ours & theirs).sum() >= 0.95 * (ours | theirs).sum(), (name, azimuth)
        page.click("article .open")
        page.save(f"scene-{name}")
    assert page.errors() == []
