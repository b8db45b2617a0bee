"""The generated Python code reads and writes messages of version 1.

flatc 2.0.8 generates the code; its runtime is the newer one of tools/build/requirements.lock.
"""

import json
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

from tandem.generated import hazel_rpc as rpc

GOLDENS = Path("schema/goldens/rpc_v1")
LISTING: dict[str, dict[str, Any]] = json.loads((GOLDENS / "listing.json").read_text(encoding="utf-8"))


def read(message: bytes) -> Any:
    """Reads a message into an EnvelopeT."""
    assert rpc.Envelope.EnvelopeBufferHasIdentifier(message, 0)
    return rpc.EnvelopeT.InitFromObj(rpc.Envelope.GetRootAs(message))


def write(envelope: Any) -> bytes:
    """Writes an EnvelopeT as a message."""
    builder = flatbuffers.Builder()
    builder.Finish(envelope.Pack(builder), b"HRPC")
    return bytes(builder.Output())


def golden(name: str) -> Any:
    """Reads a golden's envelope."""
    return read((GOLDENS / f"{name}.bin").read_bytes())


def camel_case(name: str) -> str:
    """Returns a field's name as flatc spells it in Python."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def expect_equal(found: Any, listed: Any, where: str) -> None:
    """Compares an object with its JSON; a field absent from the JSON has its default."""
    if isinstance(listed, dict):
        fields = {camel_case(name): value for name, value in listed.items()}
        assert fields.keys() <= vars(found).keys(), where
        for name, value in vars(found).items():
            if name in fields:
                expect_equal(value, fields[name], f"{where}.{name}")
            else:
                assert value is None or value == 0, f"{where}.{name}"
    elif isinstance(listed, list):
        assert len(found) == len(listed), where
        for index, (one, other) in enumerate(zip(found, listed, strict=True)):
            expect_equal(one, other, f"{where}[{index}]")
    elif isinstance(listed, float):
        assert np.float32(found) == np.float32(listed), where
    elif isinstance(listed, str) and not isinstance(found, bytes):  # an enum's
        enums = (rpc.MethodId, rpc.Payload, rpc.SimulationMode, rpc.CameraStreamKind, rpc.MjJointType)
        assert found in [getattr(enum, listed, None) for enum in enums], where
    else:
        assert (found.decode() if isinstance(found, bytes) else found) == listed, where


@pytest.mark.parametrize("name", LISTING)
def test_golden_equals_the_listing(name: str) -> None:
    """Each field is equal, also after Python wrote the envelope and read it again."""
    envelope = golden(name)
    expect_equal(envelope, LISTING[name], name)
    expect_equal(read(write(envelope)), LISTING[name], name)


def test_every_payload_has_a_golden() -> None:
    """Each payload type is in the listing, and each golden file is listed."""
    payloads = {name for name in vars(rpc.Payload) if not name.startswith("_")} - {"NONE"}
    assert LISTING.keys() == payloads | {"Error", "EndOfStream"}
    assert {file.stem for file in GOLDENS.glob("*.bin")} == LISTING.keys()


def test_values_equal_constants_in_this_test() -> None:
    """Compares an enum, a union, structs, a 64-bit number, bytes, and lists of tables."""
    reset = golden("ResetAgentRequest")
    assert (reset.method, reset.payloadType) == (2, 4)
    assert reset.correlationId == 0xABCD_0000_0000_0006
    assert reset.payload.agentName == b"agent_2"
    assert reset.payload.seed == 0xFEDC_BA98_7654_3210
    assert reset.payload.envIds.tolist() == [2, 5, 4_000_000_000]
    assert reset.payload.simulationContract.frictionRange.tolist() == [0.875, 1.125]
    move = golden("SetEntityTransformRequest").payload
    assert (move.transform.position.y, move.transform.rotation.w, move.transform.scale.z) == (-2.5, 0.75, 8)
    image = golden("NamedImageFrame").payload
    assert image.frame.data.view("<u2").tolist() == list(range(10_000, 70_000, 10_000))
    states = golden("GetJointStateResponse")
    assert [state.envId for state in states.payload.states] == [1, 7]
    assert (states.streamNumber, states.dropped) == (0x1_0000_0002, 0x1_0000_0001)
    assert golden("Error").payload is None


def test_absent_and_zero_differ_where_the_schema_requires() -> None:
    """Seed 0 differs from no seed; a transform with a position has no rotation and no scale."""
    envelope = rpc.EnvelopeT()
    envelope.payloadType = rpc.Payload.ResetAgentRequest
    envelope.payload = rpc.ResetAgentRequestT()
    for seed in (None, 0, 1):
        envelope.payload.seed = seed
        assert read(write(envelope)).payload.seed == seed
    envelope.payloadType = rpc.Payload.SetEntityTransformRequest
    envelope.payload = rpc.SetEntityTransformRequestT()
    envelope.payload.transform = rpc.TransformT()
    envelope.payload.transform.position = rpc.Vec3T()
    transform = read(write(envelope)).payload.transform
    assert (transform.position.x, transform.rotation, transform.scale) == (0, None, None)
