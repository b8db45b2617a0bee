"""Images from Python: cameras, viewports, depth, encodings, streams and debug drawing."""

import gc
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from matplotlib import image as files

import tandem
from tandem._native import NativeImage
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    start_python,
    unique_name,
    watchdog,
)

_SIZE: dict[str, Any] = {"width": 96, "height": 64}


@pytest.fixture(scope="module")
def shared() -> Iterator[tandem.SharedMemoryClient]:
    """A client of two HalfCheetah environments; the model has a camera named "track"."""
    with (
        tandem.launch_engine("HalfCheetah-v5", num_envs=2) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=0)
        yield client


def test_cameras_are_entities(shared: tandem.SharedMemoryClient) -> None:
    """A camera is found by name and by id, with equal images."""
    (camera,) = shared.camera.list()
    assert camera.name == "track"
    assert "camera" in shared.scene.entity(camera.id).components
    by_name = shared.camera.frame("track", **_SIZE)
    by_id = shared.camera.frame(camera.id, **_SIZE)
    np.testing.assert_array_equal(by_name.pixels, by_id.pixels)


def test_colour_is_an_array(shared: tandem.SharedMemoryClient) -> None:
    """The array is uint8[height, width, channels]; the image has the number of its environment and exchange."""
    shared.step(shared.actions)
    image = shared.camera.frame("track", env_id=1, **_SIZE)
    assert image.pixels.shape == (64, 96, 3) and image.pixels.dtype == np.uint8
    assert image.pixels.std() > 5
    assert (image.name, image.env_id, image.format) == ("track", 1, "raw")
    assert image.frame_seq > 0 and image.timestamp_ms > 1_600_000_000_000
    for wrong in ("depth", "depth_codes", "encoded"):
        with pytest.raises(tandem.InvalidArgument, match="'raw'"):
            getattr(image, wrong)
    other = shared.camera.frame("track", env_id=0, **_SIZE)
    assert other.frame_seq == image.frame_seq


def test_png_has_the_same_pixels(shared: tandem.SharedMemoryClient) -> None:
    """The decoded PNG equals the raw image."""
    raw = shared.camera.frame("track", **_SIZE)
    png = shared.camera.frame("track", format="png", **_SIZE)
    decoded = files.imread(io.BytesIO(png.encoded), format="png")
    np.testing.assert_array_equal(np.round(decoded[:, :, :3] * 255).astype(np.uint8), raw.pixels)
    assert shared.camera.frame("track", format="jpeg", **_SIZE).encoded.startswith(b"\xff\xd8")
    with pytest.raises(tandem.InvalidArgument, match="'png'"):
        _ = png.pixels


def test_depth_is_in_metres(shared: tandem.SharedMemoryClient) -> None:
    """The robot is about three metres away; the background is farther."""
    image = shared.camera.frame("track", kind=tandem.services.CameraKind.DEPTH, **_SIZE)
    assert image.depth.shape == (64, 96) and image.depth.dtype == np.float32
    assert image.depth_codes.dtype == np.uint16 and image.depth_scale > 0
    np.testing.assert_array_equal(image.depth, image.depth_codes * np.float32(image.depth_scale))
    assert 1 < image.depth.min() < 4 < image.depth.max()
    with pytest.raises(tandem.InvalidArgument, match="gray16"):
        _ = image.pixels


@pytest.mark.parametrize(
    ("camera", "options", "said"),
    [
        ("no such camera", {}, "no such camera"),
        (10**6, {}, "1000000"),
        ("", {}, r"^which: expected a name or an id, found ''; client\.camera\.list\(\)"),
        (0, {}, "camera"),
        ("track", {"format": "bmp"}, "bmp"),
        ("track", {"width": 10**6}, "1000000"),
        ("track", {"width": 0}, "width"),
        ("track", {"height": -1}, "height"),
        ("track", {"kind": 2}, "^kind: expected a tandem.services.CameraKind"),
        ("track", {"kind": "depth"}, r"^kind: expected .*tandem\.services\.CameraKind\.DEPTH"),
        ("x" * 10**6, {}, r"^[^\n]{,300}$"),
        ("track", {"env_id": 2}, "env_id"),
    ],
)
def test_invalid_image_request_is_refused(
    shared: tandem.SharedMemoryClient, camera: Any, options: dict[str, Any], said: str
) -> None:
    """`frame` and `stream` refuse the same arguments."""
    with pytest.raises(tandem.InvalidArgument, match=said):
        shared.camera.frame(camera, **options)
    with pytest.raises(tandem.InvalidArgument, match=said):
        shared.camera.stream(camera, **options).next()


def test_streams_send_images_while_steps_run(shared: tandem.SharedMemoryClient) -> None:
    """A colour and a depth stream run at the same time, while another thread steps."""
    stop = threading.Event()

    def step() -> None:
        rng = np.random.default_rng(0)
        while not stop.is_set():
            shared.step(rng.uniform(-1, 1, (2, 6)).astype(np.float32))

    stepping = threading.Thread(target=step)
    stepping.start()
    try:
        with (
            shared.camera.stream("track", fps=30, **_SIZE) as colour,
            shared.viewport.stream(kind=tandem.services.CameraKind.DEPTH, env_id=1, fps=30, **_SIZE) as depth,
        ):
            pictures = [next(colour) for _ in range(5)]
            depths = [next(depth) for _ in range(5)]
            newest = colour.newest()
            current = shared.viewport.info().current
        after = shared.viewport.info().current
    finally:
        stop.set()
        stepping.join()
    numbers = [picture.frame_number for picture in [*pictures, newest]]
    assert numbers == sorted(set(numbers)) and numbers[0] == 1
    exchanges = [picture.frame_seq for picture in pictures]
    assert exchanges == sorted(exchanges) and exchanges[-1] > exchanges[0]
    assert current is not None and current.streaming and current.viewport_name == shared.viewport.info().names[0]
    assert after is None
    assert {picture.name for picture in pictures} == {"track"}
    assert {picture.name for picture in depths} == {current.viewport_name}
    assert pictures[0].pixels.shape == (64, 96, 3)
    assert all(picture.env_id == 1 and picture.depth.shape == (64, 96) for picture in depths)


def test_viewports_are_named(shared: tandem.SharedMemoryClient) -> None:
    """The first viewport is the default."""
    info = shared.viewport.info()
    assert info.names
    image = shared.viewport.frame(**_SIZE)
    assert image.name == info.names[0]
    np.testing.assert_array_equal(image.pixels, shared.viewport.frame(info.names[0], **_SIZE).pixels)
    with pytest.raises(tandem.InvalidArgument, match="no such view"):
        shared.viewport.frame("no such view")


def test_an_arrow_has_its_length(shared: tandem.SharedMemoryClient) -> None:
    """An arrow covers the same columns as the line between its ends, up to 3 pixels."""
    torso = shared.scene.entity("torso").transform  # the camera follows the torso
    assert torso is not None and torso.position is not None
    begin = torso.position + np.array([0, 0, 0.6], np.float32)
    plain = shared.viewport.frame(width=400, height=300).pixels.astype(np.int64)

    def columns() -> tuple[int, int]:
        drawn = np.abs(shared.viewport.frame(width=400, height=300).pixels - plain).sum(axis=2) > 60
        shared.debug.clear()
        where = np.flatnonzero(drawn.any(axis=0))
        return int(where[0]), int(where[-1])

    shared.debug.line(begin, begin + np.array([1, 0, 0], np.float32))
    line = columns()
    shared.debug.arrow(begin, (1, 0, 0))
    arrow = columns()
    assert line[1] - line[0] > 50
    assert abs(arrow[0] - line[0]) <= 3 and abs(arrow[1] - line[1]) <= 3


def test_marks_are_in_the_images_until_cleared(shared: tandem.SharedMemoryClient) -> None:
    """A mark is only in its own environment's images."""

    def image_of(env_id: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return shared.viewport.frame(env_id=env_id, **_SIZE).pixels

    plain, other = image_of(), image_of(1)
    torso = shared.scene.entity("torso").transform
    assert torso is not None and torso.position is not None
    at = torso.position + np.array([0, 0, 0.3], np.float32)
    debug = shared.debug
    draws: list[Callable[[], object]] = [
        lambda: debug.line(at, at + 1, color=(1, 0, 0)),
        lambda: debug.arrow(at, (0.5, 0, 0), color=[0, 1, 0, 0.9], scale=2),
        lambda: debug.velocity_command(at, lin_vel_x=1, lin_vel_y=0.5, ang_vel_z=1, scale=0.5),
        lambda: debug.draw(lines=[tandem.services.DebugLine(at, at + 1)]),
        lambda: debug.draw(arrows=[tandem.services.DebugArrow(at, (1, 0, 0))], clear_previous=True),
    ]
    for draw in draws:
        draw()
        assert not np.array_equal(image_of(), plain)
        np.testing.assert_array_equal(image_of(1), other)
        debug.clear()
        np.testing.assert_array_equal(image_of(), plain)


def _in_place(image: tandem.services.Image) -> bool:
    """Returns whether the image is in a slot of the region."""
    return isinstance(image.data.base, NativeImage)


@pytest.fixture
def with_slots() -> Iterator[tandem.EngineProcess]:
    """Launches an engine whose slots have room for one colour image of _SIZE."""
    flags = ("--image_slot_bytes", str(96 * 64 * 3))
    with tandem.launch_engine("HalfCheetah-v5", num_envs=2, name=unique_name(), flags=flags) as engine:
        yield engine


def test_an_image_is_read_in_its_slot(with_slots: tandem.EngineProcess) -> None:
    """The images equal those of the ring; two are held in place, and the third comes through the ring."""
    with tandem.SharedMemoryClient(with_slots.name, timeout=60) as client:
        client.reset(seed=0)
        first = client.camera.frame("track", **_SIZE)
        second = client.viewport.frame(env_id=1, **_SIZE)
        third = client.camera.frame("track", **_SIZE)
        assert [_in_place(image) for image in (first, second, third)] == [True, True, False]
        np.testing.assert_array_equal(first.pixels, third.pixels)
        assert not np.array_equal(first.pixels, second.pixels)
        large = client.camera.frame("track", width=97, height=64)
        assert not _in_place(large) and large.intact
        del second
        gc.collect()
        depth = client.camera.frame("track", kind=tandem.services.CameraKind.DEPTH, **_SIZE)
        assert _in_place(depth) and depth.depth.shape == (64, 96)
        np.testing.assert_array_equal(first.pixels, third.pixels)
        assert first.intact and depth.intact


def test_a_stream_stays_in_its_slots(with_slots: tandem.EngineProcess) -> None:
    """A loop that keeps the last image while it waits for the next reads all of them in place, and each is new."""
    with tandem.SharedMemoryClient(with_slots.name, timeout=60) as client:
        client.reset(seed=0)
        numbers = []
        with client.camera.stream("track", fps=60, **_SIZE) as stream:
            for _ in range(6):
                client.step(client.actions)
                image = stream.next()
                assert _in_place(image) and image.intact and image.pixels.std() > 5
                numbers.append(image.frame_number)
        assert numbers == sorted(set(numbers))


def test_attendants_have_slots_of_their_own(with_slots: tandem.EngineProcess) -> None:
    """Images of attendants and of the client do not overwrite each other; a killed attendant's slots are free again."""
    with tandem.SharedMemoryClient(with_slots.name, timeout=60) as client, ExitStack() as stack:
        client.reset(seed=0)
        own = [client.camera.frame("track", **_SIZE) for _ in range(2)]
        panels = [stack.enter_context(tandem.Attendant(with_slots.name, timeout=60)) for _ in range(3)]
        theirs = [panel.camera.frame("track", env_id=1, **_SIZE) for panel in panels for _ in range(2)]
        assert all(_in_place(image) for image in (*own, *theirs))
        for image in theirs:
            np.testing.assert_array_equal(image.pixels, theirs[0].pixels)
        np.testing.assert_array_equal(own[0].pixels, own[1].pixels)
        assert not np.array_equal(own[0].pixels, theirs[0].pixels)
        for _ in range(3):
            program = (
                "import os, signal, tandem\n"
                f"panel = tandem.Attendant({with_slots.name!r}, timeout=60)\n"
                "held = [panel.camera.frame('track', width=96, height=64) for _ in range(2)]\n"
                "print('held', flush=True)\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n"
            )
            with start_python(program) as killed:
                assert killed.stdout is not None and killed.stdout.readline().strip() == "held"
                killed.wait(60)
        with tandem.Attendant(with_slots.name, timeout=60) as panel:
            assert _in_place(panel.camera.frame("track", **_SIZE))


def test_a_late_read_is_detected(with_slots: tandem.EngineProcess) -> None:
    """After `close`, the slot's next client may overwrite a held image, which then is not intact."""
    with tandem.SharedMemoryClient(with_slots.name, timeout=60) as client:
        client.reset(seed=0)
        old = client.camera.frame("track", **_SIZE)
    assert old.intact
    with tandem.SharedMemoryClient(with_slots.name, timeout=60) as client:
        client.reset(seed=1)
        new = client.camera.frame("track", **_SIZE)
        assert new.intact and not old.intact


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda debug: debug.line((0, 0), (0, 0, 1)), "start: expected"),
        (lambda debug: debug.line((0, 0, 0), (0, 0, np.inf)), "end: expected"),
        (lambda debug: debug.line((0, 0, 0), (0, 0, 1), color=(2, 0, 0)), "color: expected"),
        (lambda debug: debug.line((0, 0, 0), (0, 0, 1), color=(1, 0)), "color: expected"),
        (lambda debug: debug.line((0, 0, 0), (0, 0, 1), color="red"), "color: expected 3 or 4 numbers"),
        (lambda debug: debug.arrow((0, 0, 0), "up"), "direction: expected"),
        (lambda debug: debug.arrow((0, 0, 0), (0, 0, 1), scale=np.nan), "scale: expected"),
        (lambda debug: debug.velocity_command((0, 0, 0), lin_vel_x="fast"), "lin_vel_x: expected"),
        (lambda debug: debug.clear(env_id=2), "env_id: expected"),
    ],
    ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
)
def test_invalid_mark_is_refused(shared: tandem.SharedMemoryClient, call: Any, said: str) -> None:
    """The error begins with the argument's name."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{said}"):
        call(shared.debug)
