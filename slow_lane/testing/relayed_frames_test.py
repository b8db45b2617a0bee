"""Frames of a run on another machine, which its proxy sends and the daemon shows here under the run's id."""

import contextlib
import io
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import tandem
from schema.protos import slow_lane_pb2 as slow_lane
from slow_lane.testing.daemon_fixture import Lane, lane_fixture, watchdog  # noqa: F401, two are fixtures
from slow_lane.testing.publish_pattern import pattern
from slow_lane.testing.remote_runs import Remote
from tandem.testing.daemons import DEADLINE_SECS, wait_until
from tests.ray.hosts import TwoHosts, can_make_hosts

_PUBLISH = str(Path(__file__).with_name("publish_pattern.py").absolute())
_MOST_ERROR = 12  # of a value, after JPEG
_ENGINE = """
import tandem
envs = tandem.make_vec("CartPole-v1", num_envs=2, frames=(64, 48))
envs.reset(seed=0)
while True:
    envs.step(envs.action_space.sample())
"""
# Each frame has some 300 KB as JPEG, and has its time.
_NOISE = """
import json, os, time
import numpy as np
import tandem
frames = [np.random.default_rng(seed).integers(0, 256, (480, 640, 3), np.uint8) for seed in range(4)]
config = tandem.fastlane.FastLaneConfig(width=640, height=480, capacity=4, metadata_size=64)
with tandem.fastlane.FastLaneWriter.create(os.environ["TANDEM_RUN_ID"], config) as writer:
    for step in range(1, 1_000_000):
        writer.publish(frames[step % 4], metadata=json.dumps({"time": time.time()}))
        print(json.dumps({"event_type": "step", "episode": 0, "step_index": step, "reward": 1}), flush=True)
        time.sleep(0.01)
"""
needs_root = pytest.mark.skipif(not can_make_hosts(), reason="mounts and network namespaces need root, and ip")


def _ring(run_id: str) -> Path:
    return Path("/dev/shm", f"mosaic.fastlane.{run_id}")


def _attach(run_id: str) -> tandem.FastLaneReader:
    """Waits until the daemon's machine has a living ring of the run, and opens it as a viewer does."""

    def opened() -> tandem.FastLaneReader | None:
        with contextlib.suppress(tandem.NotReady):
            reader = tandem.FastLaneReader.attach(run_id)
            if reader.writer_alive():
                return reader
            reader.close()
        return None

    reader: tandem.FastLaneReader = wait_until(opened, "the run's ring")
    return reader


def _next(reader: tandem.FastLaneReader) -> tandem.fastlane.FastLaneFrame:
    frame: tandem.fastlane.FastLaneFrame = wait_until(reader.next_frame, "a frame")
    return frame


def _check(frame: tandem.fastlane.FastLaneFrame) -> int:
    """Checks a frame of `publish_pattern`, and returns its step."""
    step: int = json.loads(frame.metadata or b"")["step"]
    assert frame.metrics == tandem.fastlane.FastLaneMetrics(last_reward=step, rolling_return=-0.5, step_rate_hz=100)
    assert np.abs(frame.view.astype(int) - pattern(step)).max() <= _MOST_ERROR
    return step


def _published(remote: Remote, run_id: str) -> int:
    """Returns the latest step of `publish_pattern`, whose frame may not have been sent."""
    return int((remote.folder_of(run_id) / "published").read_bytes())


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    """The other machine is this one, with a /dev/shm of its own."""
    with contextlib.closing(Remote(tmp_path, own_memory=True)) as made:
        yield made


@needs_root
def test_the_frames_are_those_of_the_other_machine(remote: Remote) -> None:
    """Each is newer than the one before; without a viewer none is sent; the ring ends with the run."""
    run_id = remote.submit(_PUBLISH, fast_lane={})
    node = remote.start_node(run_id)
    watched = remote.folder_of(run_id) / "watched"
    with contextlib.closing(_attach(run_id)) as reader:
        begin = time.monotonic()
        steps = [_check(_next(reader)) for _ in range(40)]
        assert steps == sorted(set(steps))
        assert time.monotonic() - begin > 38 / 31  # at most 30 a second
        assert watched.read_text("ascii") == "1"
    wait_until(lambda: watched.read_text("ascii") == "0", "the engine to have no viewer")
    gone = _published(remote, run_id)
    wait_until(lambda: _published(remote, run_id) > gone + 60, "later steps")
    with contextlib.closing(_attach(run_id)) as reader:
        reader.next_frame()  # an old one
        assert _check(_next(reader)) > steps[-1] + 50
    node.terminate()
    remote.await_end(run_id)
    wait_until(lambda: not _ring(run_id).exists(), "the end of the ring")


@needs_root
def test_frames_go_on_after_kills(remote: Remote) -> None:
    """The ring of a dead proxy gets old; that of a dead daemon has no writer, and the next daemon makes another."""
    run_id = remote.submit(_PUBLISH, fast_lane={})
    remote.start_node(run_id)
    with contextlib.closing(_attach(run_id)) as reader:
        step = _check(_next(reader))
        (proxy,) = remote.proxies(run_id)
        os.kill(proxy, signal.SIGKILL)
        wait_until(lambda: proxy not in remote.proxies(run_id) and remote.proxies(run_id), "another proxy")
        assert reader.writer_alive() and not reader.is_invalidated()
        reader.next_frame()  # sent before the kill
        assert _check(_next(reader)) > step
        remote.daemon.kill()
        assert not reader.writer_alive()
    remote.daemon.start()
    with contextlib.closing(_attach(run_id)) as reader:
        assert _check(_next(reader)) > step
    remote.daemon.stop()
    assert not _ring(run_id).exists()
    remote.daemon.start()


@needs_root
def test_after_a_cut_cable_only_new_frames_come(tmp_path: Path) -> None:
    """Meanwhile the ring gets old. At most the frame that was on its way is old."""
    hosts = TwoHosts()
    with hosts.up(), contextlib.closing(Remote(tmp_path, hosts, own_memory=True)) as remote:
        run_id = remote.submit(_PUBLISH, fast_lane={})
        remote.start_node(run_id)
        with contextlib.closing(_attach(run_id)) as reader:
            steps = [_check(_next(reader))]
            hosts.set_cable(False)
            first = _published(remote, run_id)
            wait_until(lambda: _published(remote, run_id) > first + 100, "steps after the cut")
            if (frame := reader.next_frame()) is not None:
                steps.append(_check(frame))
            wait_until(lambda: _published(remote, run_id) > first + 410, "later steps")
            assert reader.next_frame() is None and reader.writer_alive()
            hosts.set_cable(True)
            steps += [_check(_next(reader)) for _ in range(4)]
            assert steps == sorted(set(steps))
            assert max(np.diff(steps[-5:])) > 200  # of 410; before or after the one that was on its way


@needs_root
def test_on_a_slow_line_frames_become_rare_and_events_do_not_wait(tmp_path: Path) -> None:
    """On 1 Mbit/s a frame of noise needs more than two seconds."""
    hosts = TwoHosts()
    with hosts.up(), contextlib.closing(Remote(tmp_path, hosts, own_memory=True)) as remote:
        hosts.limit(1, "rate 1mbit burst 5kb latency 300ms")
        run_id = remote.submit("-c", _NOISE, fast_lane={})
        remote.start_node(run_id)
        printed = remote.folder_of(run_id) / "stdout.jsonl"
        with contextlib.closing(_attach(run_id)) as reader:
            ages: list[float] = []
            waiting: list[int] = []  # printed steps that are not in the table
            lines = 0
            begin = time.monotonic()
            end = begin + 20
            while time.monotonic() < end or lines <= 1000 or len(ages) < 3:
                assert time.monotonic() < end + 100
                if (frame := reader.next_frame()) is not None:
                    ages.append(time.time() - json.loads(frame.metadata or b"")["time"])
                lines = printed.read_bytes().count(b"\n")
                waiting.append(lines - remote.client.describe(run_id).runs[0].steps)
                time.sleep(0.05)
            secs = time.monotonic() - begin
        print(f"{len(ages)} frames of age {max(ages):.1f} s at most; at most {max(waiting)} of {lines} steps waited")
        assert 3 <= len(ages) <= secs and max(ages[1:]) < 10
        assert lines > 1000 and max(waiting) < 300  # 3 s


@needs_root
def test_an_engines_frames_come_too(remote: Remote) -> None:
    """The engine is found by the run's token in its process."""
    run_id = remote.submit("-c", _ENGINE, fast_lane={"grid_limit": 2})
    remote.start_node(run_id)
    with contextlib.closing(_attach(run_id)) as reader:
        frames = [_next(reader) for _ in range(3)]
    assert {frame.view.shape for frame in frames} in ({(96, 64, 3)}, {(48, 128, 3)})
    assert all(json.loads(frame.metadata or b"")["envs"] == [0, 1] for frame in frames)
    assert frames[-1].view.std() > 1  # a picture


@pytest.mark.parametrize("fast_lane", [{}, None])
def test_on_the_daemons_own_machine_no_second_ring_is_made(tmp_path: Path, fast_lane: Any) -> None:
    """Viewers find the engine themselves; and a proxy that found the daemon's ring would send it for ever."""
    with contextlib.closing(Remote(tmp_path)) as remote:
        metadata = {} if fast_lane is None else {"fast_lane": fast_lane}
        run_id = remote.submit("-c", _ENGINE, **metadata)
        remote.start_node(run_id)
        remote.worker(run_id)
        time.sleep(3)
        assert not _ring(run_id).exists()


class Sender:
    """A proxy that sends what the test wants, for a run of this machine."""

    def __init__(self, lane: Lane, run_id: str) -> None:
        """Reads the run's token."""
        plan = lane.data_dir / "runs" / run_id / "launch.json"
        wait_until(plan.exists, "the run's folder")
        self._lane, self.run_id = lane, run_id
        self.token = json.loads(plan.read_text("utf-8"))["token"]

    def send(self, frame: dict[str, Any] | None = None, **changes: Any) -> bool:
        """Calls RelayFrame, and returns whether a frame is wanted."""
        fields = {"run_id": self.run_id, "token": self.token, **changes}
        request = slow_lane.RelayFrameRequest(frame=frame, **fields)
        wanted: bool = self._lane.slow_lane.RelayFrame(request, timeout=DEADLINE_SECS).wanted
        return wanted

    def refused(self, frame: dict[str, Any] | None = None, **changes: Any) -> tuple[grpc.StatusCode, str]:
        """The same for a call that must fail; returns its status."""
        with pytest.raises(grpc.RpcError) as failed:
            self.send(frame, **changes)
        return failed.value.code(), failed.value.details()


def _jpeg(pixels: NDArray[np.uint8], **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


@pytest.fixture
def sender(lane: Lane) -> Iterator[Sender]:
    """A sender for a run that goes on."""
    yield Sender(lane, lane.run("wait_for('end')"))
    assert lane.stop() == 0


def test_a_ring_has_what_was_sent(lane: Lane, sender: Sender) -> None:
    """Its size may change; it ends with the run."""
    assert sender.send()  # the first frame is always wanted: it makes the ring
    for height, width in ((48, 64), (30, 40)):
        pixels = pattern(7)[:height, :width]
        frame = {"jpeg": _jpeg(pixels, quality=90), "metadata": b'{"step": 7}', "last_reward": 2.5}
        assert not sender.send(frame)
        with contextlib.closing(_attach(sender.run_id)) as reader:
            found = _next(reader)
            assert found.view.shape == (height, width, 3) and found.metadata == b'{"step": 7}'
            assert np.abs(found.view.astype(int) - pixels).max() <= _MOST_ERROR
            assert found.metrics.last_reward == 2.5
            wait_until(sender.send, "the daemon to see the viewer")
        wait_until(lambda: not sender.send(), "the daemon to see that the viewer has left")
    lane.open("end")
    wait_until(lambda: not _ring(sender.run_id).exists(), "the end of the ring")
    assert sender.refused(frame)[0] == grpc.StatusCode.FAILED_PRECONDITION
    assert not _ring(sender.run_id).exists()


def test_a_killed_daemons_ring_ends_at_the_next_start(lane: Lane, sender: Sender) -> None:
    """Also if no frame of the run follows."""
    sender.send({"jpeg": _jpeg(pattern(1))})
    assert _ring(sender.run_id).exists()  # after the kill, another test's engine may remove it at its start
    lane.kill()
    lane.start()
    wait_until(lambda: not _ring(sender.run_id).exists(), "the end of the ring, which another engine may be removing")
    sender.send({"jpeg": _jpeg(pattern(1))})
    assert lane.stop() == 0
    assert not _ring(sender.run_id).exists()
    lane.start()


def test_wrong_frames_are_refused(lane: Lane, sender: Sender) -> None:
    """Each with its reason; the ring and the daemon go on."""
    good = {"jpeg": _jpeg(pattern(3))}
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    sender.send(good)
    assert sender.refused(good, run_id="none")[0] == grpc.StatusCode.NOT_FOUND
    assert sender.refused(good, run_id="../runs")[0] == grpc.StatusCode.NOT_FOUND
    assert sender.refused(good, token="x")[0] == grpc.StatusCode.UNAUTHENTICATED
    assert sender.refused(good, token="")[0] == grpc.StatusCode.UNAUTHENTICATED
    grey, many = pattern(3)[..., 0], np.zeros((2900, 2900, 3), np.uint8)
    for jpeg, reason in (
        (b"", "header"),
        (os.urandom(1000), "header"),
        (good["jpeg"][:-20], "undamaged"),
        (_jpeg(grey), "baseline"),
        (_jpeg(pattern(3), progressive=True), "baseline"),
        (_jpeg(many), "2900x2900"),
    ):
        code, details = sender.refused({"jpeg": jpeg})
        assert code == invalid and reason in details, details
    code, details = sender.refused({**good, "metadata": bytes(65537)})
    assert code == invalid and "65537" in details
    with contextlib.closing(_attach(sender.run_id)) as reader:
        assert np.abs(_next(reader).view.astype(int) - pattern(3)).max() <= 40  # of Pillow's default quality
    sender.send(good)
    assert lane.healthy()


def test_another_writer_of_the_name_stays(sender: Sender) -> None:
    """Such as a program of this machine that publishes under the run's id."""
    config = tandem.fastlane.FastLaneConfig(width=4, height=4, capacity=2)
    with tandem.fastlane.FastLaneWriter.create(sender.run_id, config) as writer:
        writer.publish(bytes(48))
        code, _ = sender.refused({"jpeg": _jpeg(pattern(1))})
        assert code == grpc.StatusCode.ALREADY_EXISTS
        with contextlib.closing(_attach(sender.run_id)) as reader:
            assert reader.width == 4
    sender.send({"jpeg": _jpeg(pattern(1))})
