"""The buttons of a scene, its past, and its recordings; in Chromium."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import browser_fixture, page_fixture  # noqa: F401, fixtures
from tests.web.page_fixture import Page, Trainer, View, running_view, wait_for
from tests.web.scene_samples import (
    EXTENT,
    NAMES,
    assert_as_the_engine,
    freeze,
    open_scene,
    poses_at,
    robots,
    shown_poses,
    tracks_of,
    world_poses,
)

_TIMES = 10


@pytest.fixture(name="view")
def view_fixture(tmp_path: Path) -> Iterator[View]:
    """A server that records into the test's folder."""
    with running_view("--control", f"--recordings={tmp_path}/recordings") as program:
        yield program


@pytest.fixture(name="trainer")
def trainer_fixture(tmp_path: Path) -> Iterator[Trainer]:
    """Six environments of the sample."""
    with robots(tmp_path, num_envs=6) as training:
        yield training


def test_a_click_shows_a_body_and_buttons_and_keys_do_what_they_say(page: Page, trainer: Trainer) -> None:
    """Names are text; environments, following and collision geometry change by buttons and keys."""
    open_scene(page, trainer)
    panel = "const panel = document.querySelector('canvas.scene').panel; "
    page.driver.execute_script(panel + "panel.view.turn(0.3, 0.2, 0.5)")
    canvas = page.all("canvas.scene")[0]

    def click_on(node: int) -> str:
        """Clicks where the browser itself finds the body."""
        script = """
        const box = panel.canvas.getBoundingClientRect();
        for (let y = 0.05; y < 1; y += 0.02) for (let x = 0.02; x < 1; x += 0.02) {
          const [left, top] = [box.left + x * box.width, box.top + y * box.height];
          if (panel.view.bodyAt(left, top)?.node === arguments[0]) return [x - 0.5, y - 0.5];
        }
        return null;
        """

        def shown() -> str:  # the camera may still move: the place is the body's edge
            if place := page.driver.execute_script(panel + script, node):
                page.click_at("canvas.scene", *place)
            return page.text(".body")

        return str(wait_for(shown, f"body {node}"))

    freeze(page)
    assert NAMES[0] in click_on(0)
    assert "· entity 10 · position" in page.text(".body") and "velocity" in page.text(".body")
    assert page.all("img") == []
    assert page.driver.execute_script("return document.querySelector('.body bdi').textContent") == NAMES[0]
    page.press(" ")
    canvas.send_keys("n")
    assert page.text(".scene-bar .faint") == "environment 1 of 6"
    page.click("button[aria-label='Previous environment']")
    canvas.send_keys("p")
    assert page.text(".scene-bar .faint") == "environment 5 of 6"
    page.driver.execute_script(panel + "panel.count.value = '1'; panel.count.dispatchEvent(new Event('change'))")
    wait_for(lambda: [row["env"] for row in shown_poses(page) or []] == [5], "one environment")
    assert_as_the_engine(freeze(page), {5})
    page.press(" ")

    def collision() -> Any:
        script = "return [...panel.view.copies.values()].map(({ nodes }) => nodes[0].children[1].visible)"
        return page.driver.execute_script(panel + script)

    assert collision() == [False]
    canvas.send_keys("c")
    assert collision() == [True]
    assert "3D" in page.text(".bar button[aria-pressed=true]")
    canvas.send_keys("f")
    assert page.text(".scene-bar button[aria-pressed=false]") == "Follow"
    page.save("scene-collision")
    assert page.errors() == []


def _replayed(page: Page) -> list[list[dict[str, Any]]]:
    """Returns the poses of a replay at ten recorded times."""
    script = """
    const { panel } = document.querySelector("canvas.scene");
    const slider = document.querySelector("input[type=range]");
    const goTo = (ms) => { slider.value = ms; slider.dispatchEvent(new Event("input")); };
    goTo(0);
    const first = panel.source(0).after.time_ms;
    goTo(Number(slider.max) * arguments[0]);
    goTo(panel.source(0).after.time_ms - first);
    """
    rows = []
    for i in range(_TIMES):
        page.driver.execute_script(script, (i + 0.5) / _TIMES)
        rows.append(wait_for(lambda: shown_poses(page), "poses"))
    return rows


_ANIMATED = """
const [text, times, nodes, done] = arguments;
(async () => {
  const { GLTFLoader, AnimationMixer } = await import("three.js");
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const gltf = await new Promise((good, bad) => new GLTFLoader().parse(bytes.buffer, "", good, bad));
  const moving = await Promise.all(nodes.map((node) => gltf.parser.getDependency("node", node)));
  const mixer = new AnimationMixer(gltf.scene);
  mixer.clipAction(gltf.animations[0]).play();
  let now = 0;
  done(times.map((time) => {
    mixer.update(time - now);
    now = time;
    gltf.scene.updateMatrixWorld(true);
    return moving.map((node) => [...node.matrixWorld.elements]);
  }));
})().catch((error) => done(String(error)));
"""


def test_the_past_is_scrubbed_and_a_recording_has_the_recorded_poses(
    page: Page, trainer: Trainer, view: View, tmp_path: Path
) -> None:
    """In the page, in a replay that is opened from disk, and in the animation of a GLB."""
    open_scene(page, trainer)
    page.press("r")
    wait_for(lambda: "Stop recording" in page.text("article .bar"), "a recording")
    begin = trainer.steps
    wait_for(lambda: trainer.steps > begin + 300, "steps")
    page.press("r")
    folder = tmp_path / "recordings"
    wait_for(lambda: list(folder.glob("*.glb")) and "Saved" in page.text("#message"), "the files")

    newest = freeze(page)
    page.press("\ue012")  # left: a second before
    past = wait_for(lambda: [row for row in shown_poses(page) or [] if row["time"] != newest[0]["time"]], "the past")
    assert_as_the_engine(past, set(range(6)))
    assert re.search(r"1\.\d s before the newest", page.text("article .bar"))
    page.press("l")
    wait_for(lambda: page.text("article .badge") == "LIVE", "a live scene")
    assert page.errors() == []
    view.end()

    (replay,), (glb,) = folder.glob("*.html"), folder.glob("*.glb")
    page.driver.get(replay.as_uri())
    wait_for(lambda: page.all("canvas.scene"), "the replay's scene")
    rows = _replayed(page)
    for each in rows:
        assert_as_the_engine(each, set(range(6)))
    assert len({each[0]["time"] for each in rows}) == _TIMES
    page.save("replay")

    times, tracks = tracks_of(glb.read_bytes())
    count, nodes = len(times), len(NAMES)
    chosen = np.linspace(0, count - 2, _TIMES).astype(int)
    text = base64.b64encode(glb.read_bytes()).decode()
    arguments = text, [float(times[i]) for i in chosen], [*range(1, nodes + 1)]
    drawn = page.driver.execute_async_script(_ANIMATED, *arguments)
    for matrices, i in zip(drawn, chosen, strict=True):
        poses = [
            [*tracks[node, "translation"].reshape(count, 3)[i], *tracks[node, "rotation"].reshape(count, 4)[i]]
            for node in range(1, nodes + 1)
        ]
        assert np.abs(np.array(matrices) - world_poses(np.array(poses))).max() <= 1e-5 * EXTENT
        steps = round((poses[0][0]) * 100)
        assert np.abs(np.array(poses) - poses_at(0, steps, nodes)).max() < 1e-5
    assert page.errors() == []
