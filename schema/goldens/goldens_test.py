"""Reads the goldens as a foreign client does: with `struct`, by the offsets that the protocol promises.

The test uses no binding and no generated code. The offsets below 640 and those of the ring are the published ones;
beyond 640 the listing is compared with the bytes.
"""

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

GOLDENS = Path("schema/goldens")
HEADER = (GOLDENS / "lrbc_v1.bin").read_bytes()
SLOT = (GOLDENS / "attendant_slot_v1.bin").read_bytes()
IMAGE_SLOT = (GOLDENS / "image_slot_v1.bin").read_bytes()
FIELD = (GOLDENS / "field_v1.bin").read_bytes()
WORKERS_HEAD = (GOLDENS / "workers_header_v1.bin").read_bytes()
WORKER_SLOT = (GOLDENS / "worker_slot_v1.bin").read_bytes()
RING = (GOLDENS / "ring_v1.bin").read_bytes()
LISTING = (GOLDENS / "lrbc_v1.txt").read_text(encoding="utf-8")

# Offset, struct format, name, value.
PROMISED = [
    (0, "<I", "magic", 0x4C524243),
    (4, "<I", "version", 1),
    (8, "<I", "server_pid", 40001),
    (12, "<I", "client_pid", 40002),
    (16, "<B", "mode", 1),
    (20, "<I", "num_envs", 33),
    (24, "<I", "obs_size", 17),
    (28, "<I", "act_size", 6),
    (128, "<Q", "frame_seq", 0x0102030405060707),
    (256, "<Q", "action_seq", 0x0102030405060708),
    (384, "<Q", "obs_offset", 4096),
    (392, "<Q", "act_offset", 6400),
    (400, "<Q", "rewards_offset", 7296),
    (408, "<Q", "dones_offset", 7552),
    (416, "<Q", "resets_offset", 7680),
    (424, "<Q", "cmd_s2c_offset", 12288),
    (432, "<Q", "cmd_c2s_offset", 77952),
    (440, "<I", "cmd_ring_size", 65536),
    (448, "<Q", "image_offset", 143616),
    (456, "<I", "image_width", 48),
    (460, "<I", "image_height", 36),
    (464, "<I", "image_channels", 3),
    (472, "<B", "gpu_available", 1),
    (473, "<B", "gpu_obs_mode", 2),
    (476, "<64s", "gpu_obs_handle", bytes(range(1, 65))),
    (540, "<I", "gpu_device_id", 5),
]

Row = tuple[int, int, str, str, str, str]  # offset, size, type, name, bytes, value


def rows_of(file_name: str) -> list[Row]:
    """Parses one table of the listing.

    Args:
      file_name: The golden that the table describes.

    Returns:
      The table's rows.
    """
    section = LISTING.split(file_name + ":", 1)[1]
    table = section.split("\n\n")[1]
    rows = []
    for line in table.splitlines()[1:]:
        offset, size, kind, name, _writer, shown, value, _meaning = re.split(r" {2,}", line.strip(), maxsplit=7)
        rows.append((int(offset), int(size), kind, name, shown, value))
    return rows


def numbers_at(data: bytes, offset: int, size: int, kind: str) -> list[Any]:
    """Reads a field's numbers.

    Args:
      data: The golden.
      offset: The field's offset.
      size: The field's size in bytes.
      kind: The field's type in the listing, such as "u64 atomic[104]".

    Returns:
      The field's numbers.
    """
    code = {"u8": "B", "u32": "I", "u64": "Q", "f64": "d"}[kind.split("[")[0].split(" ")[0]]
    return list(struct.unpack_from(f"<{size // struct.calcsize(code)}{code}", data, offset))


@pytest.mark.parametrize(("offset", "form", "name", "value"), PROMISED)
def test_promised_field_has_its_promised_offset(offset: int, form: str, name: str, value: Any) -> None:
    """The bytes at the promised offset have the value, and the listing has the same offset."""
    assert struct.unpack_from(form, HEADER, offset) == (value,)
    assert [row[0] for row in rows_of("lrbc_v1.bin") if row[3] == name] == [offset]


def test_bytes_between_promised_fields_are_zero() -> None:
    """Bytes below 640 outside all fields are reserved and zero."""
    named: set[int] = set()
    for offset, form, _, _ in PROMISED:
        named.update(range(offset, offset + struct.calcsize(form)))
    assert all(HEADER[at] == 0 for at in range(640) if at not in named)


@pytest.mark.parametrize(
    ("file_name", "data"),
    [
        ("lrbc_v1.bin", HEADER),
        ("attendant_slot_v1.bin", SLOT),
        ("image_slot_v1.bin", IMAGE_SLOT),
        ("field_v1.bin", FIELD),
        ("workers_header_v1.bin", WORKERS_HEAD),
        ("worker_slot_v1.bin", WORKER_SLOT),
        ("ring_v1.bin", RING),
    ],
)
def test_listing_covers_every_byte_correctly(file_name: str, data: bytes) -> None:
    """Each row's bytes and value equal the golden's; each byte is in exactly one row."""
    end = 0
    for offset, size, kind, name, shown, value in rows_of(file_name):
        assert offset == end, name
        end = offset + size
        field = data[offset:end]
        if size <= 8:
            assert bytes.fromhex(shown) == field, name
        else:
            first, last = shown.split(" .. ")
            assert (bytes.fromhex(first), bytes.fromhex(last)) == (field[:4], field[-1:]), name
        if kind.startswith("char"):
            assert value == '"' + field.rstrip(b"\0").decode("ascii") + '"', name
            continue
        numbers = numbers_at(data, offset, size, kind)
        if name == "reserved":
            assert value == "0" and not any(numbers)
        elif len(numbers) == 1:
            assert value == (f"{numbers[0]:g}" if kind.startswith("f64") else str(numbers[0])), name
        else:
            assert value == f"{numbers[0]}, {numbers[1]} .. {numbers[-1]}", name
    assert end == len(data)


def test_a_region_with_images_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit, the checksum, and the number of the images' exchange."""
    images = (GOLDENS / "lrbc_v1_images.bin").read_bytes()
    assert len(images) == len(HEADER)
    assert struct.unpack_from("<Q", images, 648)[0] == struct.unpack_from("<Q", HEADER, 648)[0] | 32
    assert struct.unpack_from("<I", images, 896)[0] == zlib.crc32(images[384:896], zlib.crc32(images[20:128]))
    assert images[1928:1936] == images[128:136]
    same = [offset for offset in range(4096) if offset not in (*range(648, 656), *range(896, 900), *range(1928, 1936))]
    assert all(images[offset] == HEADER[offset] for offset in same)


def test_a_region_with_rpcs_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit and the checksum; services and dropped messages are in both samples."""
    commands = (GOLDENS / "lrbc_v1_commands.bin").read_bytes()
    assert struct.unpack_from("<Q", commands, 648)[0] == struct.unpack_from("<Q", HEADER, 648)[0] | 64
    assert struct.unpack_from("<I", HEADER, 1404)[0] == 0x49
    assert struct.unpack_from("<Q", HEADER, 1936)[0] == 0x0908070605040302
    assert struct.unpack_from("<I", commands, 896)[0] == zlib.crc32(commands[384:896], zlib.crc32(commands[20:128]))
    differ = (*range(648, 656), *range(896, 900))
    assert all(commands[offset] == HEADER[offset] for offset in range(4096) if offset not in differ)


def test_a_region_with_attendants_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit and the checksum; the new fields are in both samples."""
    attendants = (GOLDENS / "lrbc_v1_attendants.bin").read_bytes()
    assert struct.unpack_from("<Q", attendants, 648)[0] == struct.unpack_from("<Q", HEADER, 648)[0] | 128
    assert struct.unpack_from("<I", HEADER, 912)[0] == 1024
    assert struct.unpack_from("<I", HEADER, 916)[0] == zlib.crc32(HEADER[904:916])
    assert struct.unpack_from("<I", HEADER, 1040)[0] == 1005
    assert struct.unpack_from("<Q", HEADER, 1944)[0] == 0x0908070605040303
    differ = (*range(648, 656), *range(896, 900))
    assert all(attendants[offset] == HEADER[offset] for offset in range(4096) if offset not in differ)


def test_a_region_with_an_identity_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit, the checksum, and the 16 bytes of the identity."""
    region = (GOLDENS / "lrbc_v1_identity.bin").read_bytes()
    without = (GOLDENS / "lrbc_v1_gpu.bin").read_bytes()
    assert struct.unpack_from("<Q", region, 648)[0] == struct.unpack_from("<Q", without, 648)[0] | 8192
    assert region[988:1004] == bytes(range(0xA1, 0xB1))
    differ = (*range(648, 656), *range(896, 900), *range(988, 1004))
    assert all(region[offset] == without[offset] for offset in range(4096) if offset not in differ)


def test_a_region_with_shared_cores_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit, the checksum, two numbers of cores, and two counts."""
    region = (GOLDENS / "lrbc_v1_cores.bin").read_bytes()
    without = (GOLDENS / "lrbc_v1_identity.bin").read_bytes()
    assert struct.unpack_from("<Q", region, 648)[0] == struct.unpack_from("<Q", without, 648)[0] | 16384
    assert [struct.unpack_from("<I", region, at)[0] for at in (1044, 1540)] == [1006, 1007]
    assert struct.unpack_from("<QQ", region, 1544) == (1008, 1009)
    differ = (*range(648, 656), *range(896, 900), *range(1044, 1048), *range(1540, 1560))
    assert all(region[offset] == without[offset] for offset in range(4096) if offset not in differ)


def test_a_region_with_own_rewards_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit, the checksum, and the statistics of the client."""
    region = (GOLDENS / "lrbc_v1_own_run.bin").read_bytes()
    without = (GOLDENS / "lrbc_v1_cores.bin").read_bytes()
    assert struct.unpack_from("<Q", region, 648)[0] == struct.unpack_from("<Q", without, 648)[0] | 32768
    assert struct.unpack_from("<QQQddd", region, 2056) == (2010, 1, 2011, 2.5, -40.25, 200.5)
    differ = (*range(648, 656), *range(896, 900), *range(2056, 2104))
    assert all(region[offset] == without[offset] for offset in range(4096) if offset not in differ)


def test_attendant_slot_has_its_promised_fields() -> None:
    """The slot's fields, by their offsets in the slot."""
    assert len(SLOT) == 512
    assert struct.unpack_from("<II56s", SLOT, 0) == (40003, 2002, b"panel".ljust(56, b"\0"))
    assert [struct.unpack_from("<I", SLOT, at)[0] for at in (128, 256, 384)] == [2001, 70003, 10]


def test_a_region_with_image_slots_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit and the checksum; the new fields are in both samples."""
    slots = (GOLDENS / "lrbc_v1_image_slots.bin").read_bytes()
    assert struct.unpack_from("<Q", slots, 648)[0] == struct.unpack_from("<Q", HEADER, 648)[0] | 256
    assert struct.unpack_from("<I", HEADER, 928)[0] == 3968
    assert struct.unpack_from("<I", HEADER, 932)[0] == zlib.crc32(HEADER[920:932])
    differ = (*range(648, 656), *range(896, 900))
    assert all(slots[offset] == HEADER[offset] for offset in range(4096) if offset not in differ)


def test_image_slot_has_its_promised_fields() -> None:
    """The slot's fields, by their offsets in the slot."""
    assert len(IMAGE_SLOT) == 256
    assert [struct.unpack_from("<Q", IMAGE_SLOT, at)[0] for at in (0, 128)] == [15, 14]


def record(offset: int, role: int, kind: int, shape: tuple[int, ...] = (), path: bytes = b"") -> bytes:
    """Packs a record of the table of fields.

    Args:
      offset: The array's offset.
      role: The number of the field's role.
      kind: The number of its type.
      shape: The shape of one environment's value.
      path: The JSON pointer.

    Returns:
      256 bytes.
    """
    dims = [*shape, *[0] * (8 - len(shape))]
    return struct.pack("<QBBB5x8I192s16x", offset, role, kind, len(shape), *dims, path)


def test_field_record_has_its_promised_members() -> None:
    """The record's members, by their offsets in the record."""
    assert record(1_000_064, 2, 4, tuple(range(2, 10)), b"/cameras/front~1left") == FIELD


def test_a_region_with_fields_differs_in_the_listed_fields() -> None:
    """The differences are the feature bit, the table, the size of the region, and the checksums."""
    header = (GOLDENS / "lrbc_v1_fields.bin").read_bytes()
    assert struct.unpack_from("<Q", header, 648)[0] == struct.unpack_from("<Q", HEADER, 648)[0] | 512
    assert HEADER[936:952] == bytes(16)
    (table,) = struct.unpack_from("<Q", HEADER, 640)  # where the region without a table ends
    offset, count, checksum = struct.unpack_from("<QII", header, 936)
    assert (offset, count) == (table, 7)
    arrays = table + 7 * 256
    (final_obs,) = struct.unpack_from("<Q", HEADER, 688)
    records = b"".join(
        [
            record(4096, 1, 11, (17,)),
            record(final_obs, 2, 11, (17,)),
            record(6400, 3, 11, (6,)),
            record(arrays, 4, 12),
            record(arrays + 384, 5, 2),
            record(arrays + 512, 6, 12),
            record(arrays + 896, 7, 9),
        ]
    )
    assert checksum == zlib.crc32(records, zlib.crc32(header[936:948]))
    assert struct.unpack_from("<Q", header, 640)[0] == arrays + 1280
    differ = (*range(640, 656), *range(896, 900), *range(936, 952))
    assert all(header[at] == HEADER[at] for at in range(4096) if at not in differ)


def test_a_region_with_workers_differs_in_the_listed_fields() -> None:
    """The differences from a region with fields: two feature bits, the section, the size, and the checksums."""
    fields = (GOLDENS / "lrbc_v1_fields.bin").read_bytes()
    header = (GOLDENS / "lrbc_v1_workers.bin").read_bytes()
    assert struct.unpack_from("<Q", header, 648)[0] == struct.unpack_from("<Q", fields, 648)[0] | 1024 | 2048
    assert fields[952:968] == bytes(16)
    (section,) = struct.unpack_from("<Q", fields, 640)  # where the region without workers ends
    offset, count, checksum = struct.unpack_from("<QII", header, 952)
    assert (offset, count) == (section, 11)
    rows = b"".join(struct.pack("<II", 3 * worker, 3) for worker in range(11))
    assert checksum == zlib.crc32(rows, zlib.crc32(header[952:964]))
    assert struct.unpack_from("<Q", header, 640)[0] == section + 1024 + 11 * 4096
    differ = (*range(640, 656), *range(896, 900), *range(952, 968))
    assert all(header[at] == fields[at] for at in range(4096) if at not in differ)


def test_a_region_with_arrays_on_a_gpu_differs_in_the_listed_fields() -> None:
    """The differences from a region with workers: mode, feature bit, table, size of the region, and checksums."""
    before = (GOLDENS / "lrbc_v1_workers.bin").read_bytes()
    header = (GOLDENS / "lrbc_v1_gpu.bin").read_bytes()
    assert struct.unpack_from("<Q", header, 648)[0] == struct.unpack_from("<Q", before, 648)[0] | 4096
    assert before[968:988] == bytes(20)
    assert header[473] == 1
    (table,) = struct.unpack_from("<Q", before, 640)  # where the region without a table ends
    offset, count, flags, checksum = struct.unpack_from("<QIII", header, 968)
    assert (offset, count, flags) == (table, 4, 1)
    (obs,) = struct.unpack_from("<Q", header, 752)
    records = b"".join(
        [
            record(obs, 1, 11, (17,)),
            record(obs + 2304, 2, 11, (17,)),
            record(obs + 4608, 4, 11),
            record(obs + 4864, 8, 2, (36, 48, 3)),
        ]
    )
    assert checksum == zlib.crc32(records, zlib.crc32(header[968:984]))
    assert struct.unpack_from("<Q", header, 640)[0] == table + 4 * 256
    differ = (473, *range(640, 656), *range(896, 900), *range(968, 988))
    assert all(header[at] == before[at] for at in range(4096) if at not in differ)


def test_a_region_with_memory_of_the_engines_own_differs_in_the_listed_fields() -> None:
    """The differences from a region with workers: handles, device number, offset, and the table of images alone."""
    before = (GOLDENS / "lrbc_v1_workers.bin").read_bytes()
    header = (GOLDENS / "lrbc_v1_gpu_memory.bin").read_bytes()
    assert struct.unpack_from("<II56s", header, 476) == (41, 1, bytes(56))
    assert (header[473], header[540:544], header[768:832]) == (2, bytes(4), bytes(64))
    (table,) = struct.unpack_from("<Q", before, 640)
    offset, count, flags, checksum = struct.unpack_from("<QIII", header, 968)
    assert (offset, count, flags, struct.unpack_from("<Q", header, 752)[0]) == (table, 1, 1, 768)
    assert checksum == zlib.crc32(record(768, 8, 2, (36, 48, 4)), zlib.crc32(header[968:984]))
    differ = (
        *range(476, 544),
        *range(640, 656),
        *range(752, 760),
        *range(768, 832),
        *range(896, 900),
        *range(968, 988),
    )
    assert all(header[at] == before[at] for at in range(4096) if at not in differ)


def test_the_workers_section_has_its_promised_fields() -> None:
    """The fields of the section's header and of a slot, by their offsets in each."""
    assert len(WORKERS_HEAD) == 1024
    assert struct.unpack_from("<IIQ", WORKERS_HEAD, 0) == (3001, 3, 3002)
    assert struct.unpack_from("<Q", WORKERS_HEAD, 128)[0] == 0x060504030201 << 16 | 10
    (end_code,) = struct.unpack_from("<I", WORKERS_HEAD, 256)
    assert (end_code, WORKERS_HEAD[260:268]) == (14, b"worker 2")
    assert len(WORKER_SLOT) == 4096
    assert struct.unpack_from("<IIII", WORKER_SLOT, 0) == (6, 3, 40005, 3000)
    assert [number & 0xFF for number in struct.unpack_from("<QQQQ", WORKER_SLOT, 128)] == [7, 5, 3, 4]
    assert struct.unpack_from("<QQQI", WORKER_SLOT, 256)[1:] == (0x0908070605040304, 323_456_789, 7)
    assert struct.unpack_from("<Q", WORKER_SLOT, 384)[0] == 0x0102030405060706
    assert struct.unpack_from("<II", WORKER_SLOT, 512) == (8, 28)
    assert WORKER_SLOT[520:].rstrip(b"\0") == b"ValueError: joint 3 exploded"


def test_header_is_one_page() -> None:
    """The header's size is part of the format."""
    assert len(HEADER) == 4096


def test_checksum_covers_the_constant_bytes() -> None:
    """An implementation in another language can compute the checksum from the listing."""
    (checksum,) = struct.unpack_from("<I", HEADER, 896)
    assert checksum == zlib.crc32(HEADER[384:896], zlib.crc32(HEADER[20:128]))


def test_sections_are_aligned_within_the_region_and_disjoint() -> None:
    """The sample passes the checks that a client makes before it uses a region."""
    fields = {
        name: numbers_at(HEADER, offset, size, kind)[0]
        for offset, size, kind, name, _, _ in rows_of("lrbc_v1.bin")
        if not kind.startswith("char")
    }
    envs, obs = fields["num_envs"], 4 * fields["num_envs"] * fields["obs_size"]
    ring = 128 + fields["cmd_ring_size"]
    sizes = {
        "obs": obs,
        "act": 4 * envs * fields["act_size"],
        "rewards": 4 * envs,
        "dones": envs,
        "resets": envs,
        "truncateds": envs,
        "terminateds": envs,
        "final_obs": obs,
        "reset_seeds": 8 * envs,
        "infos": fields["infos_size"],
        "attendants": 4 * (512 + 2 * (128 + fields["attendant_ring_size"])),
        "image_slots": 10 * (256 + fields["image_slot_bytes"]),
        "cmd_s2c": ring,
        "cmd_c2s": ring,
        "image": fields["image_width"] * fields["image_height"] * fields["image_channels"],
        "flan": fields["flan_size"],
    }
    assert {f"{name}_offset" for name in sizes} == {
        name for name in fields if name.endswith("_offset") and not name.startswith("gpu") and fields[name] != 0
    }
    end = 4096
    for start, size in sorted((fields[f"{name}_offset"], size) for name, size in sizes.items()):
        assert start % 64 == 0
        assert start >= end
        end = start + size
    assert end <= fields["region_size"]


def test_ring_read_by_the_protocol_has_three_messages() -> None:
    """write_pos at 0, read_pos at 64, data from 128; length, message, padding to 8; 0xFFFFFFFF skips to the start."""
    (write_pos,) = struct.unpack_from("<I", RING, 0)
    (read_pos,) = struct.unpack_from("<I", RING, 64)
    data = RING[128:]
    assert (write_pos - read_pos) % 2**32 == len(data)  # full
    messages = []
    skips = 0
    while read_pos != write_pos:
        at = read_pos % len(data)
        (length,) = struct.unpack_from("<I", data, at)
        if length == 0xFFFFFFFF:
            skips += 1
            taken = len(data) - at
        else:
            messages.append(data[at + 4 : at + 4 + length])
            taken = (4 + length + 7) // 8 * 8
            assert taken <= len(data) // 2
            assert not any(data[at + 4 + length : at + taken])
        read_pos = (read_pos + taken) % 2**32
    assert skips == 1
    assert messages == [bytes(range(1, 28)), b"", bytes(range(101, 145))]
