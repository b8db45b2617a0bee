"""`FastLaneWriter` and `FastLaneReader`: frames, metadata and metrics arrive; invalid arguments are refused."""

import gc
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.fastlane import NoSuchRun, WorkerSettings

SMALL = tandem.fastlane.FastLaneConfig(width=4, height=3, capacity=4, metadata_size=16)
METRICS = tandem.fastlane.FastLaneMetrics(last_reward=1.5, rolling_return=-2.25, step_rate_hz=1000.0)


@pytest.fixture
def run_id() -> Iterator[str]:
    """Makes a unique run id, and checks that the test leaves no segment with it."""
    name = f"fastlane test/{uuid.uuid4().hex}"
    yield name
    gc.collect()
    left = [file for file in os.listdir("/dev/shm") if name.replace("/", "_") in file]
    for file in left:
        os.unlink(f"/dev/shm/{file}")
    assert not left


def picture(seed: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Returns a frame of SMALL's shape with random pixels."""
    return np.random.default_rng(seed).integers(0, 256, (3, 4, 3), np.uint8)


def test_defaults_are_the_protocols() -> None:
    """The defaults equal those of MOSAIC's classes."""
    assert tandem.fastlane.FastLaneConfig(84, 84) == tandem.fastlane.FastLaneConfig(84, 84, 3, "RGB", 128, 0)
    assert tandem.fastlane.FastLaneMetrics() == tandem.fastlane.FastLaneMetrics(0.0, 0.0, 0.0)
    with pytest.raises(AttributeError):
        SMALL.width = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "form",
    [
        lambda a: a.tobytes(),
        lambda a: bytearray(a.tobytes()),
        lambda a: memoryview(a.tobytes()),
        lambda a: memoryview(a),
        lambda a: a,
        lambda a: a.ravel(),
        lambda a: np.asfortranarray(a),
        lambda a: np.ascontiguousarray(a[::-1])[::-1],
    ],
)
def test_every_type_of_frame_arrives_as_its_bytes(run_id: str, form: Any) -> None:
    """Also non-contiguous arrays and arrays with negative strides."""
    frame = picture(1)
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer, tandem.FastLaneReader.attach(run_id) as reader:
        assert reader.latest_frame() is None
        assert writer.publish(form(frame), metrics=METRICS, metadata=b"{}") == 1
        found = reader.latest_frame()
        assert found == tandem.fastlane.FastLaneFrame(frame.tobytes(), 4, 3, 3, METRICS, b"{}", 1)
        assert found is not None and np.array_equal(found.view, frame)
        assert not found.view.flags.writeable
        assert reader.metrics() == METRICS


def test_latest_frame_repeats_and_next_frame_returns_each_frame_once(run_id: str) -> None:
    """`dropped` counts the frames that `next_frame` skipped."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer, tandem.FastLaneReader.attach(run_id) as reader:
        heads = [writer.publish(picture(i)) for i in range(3)]
        assert heads == [1, 2, 3] and writer.head == 3
        first, again = reader.latest_frame(), reader.latest_frame()
        assert first == again and first is not None and first.data == picture(2).tobytes() and first.metadata is None
        assert reader.next_frame() == first
        assert reader.next_frame() is None
        for i in range(3, 10):
            writer.publish(picture(i))
        newest = reader.next_frame()
        assert newest is not None and newest.number == 10
        assert reader.dropped == 6
    assert reader.dropped == 6  # readable after close


def test_rgba_and_short_frames_and_long_metadata(run_id: str) -> None:
    """A frame may be shorter than its slot; metadata longer than metadata_size is cut, as MOSAIC cuts it."""
    config = tandem.fastlane.FastLaneConfig(5, 1, 4, "RGBA", capacity=1, metadata_size=4)
    with (
        tandem.fastlane.FastLaneWriter.create(run_id, config) as writer,
        tandem.FastLaneReader.attach(run_id) as reader,
    ):
        writer.publish(b"0123456789abcdefghij", metadata=b"01234567")
        frame = reader.latest_frame()
        assert frame is not None and (frame.data, frame.metadata) == (b"0123456789abcdefghij", b"0123")
        assert frame.view.shape == (1, 5, 4)
        writer.publish(b"xyz")
        short = reader.latest_frame()
        assert short is not None and (short.data, short.metadata) == (b"xyz", None)
        with pytest.raises(ValueError):
            _ = short.view


def test_metrics_stay_until_the_next_publish_with_metrics(run_id: str) -> None:
    """Later frames keep the metrics, as in MOSAIC's writer; metadata belongs to one frame and may be a str."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer, tandem.FastLaneReader.attach(run_id) as reader:
        writer.publish(picture(1))
        assert reader.metrics() == tandem.fastlane.FastLaneMetrics()
        writer.publish(picture(1), metrics=METRICS, metadata='{"a": "é"}')
        with pytest.raises(tandem.InvalidArgument):
            writer.publish(bytes(37), metrics=tandem.fastlane.FastLaneMetrics(9.0, 9.0, 9.0))
        first = reader.next_frame()
        writer.publish(picture(1))
        second = reader.next_frame()
    assert first is not None and (first.metrics, first.metadata) == (METRICS, '{"a": "é"}'.encode())
    assert second is not None and (second.metrics, second.metadata) == (METRICS, None)


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (bytes(37), "found 37"),
        (np.zeros((3, 4, 4), np.uint8), r"found \[3, 4, 4\]"),
        (np.zeros((4, 3, 3), np.uint8), r"found \[4, 3, 3\]"),
        (np.zeros((3, 4), np.uint8), r"found \[3, 4\]"),
        (np.zeros((1, 3, 4, 3), np.uint8), r"found \[1, 3, 4, 3\]"),
        (memoryview(bytes(12)).cast("B", [2, 2, 3]), r"found \[2, 2, 3\]"),
        (np.zeros((), np.uint8), r"found \[\]"),
        (np.zeros((3, 4, 3), np.float32), "found elements of 'f'"),
        (np.zeros(9, np.int32), "found elements of 'i'"),
        ("text", "found str"),
        (None, "found NoneType"),
        ([1, 2], "found list"),
    ],
)
def test_an_invalid_frame_is_refused(run_id: str, frame: Any, found: str) -> None:
    """The error is InvalidArgument, also a ValueError as in MOSAIC; nothing is published."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer:
        with pytest.raises(tandem.InvalidArgument, match=found) as raised:
            writer.publish(frame)
        assert isinstance(raised.value, ValueError)
        assert writer.head == 0


@pytest.mark.parametrize(
    "config",
    [
        tandem.fastlane.FastLaneConfig(0, 3),
        tandem.fastlane.FastLaneConfig(3, -1),
        tandem.fastlane.FastLaneConfig(3, 3, 4),
        tandem.fastlane.FastLaneConfig(3, 3, 3, "BGR"),
        tandem.fastlane.FastLaneConfig(3, 3, capacity=0),
        tandem.fastlane.FastLaneConfig(3, 3, metadata_size=-1),
        tandem.fastlane.FastLaneConfig(1 << 20, 3),
        tandem.fastlane.FastLaneConfig(1.5, 3),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_config_is_refused(run_id: str, config: tandem.fastlane.FastLaneConfig) -> None:
    """The error is InvalidArgument, and no segment is created."""
    with pytest.raises(tandem.InvalidArgument):
        tandem.fastlane.FastLaneWriter.create(run_id, config)


def test_attach_without_a_writer_is_file_not_found() -> None:
    """The error is NoSuchRun, which is also a FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        tandem.FastLaneReader.attach("no such run")
    with pytest.raises(NoSuchRun, match="no such run"):
        tandem.FastLaneReader.attach("no such run")
    with pytest.raises(tandem.InvalidArgument):
        tandem.FastLaneReader.attach("")


def test_the_end_is_reported_and_the_last_frame_stays(run_id: str) -> None:
    """After `close`, which is safe twice, each call raises ClientClosed."""
    writer = tandem.fastlane.FastLaneWriter.create(run_id, SMALL)
    reader = tandem.FastLaneReader.attach(run_id)
    writer.publish(picture(1))
    assert not reader.is_invalidated() and reader.writer_alive() is True
    writer.invalidate()
    assert reader.is_invalidated()
    frame = reader.latest_frame()
    writer.close()
    writer.close()
    assert frame is not None and reader.latest_frame() == frame
    assert reader.writer_alive() is False
    for call in (lambda: writer.publish(picture(1)), writer.invalidate, writer.has_reader):
        with pytest.raises(tandem.ClientClosed):
            call()
    assert writer.closed and writer.head == 1
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL):
        assert reader.is_replaced()
    reader.close()
    reader.close()
    for ask in (reader.latest_frame, reader.metrics, reader.is_invalidated, reader.writer_alive, reader.is_replaced):
        with pytest.raises(tandem.ClientClosed):
            ask()
    assert reader.closed and reader.dropped == 0


def test_a_second_writer_is_refused_and_a_dead_ones_segment_replaced(run_id: str) -> None:
    """The reader attaches before the writer's death: any engine that starts removes a dead segment's name."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL):
        with pytest.raises(tandem.AlreadyAttached):
            tandem.fastlane.FastLaneWriter.create(run_id, SMALL)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        doomed = tandem.fastlane.FastLaneWriter.create(run_id, SMALL)
        doomed.publish(picture(1))
        os.write(write_end, b".")
        signal.pause()
    os.read(read_end, 1)
    with tandem.FastLaneReader.attach(run_id) as reader:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert reader.writer_alive() is False and not reader.is_invalidated()
        with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer:
            assert reader.is_replaced() and writer.head == 0


def test_a_forked_child_may_not_publish(run_id: str) -> None:
    """Two writers would tear frames."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                writer.publish(picture(1))
            except tandem.ForkedChild:
                writer.close()
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert writer.publish(picture(1)) == 1
        with tandem.FastLaneReader.attach(run_id) as reader:
            assert not reader.is_invalidated()


def test_a_forked_child_reads_on_and_does_not_know_the_writer(run_id: str) -> None:
    """In a forked child the reader returns frames; `writer_alive` is None, since the lock is the parent's."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer, tandem.FastLaneReader.attach(run_id) as reader:
        writer.publish(picture(1))
        child = os.fork()
        if child == 0:
            frame = reader.latest_frame()
            seen = frame is not None and frame.data == picture(1).tobytes()
            os._exit(0 if seen and reader.writer_alive() is None and not reader.is_replaced() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert reader.writer_alive() is True and writer.has_reader()


def test_a_writer_finds_an_attached_reader(run_id: str) -> None:
    """The first `has_reader` call checks at once."""
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer, tandem.FastLaneReader.attach(run_id):
        assert writer.has_reader()
    with tandem.fastlane.FastLaneWriter.create(run_id, SMALL) as writer:
        assert not writer.has_reader()


def test_other_threads_run_while_a_segment_is_created(run_id: str) -> None:
    """`create` releases the GIL while it reserves memory, about a second for a gigabyte.

    This thread must run at the middle of a creation, in 10 of at most 50 creations: the scheduler may give the
    cores to other work. If `create` held the GIL, this thread would run there only by rare chance.
    """

    def make(times: list[float]) -> None:
        config = tandem.fastlane.FastLaneConfig(640, 480, capacity=32)
        times.append(time.perf_counter())
        with tandem.fastlane.FastLaneWriter.create(run_id, config):
            times.append(time.perf_counter())

    ran_half_way = 0
    for _ in range(50):
        times: list[float] = []
        ran = []
        maker = threading.Thread(target=make, args=(times,))
        maker.start()
        while maker.is_alive():
            ran.append(time.perf_counter())
        begin, end = times
        ran_half_way += any(0.45 < (at - begin) / (end - begin) < 0.55 for at in ran)
        if ran_half_way == 10:
            return
    pytest.fail(f"this thread ran half-way through {ran_half_way} of 50 creations")


def test_tiles_are_laid_row_by_row() -> None:
    """There are ceil(sqrt(N)) rows and ceil(N / rows) columns; unused tiles are zero."""
    frames = [np.full((2, 3, 3), i + 1, np.uint8) for i in range(5)]
    grid = tandem.fastlane.tile_frames(frames)
    assert grid.shape == (6, 6, 3) and grid.dtype == np.uint8
    assert grid[::2, ::3, 0].tolist() == [[1, 2], [3, 4], [5, 0]]
    assert (grid[4:, :3] == 5).all()
    for count, shape in [(1, (2, 3)), (2, (4, 3)), (3, (4, 6)), (4, (4, 6)), (7, (6, 9)), (9, (6, 9)), (10, (8, 9))]:
        assert tandem.fastlane.tile_frames(frames[:1] * count).shape == (*shape, 3)
    assert tandem.fastlane.tile_frames(frames[:1]) is not frames[0]
    for bad in ([], [frames[0], frames[0][:1]], [frames[0], frames[0].astype(float)], [np.zeros(3)]):
        with pytest.raises(ValueError):
            tandem.fastlane.tile_frames(bad)


def test_variables_are_written_and_read_back() -> None:
    """The defaults are MOSAIC's; a worker reads variables with either prefix."""
    env: dict[str, Any] = {"PATH": "/bin"}
    assert tandem.fastlane.apply_fastlane_environment(env, fastlane_only=True, fastlane_slot=3) is env
    assert env == {
        "PATH": "/bin",
        "MOSAIC_FASTLANE_ONLY": "1",
        "MOSAIC_FASTLANE_SLOT": "3",
        "MOSAIC_FASTLANE_VIDEO_MODE": "single",
        "MOSAIC_FASTLANE_GRID_LIMIT": "4",
    }
    assert WorkerSettings.read(env) == WorkerSettings(True, 3, "single", 4)
    assert WorkerSettings.read({}) == WorkerSettings(False, 0, None, 4)
    other = {key.replace("MOSAIC", "GYM_GUI"): value for key, value in env.items()}
    assert WorkerSettings.read(other) == WorkerSettings.read(env)
    both = {**other, "MOSAIC_FASTLANE_SLOT": "1"}
    assert WorkerSettings.read(both).slot == 1
    for name, value in [("SLOT", "x"), ("SLOT", "-1"), ("GRID_LIMIT", "0"), ("VIDEO_MODE", "film")]:
        with pytest.raises(ValueError, match=name.lower() if name == "VIDEO_MODE" else name):
            WorkerSettings.read({f"MOSAIC_FASTLANE_{name}": value})
    with pytest.raises(ValueError):
        tandem.fastlane.apply_fastlane_environment({}, fastlane_only=False, fastlane_slot=0, video_mode="film")
