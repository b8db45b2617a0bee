"""A live region, read by the promised offsets with `multiprocessing.shared_memory` and `struct`."""

import struct
import subprocess
import time
import uuid
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest

SERVER = Path("engine_adapter/conformance/reference/server")
NUM_ENVS, OBS_SIZE, ACT_SIZE = 5, 7, 3
DEADLINE_SECS = 60.0

# Offset, struct format and name of the published fields, independent of the code.
FIELDS = [
    (0, "<I", "magic"),
    (4, "<I", "version"),
    (8, "<I", "server_pid"),
    (12, "<I", "client_pid"),
    (16, "<B", "mode"),
    (20, "<I", "num_envs"),
    (24, "<I", "obs_size"),
    (28, "<I", "act_size"),
    (128, "<Q", "frame_seq"),
    (256, "<Q", "action_seq"),
    (384, "<Q", "obs_offset"),
    (392, "<Q", "act_offset"),
    (400, "<Q", "rewards_offset"),
    (408, "<Q", "dones_offset"),
    (416, "<Q", "resets_offset"),
    (424, "<Q", "cmd_s2c_offset"),
    (432, "<Q", "cmd_c2s_offset"),
    (440, "<I", "cmd_ring_size"),
    (448, "<Q", "image_offset"),
    (456, "<I", "image_width"),
    (460, "<I", "image_height"),
    (464, "<I", "image_channels"),
    (472, "<B", "gpu_available"),
    (473, "<B", "gpu_obs_mode"),
    (476, "<64s", "gpu_obs_handle"),
    (540, "<I", "gpu_device_id"),
]


@pytest.fixture
def region_name() -> str:
    """Makes a unique region name."""
    return f"layout_test_{uuid.uuid4().hex}"


@pytest.fixture
def engine(region_name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the reference engine, and stops it after the test."""
    process = subprocess.Popen(
        [SERVER, f"--name={region_name}", f"--num_envs={NUM_ENVS}", f"--obs_size={OBS_SIZE}", f"--act_size={ACT_SIZE}"],
        stderr=subprocess.DEVNULL,
    )
    yield process
    process.terminate()
    assert process.wait(DEADLINE_SECS) == 0
    assert [path.name for path in Path("/dev/shm").iterdir() if region_name in path.name] == []


@pytest.fixture
def region(engine: subprocess.Popen[bytes], region_name: str) -> Iterator[SharedMemory]:
    """Maps the engine's region as any Python program can."""
    deadline = time.monotonic() + DEADLINE_SECS
    while True:
        try:
            shm = SharedMemory(name=region_name)
            break
        except FileNotFoundError:
            assert engine.poll() is None and time.monotonic() < deadline, "no region"
            time.sleep(0.001)
    resource_tracker.unregister(f"/{shm.name}", "shared_memory")
    yield shm
    shm.close()


def test_every_promised_field_has_its_promised_offset(region: SharedMemory, engine: subprocess.Popen[bytes]) -> None:
    """The values equal the engine's flags; the sections are aligned, within the region, and do not overlap."""
    assert region.buf is not None
    header = {name: struct.unpack_from(form, region.buf, offset)[0] for offset, form, name in FIELDS}
    assert header["magic"] == 0x4C524243
    assert (header["version"], header["mode"]) == (1, 0)
    assert (header["server_pid"], header["client_pid"]) == (engine.pid, 0)
    assert (header["num_envs"], header["obs_size"], header["act_size"]) == (NUM_ENVS, OBS_SIZE, ACT_SIZE)
    assert (header["frame_seq"], header["action_seq"]) == (0, 0)
    assert header["cmd_ring_size"] == 512 * 1024
    assert header["gpu_obs_handle"] == bytes(64)
    for name in ("image_offset", "image_width", "image_height", "image_channels"):
        assert header[name] == 0
    for name in ("gpu_available", "gpu_obs_mode", "gpu_device_id"):
        assert header[name] == 0

    ring_bytes = 128 + header["cmd_ring_size"]
    sections = sorted(
        [
            (header["obs_offset"], 4 * NUM_ENVS * OBS_SIZE),
            (header["act_offset"], 4 * NUM_ENVS * ACT_SIZE),
            (header["rewards_offset"], 4 * NUM_ENVS),
            (header["dones_offset"], NUM_ENVS),
            (header["resets_offset"], NUM_ENVS),
            (header["cmd_s2c_offset"], ring_bytes),
            (header["cmd_c2s_offset"], ring_bytes),
        ]
    )
    end = 4096
    for offset, size in sections:
        assert offset % 64 == 0
        assert offset >= end
        end = offset + size
    assert end <= region.size


def test_bytes_between_promised_fields_are_zero(region: SharedMemory) -> None:
    """Holds below the extensions, which begin at offset 640."""
    assert region.buf is not None
    named = {at for offset, form, _ in FIELDS for at in range(offset, offset + struct.calcsize(form))}
    assert [at for at in range(640) if at not in named and region.buf[at] != 0] == []
