"""A state of an environment, or a checkpoint, as bytes: a header with a version, a fingerprint and a checksum.

The header is checked before the rest is used.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence

from tandem.arguments import shown
from tandem.errors import InvalidArgument, LayoutMismatch

# Magic, version, kind, fingerprint, bytes of the payload, CRC-32 of all that precedes it and of the payload.
_HEADER = struct.Struct("<4sHHQQI")
_MAGIC = b"TDST"
_VERSION = 1
_BATCH_BYTES = 32 << 20

# The kinds of payloads.
ENGINE, PYTHON, CHECKPOINT = 1, 2, 3
_NAMES = {ENGINE: "an environment in an engine", PYTHON: "an environment in Python", CHECKPOINT: "a checkpoint"}


def fingerprint(*facts: str) -> int:
    """Returns a number that differs for different facts, 0 to 2**64 - 1."""
    digest = hashlib.blake2b("\0".join(facts).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def sealed(kind: int, its_fingerprint: int, payload: bytes) -> bytes:
    """Returns a payload behind its header."""
    plain = _HEADER.pack(_MAGIC, _VERSION, kind, its_fingerprint, len(payload), 0)
    return _HEADER.pack(_MAGIC, _VERSION, kind, its_fingerprint, len(payload), _checksum(plain, payload)) + payload


def unsealed(name: str, data: bytes, kind: int, its_fingerprint: int, whose: str) -> bytes:
    """Returns the payload; `name` is the argument's, `whose` describes the fingerprint, for messages.

    Raises:
      InvalidArgument: Other bytes, or damaged ones.
      LayoutMismatch: Of another kind, a newer version, or with another fingerprint.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidArgument(f"{name}: expected bytes that were saved, found {shown(data)}")
    data = bytes(data)
    if len(data) < _HEADER.size or data[:4] != _MAGIC:
        raise InvalidArgument(f"{name}: expected bytes that were saved, found {len(data)} others")
    _, version, found, mark, length, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if version != _VERSION:
        raise LayoutMismatch(f"{name}: expected version {_VERSION} of saved states, found {version}; use its Tandem")
    if length != len(payload):
        raise InvalidArgument(f"{name}: expected {length} bytes behind the header, found {len(payload)}")
    if checksum != _checksum(_HEADER.pack(_MAGIC, version, found, mark, length, 0), payload):
        raise InvalidArgument(f"{name}: expected undamaged bytes, found another checksum than theirs")
    if found != kind:
        raise LayoutMismatch(f"{name}: expected {_NAMES[kind]}, found {_NAMES.get(found, f'kind {found}')}")
    if mark != its_fingerprint:
        raise LayoutMismatch(f"{name}: expected a state of {whose}, found one of another task or model")
    return payload


def expected_states(states: object, count: int) -> None:
    """Refuses anything but a list or tuple with this number of states, with InvalidArgument."""
    if not isinstance(states, list | tuple) or len(states) != count:
        found = len(states) if isinstance(states, list | tuple) else shown(states)
        raise InvalidArgument(f"states: expected {count}, one for each environment, found {found}")


def batches(payloads: Sequence[bytes]) -> Iterator[slice]:
    """Yields the parts of a list that are sent together: of at most 32 MiB, unless a single payload is larger."""
    begin = size = 0
    for at, payload in enumerate(payloads):
        if begin < at and size + len(payload) > _BATCH_BYTES:
            yield slice(begin, at)
            begin, size = at, 0
        size += len(payload)
    yield slice(begin, len(payloads))


def _checksum(header: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(header))
