"""Reads the frame ring's golden as MOSAIC's programs read a ring: with `struct` and the protocol's two formats."""

import re
import struct
import zlib
from pathlib import Path

GOLDENS = Path("schema/goldens")
RING = (GOLDENS / "flan_v1.bin").read_bytes()
LISTING = (GOLDENS / "flan_v1.txt").read_text(encoding="utf-8")

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


def test_listing_covers_every_byte_correctly() -> None:
    """Each row's bytes and value equal the golden's; each byte is in exactly one row."""
    end = 0
    forms = {"u32": "<I", "u32 atomic": "<I", "u64": "<Q", "u64 atomic": "<Q", "f64 atomic": "<d"}
    for line in LISTING.split("\n\n")[2].splitlines()[1:]:
        offset, size, kind, name, _writer, shown, value, meaning = re.split(r" {2,}", line.strip(), maxsplit=7)
        assert (int(offset), bool(meaning)) == (end, True), name
        end += int(size)
        field = RING[int(offset) : end]
        assert shown.replace(" ", "") in (field.hex(), f"{field[:4].hex()}..{field[-1:].hex()}"), name
        if kind in forms:
            assert float(value) == struct.unpack(forms[kind], field)[0], name
        elif kind.startswith("char"):
            assert value == f'"{field.decode("ascii")}"'
        else:
            assert value == f"{field[0]}, {field[1]} .. {field[-1]}", name
    assert end == len(RING)
