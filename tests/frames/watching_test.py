"""A run with a frame reader, compared with the same run without one."""

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tests.frames.frame_watcher import FrameWatcher

_WATCHDOG_SECS = 60

# The prefix of this process's region names. It is not the pid: tests share /dev/shm, but not a pid namespace.
_PREFIX = f"watching-{uuid.uuid4().hex[:12]}"


# Both sides sleep while they wait: if both spin on two cores, the render thread gets hardly any processor time.
def _launch(task: str, **options: Any) -> tandem.EngineProcess:
    return tandem.launch_engine(task, name=f"{_PREFIX}-{uuid.uuid4().hex[:8]}", flags=("--wait=block",), **options)


def _attach(engine: tandem.EngineProcess) -> tandem.SharedMemoryClient:
    return tandem.SharedMemoryClient(engine.name, timeout=120, wait="block")


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Checks that the engines of this process leave no region."""
    yield
    assert [path.name for path in Path("/dev/shm").iterdir() if _PREFIX in path.name] == []


def _actions(client: tandem.SharedMemoryClient, rng: np.random.Generator) -> NDArray[np.float32]:
    return rng.uniform(-1, 1, (client.num_envs, client.act_size)).astype(np.float32)


def _step_until(client: tandem.SharedMemoryClient, done: Callable[[], bool]) -> None:
    """Steps with random actions until `done` returns true."""
    rng = np.random.default_rng(0)
    deadline = time.monotonic() + _WATCHDOG_SECS
    while not done():
        assert time.monotonic() < deadline
        client.step(_actions(client, rng))


def _mapped(engine: tandem.EngineProcess) -> str:
    return Path(f"/proc/{engine.pid}/maps").read_text(encoding="utf-8")


def test_frames_are_drawn_only_while_a_reader_is_present() -> None:
    """Without a reader the engine loads no graphics library; after the last reader has gone, it publishes no frame."""
    with (
        _launch("HalfCheetah-v5", num_envs=2, frames=(32, 24)) as engine,
        _attach(engine) as client,
        FrameWatcher(engine.name, is_reader=False) as witness,
    ):
        until = time.monotonic() + 1  # five times the interval at which the engine checks for readers
        _step_until(client, lambda: time.monotonic() > until)
        assert witness.head == 0
        assert "libEGL" not in _mapped(engine)
        with FrameWatcher(engine.name) as watcher:
            _step_until(client, lambda: watcher.head > 10)
        assert "libEGL" in _mapped(engine)
        head, since = witness.head, time.monotonic()

        def has_ended() -> bool:
            """Returns whether no frame came for longer than the longest interval with a reader."""
            nonlocal head, since
            if witness.head != head:
                head, since = witness.head, time.monotonic()
            return time.monotonic() > since + 2

        _step_until(client, has_ended)


def test_python_reads_an_engines_frames_by_its_name() -> None:
    """The engine renders for that reader; a segment of that name has priority; an engine may have no frames."""
    with (
        _launch("Pendulum-v1", num_envs=1, frames="40x30") as engine,
        _attach(engine) as client,
        tandem.FastLaneReader.attach(engine.name) as reader,
    ):
        client.reset(seed=0)
        rng = np.random.default_rng(0)
        deadline = time.monotonic() + _WATCHDOG_SECS
        while (frame := reader.next_frame()) is None or json.loads(frame.metadata or b"")["step"] < 5:
            assert time.monotonic() < deadline
            client.step(_actions(client, rng))
        assert frame.view.shape == (30, 40, 3)
        assert reader.writer_alive()
        config = tandem.fastlane.FastLaneConfig(width=8, height=6, capacity=4)
        with (
            tandem.fastlane.FastLaneWriter.create(engine.name, config),
            tandem.FastLaneReader.attach(engine.name) as other,
        ):
            assert (other.width, other.height) == (8, 6)
    with _launch("Pendulum-v1", num_envs=1) as engine, pytest.raises(tandem.Unsupported, match="--frames"):
        tandem.FastLaneReader.attach(engine.name)


def test_a_frame_has_its_metadata() -> None:
    """Step, environments, grid, reward, return, episodes and their length are those of the step in the metadata."""
    with (
        _launch("Hopper-v5", num_envs=8, frames=tandem.FrameOptions("40x30", envs=[5, 0, 3], hz=500)) as engine,
        _attach(engine) as client,
        FrameWatcher(engine.name) as watcher,
    ):
        client.reset(seed=0)
        rng = np.random.default_rng(0)
        expected = {1: (0.0, 0.0, 0, None)}  # step -> reward, return, episodes, length
        returns, lengths, ended = np.zeros(8), np.zeros(8), []
        seen = misread = last = 0
        shown = [5, 0, 3]
        deadline = time.monotonic() + _WATCHDOG_SECS
        for step in itertools.count(2):
            assert time.monotonic() < deadline
            _, rewards, dones = client.step(_actions(client, rng))
            returns += rewards
            lengths += 1
            for env in np.flatnonzero(dones):
                ended.append((returns[env], lengths[env]))
                returns[env] = lengths[env] = 0
            so_far, length = np.mean(ended[-100:], axis=0) if ended else (returns[shown].mean(), None)
            expected[step] = (float(rewards[shown].astype(float).mean()), so_far, len(ended), length)
            frame = watcher.latest()
            if frame is None or frame.number == last or frame.metadata["step"] not in expected:
                continue
            last = frame.number
            assert frame.pixels.shape == (60, 80, 3)
            assert (frame.metadata["envs"], frame.metadata["rows"], frame.metadata["columns"]) == (shown, 2, 2)
            reward, rolling, episodes, length = expected[frame.metadata["step"]]
            assert frame.metadata["episodes"] == episodes
            assert frame.metadata.get("episode_length") == pytest.approx(length)
            seen += 1
            # The ring's metrics are those of its newest frame or, just before the publish, of the next one.
            misread += (frame.last_reward, frame.rolling_return) != pytest.approx((reward, rolling), abs=1e-6)
            if seen > 30 and frame.step_rate_hz > 0 and episodes > 0:
                break
        assert misread <= 2 and frame is not None
        assert not frame.pixels[30:, 40:].any()  # the fourth place is empty
        assert frame.pixels[:30].any()


def test_an_engine_with_a_reader_can_be_stopped_and_killed() -> None:
    """SIGTERM invalidates the ring; after both signals no region is left, and the reader's mapping stays valid."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        engine = _launch("HalfCheetah-v5", num_envs=4, frames=tandem.FrameOptions((320, 240), hz=1000))
        with _attach(engine) as client, FrameWatcher(engine.name) as watcher:
            _step_until(client, lambda watcher=watcher: watcher.head > 3)  # type: ignore[misc]
            os.kill(engine.pid, how)
            while engine.poll() is None:
                time.sleep(0.001)
            assert engine.poll() == (0 if how == signal.SIGTERM else -how)
            assert watcher.invalidated == (how == signal.SIGTERM)
        engine.close()


# It waits as _launch and _attach do.
_TRAINER = """
import sys, tandem
with tandem.launch_engine(
    "HalfCheetah-v5", num_envs=4, name=sys.argv[1], frames=(320, 240), flags=("--wait=block",)
) as engine:
    print(engine.pid, flush=True)
    with tandem.SharedMemoryClient(engine.name, wait="block") as client:
        while True:
            client.step(client.actions)
"""


def test_an_engine_terminated_while_its_trainer_is_killed_leaves_no_region() -> None:
    """The cancel of a run does this: SIGTERM comes first, then the launcher's exit while the render thread ends."""
    for milliseconds in (0, 3, 6, 12, 24):
        name = f"{_PREFIX}-{uuid.uuid4().hex[:8]}"
        trainer = subprocess.Popen(
            [sys.executable, "-c", _TRAINER, name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with trainer:
            assert trainer.stdout is not None
            engine = os.pidfd_open(int(trainer.stdout.readline()))
            with FrameWatcher(name) as watcher:
                watcher.wait(after=3)
            signal.pidfd_send_signal(engine, signal.SIGTERM)
            time.sleep(milliseconds / 1000)
            trainer.kill()
        select.select([engine], [], [], _WATCHDOG_SECS)
        os.close(engine)
        assert not Path("/dev/shm", name).exists(), milliseconds
