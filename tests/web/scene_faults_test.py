"""Scenes that fail, and those that cannot be shown: each ends in a clear state, and training goes on."""

import selectors
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.browser_fixture import browser_fixture, page_fixture, view_fixture  # noqa: F401, fixtures
from tests.web.forwarded_socket import forwarded
from tests.web.page_fixture import DEADLINE_SECS, Page, Trainer, View, running_view, wait_for
from tests.web.scene_samples import (
    NAMES,
    SCENE_ENGINE,
    assert_as_the_engine,
    freeze,
    open_run_in_3d,
    open_scene,
    robots,
    shown_poses,
    tracks_of,
)
from tests.web.socket_client import SocketClient, cookie_of

_NO_WEBGL = """
const before = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
  return kind.startsWith("webgl") ? null : before.call(this, kind, ...more);
};
"""
_PANEL = "const { panel } = document.querySelector('canvas.scene'); "
# Hides the page, or shows it again.
_HIDE = """
Object.defineProperty(document, "hidden", { value: arguments[0], configurable: true });
document.dispatchEvent(new Event("visibilitychange"));
"""


def test_a_body_without_a_finite_pose_is_not_drawn_and_a_line_says_so(page: Page, tmp_path: Path) -> None:
    """The others are; the page reports no error."""
    with robots(tmp_path, SCENE_BAD_NODE="1") as trainer:
        open_scene(page, trainer)
        wait_for(lambda: "1 bodies of environment 0" in page.text(".scene-panel .late"), "the line")
        visible = _PANEL + "return panel.view.copies.get(0).nodes.map((node) => node.visible)"
        assert page.driver.execute_script(visible) == [True, False, True, True]
        page.save("scene-not-finite")
        assert page.errors() == []


def test_an_engine_that_is_restarted_with_another_model_is_shown_again(page: Page, tmp_path: Path) -> None:
    """The page says that the engine is gone, then shows the other bodies."""
    name = unique_name()
    with robots(tmp_path, name=name, num_envs=2) as trainer:
        open_scene(page, trainer)
        trainer.kill_engine()
        wait_for(lambda: "RECONNECTING" in page.text("article .badge"), "a lost scene")
        assert page.text(".scene-note") != ""
    with robots(tmp_path, name=name, num_envs=3, names=["a", "b"]):
        names = _PANEL + "return panel.bodies.map((body) => body.name)"
        wait_for(lambda: page.driver.execute_script(names) == ["a", "b"], "the other model")
        wait_for(lambda: page.text("article .badge") == "LIVE", "its poses")
        newest = freeze(page)
        assert [len(row["matrices"]) for row in newest] == [2, 2, 2]
        assert page.errors() == []


def test_a_browser_that_ends_a_drawing_gets_images_and_can_draw_again(page: Page, tmp_path: Path) -> None:
    """The page says why; the key D shows the scene again, many times: no context is left behind."""
    with robots(tmp_path) as trainer:
        open_scene(page, trainer)
        page.driver.execute_script(_PANEL + "panel.view.renderer.forceContextLoss()")
        wait_for(lambda: "The browser has ended" in page.text(".scene-note"), "the reason")
        for _ in range(20):
            page.press("d")
            wait_for(lambda: page.all("canvas.scene") and shown_poses(page), "a scene")
            page.press("d")
            wait_for(lambda: not page.all("canvas.scene"), "images")
        assert page.text(".scene-note") == ""
        assert [error for error in page.errors() if "contexts" in error] == []


def test_images_are_shown_without_webgl(page: Page) -> None:
    """And a sentence says why."""
    added = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _NO_WEBGL})
    page.driver.refresh()
    wait_for(lambda: page.text("#link") == "connected", "a connected page")
    trainer = Trainer(unique_name())
    try:
        open_run_in_3d(page, trainer.name)
        wait_for(lambda: page.all("article .picture:not([hidden])"), "an image")
        assert "This browser has no WebGL: images" in page.text("article")
        assert page.all("canvas.scene") == []
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        trainer.close()


def test_an_engine_without_a_scene_is_shown_by_images(page: Page) -> None:
    """And a sentence says why."""
    trainer = Trainer(unique_name(), None, server=SCENE_ENGINE, frames=None)
    try:
        open_run_in_3d(page, trainer.name)
        wait_for(lambda: page.text(".scene-note") == "This engine has no scene in 3D.", "the reason")
        assert "WatchScene" in str(page.all(".scene-note")[0].get_dom_attribute("title"))
        assert page.all("canvas.scene") == []
        page.save("scene-none")
    finally:
        trainer.close()


def test_twenty_browsers_share_one_watch_and_get_what_they_acknowledge(view: View, tmp_path: Path) -> None:
    """Each gets its environment; one that acknowledges nothing gets two snapshots; then nothing remains."""
    cookie = cookie_of(view.address)
    with robots(tmp_path, num_envs=20) as trainer, selectors.DefaultSelector() as selector:
        clients = [SocketClient(view.address, cookie) for _ in range(20)]
        for env, client in enumerate(clients):
            selector.register(client, selectors.EVENT_READ)
            client.send(do="watch", view=1, run=trainer.name, width=64)
            client.send(do="scene", view=1, envs=[env])

        def take_until(is_so: Callable[[], bool], what: str) -> None:
            def take() -> bool:
                for key, _ in selector.select(0.1):
                    assert isinstance(key.fileobj, SocketClient)
                    key.fileobj.take(draws=key.fileobj is not clients[0])
                return is_so()

            wait_for(take, what)

        begin = trainer.steps
        take_until(lambda: all(client.pictures >= 30 for client in clients[1:]), "snapshots")
        assert trainer.steps > begin
        assert clients[0].pictures == 2
        clients[0].send(do="posed", view=1, sent=clients[0].picture[0]["sent"])
        take_until(lambda: clients[0].pictures == 4, "two more")
        for env, client in enumerate(clients):
            head, rows = client.picture
            assert head["poses"] and len(rows) == 48 + 28 * len(NAMES) and rows[0] == env
        address = view.address.split("/?")[0] + clients[1].texts["scene"]["glb"]
        request = urllib.request.Request(address, headers={"Cookie": cookie})
        with urllib.request.urlopen(request) as answer:
            assert answer.read() == (tmp_path / "robot.glb").read_bytes()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address)
        for client in clients:
            client.close()
        wait_for(lambda: not Path(f"/dev/shm/tandem.scene.{trainer.name}").exists(), "no segment without a browser")


def test_a_slow_link_gets_a_large_model_whole(tmp_path: Path) -> None:
    """The server ends a connection that takes nothing for ten seconds, not one that takes longer for all."""
    door = tmp_path / "door"
    with robots(tmp_path, spare_bytes=2_000_000) as trainer, running_view(path=door), forwarded(door) as port:
        client = SocketClient(f"http://localhost:{port}/", "")
        client.send(do="watch", view=1, run=trainer.name, width=64)
        client.send(do="scene", view=1, envs=[0])
        wait_for(lambda: client.take() and client.texts.get("scene", {}).get("state") == "live", "a model")
        address = client.texts["scene"]["glb"]
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(DEADLINE_SECS)
            link.connect(str(door))
            link.sendall(f"GET {address} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            begin, answer = time.monotonic(), b""
            while more := link.recv(1 << 15):
                answer += more
                time.sleep(0.25)  # the link: a megabit a second
        assert answer.startswith(b"HTTP/1.0 200"), answer[:1000]
        assert time.monotonic() - begin > 14
        assert answer.split(b"\r\n\r\n", 1)[1] == (tmp_path / "robot.glb").read_bytes()
        client.close()


def test_a_hidden_tab_gets_no_poses(page: Page, tmp_path: Path) -> None:
    """And the newest ones when it is shown again."""
    with robots(tmp_path) as trainer:
        open_scene(page, trainer)
        newest = _PANEL + "return panel.source(performance.now()).after.number"
        page.driver.execute_script(_HIDE, True)
        wait_for(lambda: page.text("article .badge") == "LIVE" and shown_poses(page), "the last poses")

        def number_after_steps() -> int:
            begin = trainer.steps
            wait_for(lambda: trainer.steps > begin + 300, "steps")
            return int(page.driver.execute_script(newest) or 0)

        wait_for(lambda: number_after_steps() == number_after_steps(), "no more poses")
        before = number_after_steps()
        page.driver.execute_script(_HIDE, False)
        wait_for(lambda: (page.driver.execute_script(newest) or 0) > before, "new poses")
        assert_as_the_engine(freeze(page), {0})


def _record(client: SocketClient, run: str, on: bool) -> str:
    """Begins or ends a recording of a run; returns the path without its ending."""
    client.texts.pop("done", None)
    client.send(do="act", id=1, what="record", target=run, on=on)
    done = wait_for(lambda: client.take() and client.texts.get("done"), "an answer")
    return str(done["text"].rpartition(".html")[0].rpartition(" ")[2])


def test_a_recording_ends_with_its_scene_and_is_saved(tmp_path: Path) -> None:
    """The next scene of the name begins another one; a second request does not begin it again."""
    name = unique_name()
    with running_view("--control", f"--recordings={tmp_path}") as view:
        client = SocketClient(view.address, cookie_of(view.address))
        with robots(tmp_path, name=name) as trainer:
            client.send(do="watch", view=1, run=name, width=64)
            client.send(do="scene", view=1, envs=[0])
            wait_for(lambda: client.take() and client.pictures > 5, "snapshots")
            path = _record(client, name, on=True)
            assert _record(client, name, on=True) == ""
            assert "not recorded yet" in client.texts["done"]["error"]
            recorded = client.pictures
            wait_for(lambda: client.take() and client.pictures > recorded + 20, "more snapshots")
            trainer.kill_engine()
        with robots(tmp_path, name=name, names=["a", "b"]):
            wait_for(lambda: client.take() and client.texts["scene"]["nodes"] == 2, "the next scene")
            wait_for(lambda: client.take() and not client.texts["view"]["recording"], "no recording")
            assert f"{path}.html" in client.texts["view"]["error"]
            glb = Path(f"{path}.glb")
            wait_for(glb.exists, "the file")
            times, tracks = tracks_of(glb.read_bytes())
            assert len(times) > 10 and len(tracks) == 2 * len(NAMES)
        client.close()


@pytest.mark.parametrize(
    ("nodes", "children", "text"),
    [("3", b"[7]", "expected 3 moving nodes"), ("4", b"[0]", "expected a tree of nodes")],
)
def test_a_model_that_is_no_tree_or_does_not_fit_its_poses_is_refused(
    page: Page, tmp_path: Path, nodes: str, children: bytes, text: str
) -> None:
    """The page says so, and lives."""
    with robots(tmp_path, SCENE_NODES=nodes) as trainer:
        glb = tmp_path / "robot.glb"
        glb.write_bytes(glb.read_bytes().replace(b'"children": [7]', b'"children": ' + children))
        open_run_in_3d(page, trainer.name)
        wait_for(lambda: text in page.text(".scene-note"), text)


def test_a_plane_that_moves_is_drawn_where_it_is(page: Page, tmp_path: Path) -> None:
    """It belongs to each environment, unlike ground that all share."""
    with robots(tmp_path, SCENE_NODES="5") as trainer:
        glb = tmp_path / "robot.glb"
        data = glb.read_bytes()
        glb.write_bytes(data.replace(b"[1, 2, 3, 4]", b"[1,2,3,4,5] "))
        assert glb.read_bytes() != data
        open_scene(page, trainer)
        assert [len(row["matrices"]) for row in freeze(page)] == [5]
        assert page.errors() == []
