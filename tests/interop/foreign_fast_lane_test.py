"""Frame rings of pure-Python programs and of Tandem are readable in both directions."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

import tandem
from tests.interop import foreign_fast_lane
from tests.interop.foreign_fast_lane import ForeignReader, ForeignWriter, segment_name

PROGRAM = Path(foreign_fast_lane.__file__)
_WATCHDOG_SECS = 60


@pytest.fixture
def run_id() -> Iterator[str]:
    """Makes a unique run id, and checks that the test leaves no segment."""
    name = f"interop test/{uuid.uuid4().hex}"
    yield name
    left = [file for file in os.listdir("/dev/shm") if name.replace("/", "_") in file]
    for file in left:
        os.unlink(f"/dev/shm/{file}")
    assert not left


@pytest.mark.parametrize(("channels", "pixel_format"), [(3, "RGB"), (4, "RGBA")])
@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_tandem_reads_mosaics_writer(run_id: str, channels: int, pixel_format: str, capacity: int) -> None:
    """Reads frames, metrics, metadata (cut to metadata_size), short frames, and the invalidation."""
    writer = ForeignWriter(run_id, 5, 3, channels, capacity, 7)
    with tandem.FastLaneReader.attach(run_id) as reader:
        assert (reader.width, reader.height, reader.channels) == (5, 3, channels)
        assert (reader.capacity, reader.metadata_size) == (capacity, 7)
        assert reader.latest_frame() is None
        for number in range(1, 8):
            pixels = bytes(range(number, number + 15 * channels))
            writer.publish(pixels, (1.0 * number, 2.5, -3.0), b'{"a": 1}')
            frame = reader.next_frame()
            metrics = tandem.fastlane.FastLaneMetrics(1.0 * number, 2.5, -3.0)
            assert frame == tandem.fastlane.FastLaneFrame(pixels, 5, 3, channels, metrics, b'{"a": 1', number)
            assert reader.next_frame() is None
        writer.publish(b"short", (0.0, 0.0, 0.0), b"behind")
        short = reader.latest_frame()
        assert short is not None and (short.data, short.metadata) == (b"short", b"behind")
        assert reader.writer_alive() is None  # MOSAIC's writer has no lock
        assert not reader.is_invalidated()
        writer.close()
        assert reader.is_invalidated()
    with (
        tandem.fastlane.FastLaneWriter.create(
            run_id, tandem.fastlane.FastLaneConfig(5, 3, channels, pixel_format, capacity, 7)
        ) as ours,
        tandem.FastLaneReader.attach(run_id) as mine,
    ):
        assert (mine.capacity, mine.metadata_size) == (ours.config.capacity, 7)


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_mosaics_reader_reads_tandem(run_id: str, capacity: int) -> None:
    """Checks every field of the header, and each frame."""
    config = tandem.fastlane.FastLaneConfig(5, 3, capacity=capacity, metadata_size=7)
    with tandem.fastlane.FastLaneWriter.create(run_id, config) as writer:
        assert os.stat(f"/dev/shm/{segment_name(run_id)}").st_size == 80 + capacity * (16 + 45 + 7)
        reader = ForeignReader(run_id, track=False)
        magic, integers, metrics = reader.header()
        assert magic == b"FLAN"
        assert integers == (1, 0, capacity, 68, 52, 5, 3, 3, 0xB793DAB2, 0, 0)
        assert reader.latest() is None
        for number in range(1, 8):
            pixels = bytes(range(number, number + 45))
            writer.publish(pixels, metrics=tandem.fastlane.FastLaneMetrics(1.5, -2.0, 60.0), metadata=b"12345678")
            assert reader.latest() == (number, pixels, b"1234567")
            _, integers, metrics = reader.header()
            assert integers[-2] == number and metrics == (1.5, -2.0, 60.0)
        writer.invalidate()
        assert reader.header()[1][1] == 1
        reader.close()


def test_writer_restores_the_name_that_mosaics_reader_unlinked(run_id: str) -> None:
    """The resource tracker of MOSAIC's reader unlinks the segment; the writer links it again at a later publish."""
    config = tandem.fastlane.FastLaneConfig(5, 3, capacity=2)
    with tandem.fastlane.FastLaneWriter.create(run_id, config) as writer:
        writer.publish(bytes(45))
        look = [sys.executable, str(PROGRAM), "look", run_id]
        assert subprocess.run(look, stdout=subprocess.PIPE, check=True, text=True).stdout == "1\n"
        assert not os.path.exists(f"/dev/shm/{segment_name(run_id)}")
        deadline = time.monotonic() + _WATCHDOG_SECS
        while not os.path.exists(f"/dev/shm/{segment_name(run_id)}"):
            assert time.monotonic() < deadline
            writer.publish(bytes(45))
        with tandem.FastLaneReader.attach(run_id) as reader:
            assert reader.writer_alive()


@pytest.mark.parametrize("capacity", [1, 2, 8, 128])
def test_mosaics_writer_at_full_speed_is_never_read_torn(run_id: str, capacity: int) -> None:
    """MOSAIC's writer rewrites the header with each frame, and stores its numbers byte by byte."""
    command = [sys.executable, str(PROGRAM), "publish", run_id, str(capacity), "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        last = 0
        with tandem.FastLaneReader.attach(run_id) as reader:
            while not reader.is_invalidated():
                frame = reader.next_frame()
                if frame is None:
                    continue
                assert frame.number > last
                last = frame.number
                assert frame.data == bytes([frame.number % 256]) * (64 * 64 * 3)
                assert frame.metadata == str(frame.number).encode()
    assert process.returncode == 0 and last > 0


def test_tandems_writer_replaces_mosaics_segment(run_id: str) -> None:
    """MOSAIC's writer has no lock, so its segment counts as dead; existing mappings stay valid."""
    foreign = ForeignWriter(run_id, 5, 3, 3, 2, 0)
    foreign.publish(bytes(45), (0.0, 0.0, 0.0))
    with tandem.FastLaneReader.attach(run_id) as before:
        with tandem.fastlane.FastLaneWriter.create(run_id, tandem.fastlane.FastLaneConfig(2, 2)) as ours:
            assert before.is_replaced() and before.latest_frame() is not None
            assert ours.head == 0
    foreign.pack_header(1, (0.0, 0.0, 0.0))
    foreign.memory.close()
    resource_tracker.unregister("/" + segment_name(run_id), "shared_memory")
