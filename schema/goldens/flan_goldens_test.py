"""Reads the goldens of the frame ring and of the live scene: with `struct` and the protocol's formats."""

import re
import struct
import zlib
from pathlib import Path

import pytest

GOLDENS = Path("schema/goldens")
RING = (GOLDENS / "flan_v1.bin").read_bytes()
SCENE = (GOLDENS / "scene_v1.bin").read_bytes()

HEADER = "<4sIIIIIIIIIQQddd"
SLOT = "<QII"


def test_header_unpacks_by_the_protocols_format() -> None:
    """One format covers the header's 80 bytes."""
    assert struct.calcsize(HEADER) == 80
    assert struct.unpack_from(HEADER, RING) == (
        b"FLAN",
        1,  # version
        0,  # flags
        2,  # capacity
        28,  # slot_size
        12,  # payload_size
        2,  # width
        2,  # height
        3,  # channels
        zlib.crc32(b"RGB"),
        3,  # head
        0,  # tail
        1.5,
        -20.25,
        1000.0,
    )


def test_slots_hold_the_last_two_frames() -> None:
    """Frame h is in slot (h - 1) % capacity under the number 2h + 2."""
    assert len(RING) == 80 + 2 * 28
    assert struct.unpack_from(SLOT, RING, 80) == (8, 12, 0)
    assert RING[96:108] == bytes(range(48, 60))
    assert struct.unpack_from(SLOT, RING, 108) == (6, 12, 0)
    assert RING[124:136] == bytes(range(32, 44))


def test_scene_is_a_header_a_glb_and_a_ring_of_snapshots() -> None:
    """The snapshot has one row: environment 0 and the pose of one node."""
    magic, version, size, generation, envs, nodes, rows, row_bytes = struct.unpack_from("<4s7I", SCENE)
    assert (magic, version, size, generation, envs, nodes, rows, row_bytes) == (b"TSCN", 1, 64, 3, 1, 1, 1, 80)
    glb, glb_bytes, ring, ring_bytes = struct.unpack_from("<4Q", SCENE, 32)
    assert SCENE[glb : glb + glb_bytes] == struct.pack("<4sII", b"glTF", 2, 12)
    assert (ring % 64, ring + ring_bytes) == (0, len(SCENE))
    assert struct.unpack_from(HEADER, SCENE, ring)[6:11] == (112, 1, 1, zlib.crc32(b"BYTES"), 1)
    slot = ring + struct.calcsize(HEADER)
    assert struct.unpack_from(SLOT, SCENE, slot) == (4, 32 + row_bytes, 0)
    assert struct.unpack_from("<QQI12x", SCENE, slot + 16) == (1001, 5_000_000_001, 1)
    row = slot + 16 + 32
    assert struct.unpack_from("<IIQQddd", SCENE, row) == (0, 2, 12, 345, 0.0, -20.25, 1.5)
    assert struct.unpack_from("<7f", SCENE, row + 48) == (1, 2, 3, 0, 0, 0, 1)


@pytest.mark.parametrize("golden_name", ["flan_v1", "scene_v1"])
def test_listing_covers_every_byte_correctly(golden_name: str) -> None:
    """Each row's bytes and value equal the golden's; each byte is in exactly one row."""
    golden = (GOLDENS / f"{golden_name}.bin").read_bytes()
    listing = (GOLDENS / f"{golden_name}.txt").read_text(encoding="utf-8")
    end = 0
    forms = {"u32": "<I", "u64": "<Q", "f32": "<f", "f64": "<d"}
    for line in listing.split("\n\n")[2].splitlines()[1:]:
        offset, size, kind, name, _writer, shown, value, meaning = re.split(r" {2,}", line.strip(), maxsplit=7)
        assert (int(offset), bool(meaning)) == (end, True), name
        end += int(size)
        field = golden[int(offset) : end]
        assert shown.replace(" ", "") in (field.hex(), f"{field[:4].hex()}..{field[-1:].hex()}"), name
        form = forms.get(kind.removesuffix(" atomic"))
        if form:
            assert float(value) == struct.unpack(form, field)[0], name
        elif kind.startswith("char"):
            assert value == f'"{field.decode("ascii")}"'
        elif name == "reserved":
            assert (value, any(field)) == ("0", False)
        else:
            assert value == f"{field[0]}, {field[1]} .. {field[-1]}", name
    assert end == len(golden)
