"""Dicts to messages and back in the binding: each message of the schema, and invalid values."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.generated import hazel_rpc
from tandem.testing import envelopes

GOLDENS = Path("schema/goldens/rpc_v1")
LISTING: dict[str, dict[str, Any]] = json.loads((GOLDENS / "listing.json").read_text(encoding="utf-8"))
PAYLOADS = {name: listed for name, listed in LISTING.items() if "payload" in listed}
REQUESTS = [name for name in PAYLOADS if name.endswith("Request")]
ENUMS = [
    vars(enum)
    for enum in (hazel_rpc.MethodId, hazel_rpc.SimulationMode, hazel_rpc.CameraStreamKind, hazel_rpc.MjJointType)
]


def expect_equal(found: Any, listed: Any, where: str) -> None:
    """Compares a read message with its JSON; a field absent from the JSON has its default."""
    if isinstance(listed, dict) and isinstance(found, np.ndarray):  # a struct
        np.testing.assert_array_equal(found, np.array(list(listed.values()), np.float32), where)
        assert found.dtype == np.float32
    elif isinstance(listed, dict):
        assert listed.keys() <= found.keys(), where
        for name, value in found.items():
            if name in listed:
                expect_equal(value, listed[name], f"{where}.{name}")
            else:
                absent = value is None or (value.size == 0 if isinstance(value, np.ndarray) else not value)
                assert absent, f"{where}.{name}"
    elif isinstance(listed, list):
        assert len(found) == len(listed), where
        for index, (one, other) in enumerate(zip(found, listed, strict=True)):
            expect_equal(one, other, f"{where}[{index}]")
    elif isinstance(listed, float):
        assert np.float32(found) == np.float32(listed), where
    elif isinstance(listed, str) and not isinstance(found, str):  # an enum's
        assert int(found) in [enum[listed] for enum in ENUMS if listed in enum], where
    else:
        assert found == listed and not isinstance(found, bytes), where


def values_of(name: str) -> dict[str, Any]:
    """Returns the payload of a golden."""
    return envelopes.read((GOLDENS / f"{name}.bin").read_bytes())


@pytest.mark.parametrize("name", PAYLOADS)
def test_message_reads_as_it_is_listed(name: str) -> None:
    """Each field has its listed value; an absent field is 0, empty or None."""
    expect_equal(values_of(name), PAYLOADS[name]["payload"], name)


@pytest.mark.parametrize("name", REQUESTS)
def test_request_is_written_as_it_was_read(name: str) -> None:
    """The written request equals the listing."""
    method = tandem.services.MethodId[PAYLOADS[name]["method"]]
    written = envelopes.pack(method, values_of(name))
    expect_equal(envelopes.read(written), PAYLOADS[name]["payload"], name)
    head = hazel_rpc.Envelope.GetRootAs(written)
    assert head.Method() == method
    assert head.PayloadType() == getattr(hazel_rpc.Payload, name)


def test_arrays_have_the_schemas_types() -> None:
    """An array has its own memory; no array is read as a list."""
    state = values_of("GetJointStateResponse")["state"]
    assert state["positions"].dtype == np.float32 and state["positions"].flags.owndata
    assert values_of("GetAgentSchemaRequest")["env_ids"].dtype == np.uint32
    frame = values_of("NamedImageFrame")["frame"]
    assert frame["data"].dtype == np.uint8 and frame["data"].flags.writeable
    assert values_of("GetServicesResponse")["services"][0]["methods"].dtype == np.uint16
    assert type(values_of("GetEntityResponse")["found"]) is bool


@pytest.mark.parametrize("method", tandem.services.MethodId)
def test_every_method_has_a_request(method: tandem.services.MethodId) -> None:
    """An empty request can be written for each method."""
    payload = hazel_rpc.Envelope.GetRootAs(envelopes.pack(method, {})).PayloadType()
    assert payload != hazel_rpc.Payload.NONE


@pytest.mark.parametrize("method", [0, 5, 999])
def test_number_of_no_method_is_refused(method: int) -> None:
    """The error has the number."""
    with pytest.raises(tandem.InvalidArgument, match=f"found {method}"):
        envelopes.pack(method, {})


def test_enums_and_contract_are_the_schemas() -> None:
    """Names and numbers are exactly those of the schema."""
    pairs = [
        (tandem.services.MethodId, hazel_rpc.MethodId),
        (tandem.services.SimulationMode, hazel_rpc.SimulationMode),
        (tandem.services.CameraKind, hazel_rpc.CameraStreamKind),
    ]
    for ours, theirs in pairs:
        listed = {name: value for name, value in vars(theirs).items() if not name.startswith("_") and name != "NONE"}
        assert {each.name: each.value for each in ours} == listed
    schema = Path("schema/messages/hazel_rpc.fbs").read_text(encoding="utf-8")
    (table,) = re.findall(r"^table SimulationContract \{(.*?)^\}", schema, re.MULTILINE | re.DOTALL)
    assert re.findall(r"^  (\w+):", table, re.MULTILINE) == list(
        tandem.services.SimulationContract.__dataclass_fields__
    )


def test_answers_have_only_zero_defaults() -> None:
    """The binding reads an absent number as 0; three fields of requests have other defaults."""
    schema = Path("schema/messages/hazel_rpc.fbs").read_text(encoding="utf-8")
    defaults = re.findall(r"^  (\w+): \w+ = (\w+) \(id", schema, re.MULTILINE)
    assert defaults == [("seed", "null"), ("realtime_factor", "1"), ("steps", "1")]


def test_given_values_are_written_and_none_is_omitted() -> None:
    """Seed 0 is written; None is omitted."""

    def seed(fields: dict[str, Any]) -> int | None:
        envelope = hazel_rpc.EnvelopeT.InitFromObj(
            hazel_rpc.Envelope.GetRootAs(envelopes.pack(tandem.services.MethodId.ResetAgent, fields))
        )
        found: int | None = envelope.payload.seed
        return found

    assert seed({"seed": 0}) == 0
    assert seed({"seed": 2**64 - 1}) == 2**64 - 1
    assert seed({"seed": None}) is None
    assert seed({}) is None


def _packed(method: str, fields: object) -> dict[str, Any]:
    return envelopes.read(envelopes.pack(tandem.services.MethodId[method], fields))


def test_numbers_come_in_many_kinds() -> None:
    """Python's and NumPy's numbers, and arrays of any layout and dtype, are accepted."""
    control = _packed(
        "SendControl",
        {
            "bulk": np.arange(6, dtype=np.int64)[::2],
            "indexed": ({"actuator_index": np.uint8(3), "value": np.float64(0.5)}, {"value": True}),
            "wait_for_next_step": np.True_,
            "skip_range_clamp": False,
            "env_ids": range(2),
        },
    )
    np.testing.assert_array_equal(control["bulk"], [0, 2, 4])
    assert control["indexed"] == [{"actuator_index": 3, "value": 0.5}, {"actuator_index": 0, "value": 1.0}]
    assert control["wait_for_next_step"] is True and control["skip_range_clamp"] is False
    np.testing.assert_array_equal(control["env_ids"], [0, 1])
    moved = _packed("SetEntityTransform", {"transform": {"position": (1, 2.5, -3), "rotation": np.eye(4)[3]}})
    np.testing.assert_array_equal(moved["transform"]["position"], [1, 2.5, -3])
    np.testing.assert_array_equal(moved["transform"]["rotation"], [0, 0, 0, 1])
    assert moved["transform"]["scale"] is None


@pytest.mark.parametrize(
    ("method", "fields", "where", "expected"),
    [
        ("GetEntity", {"nmae": "x"}, "GetEntityRequest", "fields id, name, env_id"),
        ("GetEntity", {3: "x"}, "GetEntityRequest", "fields"),
        ("GetEntity", {"name": b"x"}, "GetEntityRequest.name", "a str"),
        ("GetEntity", {"name": "\ud800"}, "GetEntityRequest.name", "Unicode"),
        ("GetEntity", {"id": -1}, "GetEntityRequest.id", r"0 \.\. 18446744073709551615"),
        ("GetEntity", {"id": 2**64}, "GetEntityRequest.id", "integer"),
        ("GetEntity", {"id": 1.0}, "GetEntityRequest.id", "integer"),
        ("GetEntity", {"id": math.nan}, "GetEntityRequest.id", "integer"),
        ("GetEntity", {"id": "7"}, "GetEntityRequest.id", "integer"),
        ("GetEntity", {"env_id": 2**32}, "GetEntityRequest.env_id", r"0 \.\. 4294967295"),
        ("GetEntity", [("id", 1)], "GetEntityRequest", "a dict"),
        ("SetPaused", {"paused": 1}, "SetPausedRequest.paused", "a bool"),
        ("SetPaused", {"paused": "no"}, "SetPausedRequest.paused", "a bool"),
        ("SetSimulationMode", {"mode": 3}, "SetSimulationModeRequest.mode", r"REALTIME \(0\)"),
        ("SetEntityTransform", {"transform": 3}, "SetEntityTransformRequest.transform", "a dict"),
        ("SetEntityTransform", {"transform": {"position": (1, 2)}}, "transform.position", "3 numbers"),
        ("SetEntityTransform", {"transform": {"rotation": "1234"}}, "transform.rotation", "4 numbers"),
        ("SetEntityTransform", {"transform": {"scale": [[1, 2, 3]]}}, "transform.scale", "3 numbers"),
        ("SendControl", {"bulk": "12"}, "SendControlRequest.bulk", "numbers"),
        ("SendControl", {"bulk": [[1.0]]}, "SendControlRequest.bulk", "one dimension"),
        ("SendControl", {"bulk": [1j]}, "SendControlRequest.bulk", "numbers"),
        ("SendControl", {"bulk": 3}, "SendControlRequest.bulk", "one dimension"),
        ("SendControl", {"indexed": [{}, {"value": "x"}]}, r"indexed\[1\].value", "a number"),
        ("SendControl", {"indexed": [{"value": 1e39}]}, r"indexed\[0\].value", "float32"),
        ("SendControl", {"indexed": "ab"}, "SendControlRequest.indexed", "a sequence"),
        ("SendControl", {"indexed": 3}, "SendControlRequest.indexed", "a sequence"),
        ("SendControl", {"env_ids": [0, -1]}, r"env_ids\[1\]", r"0 \.\. 4294967295"),
        ("SendControl", {"env_ids": [0, 2**32]}, r"env_ids\[1\]", r"0 \.\. 4294967295"),
        ("SendControl", {"env_ids": np.array([2**64 - 1], np.uint64)}, r"env_ids\[0\]", "integer"),
        ("SendControl", {"env_ids": [0.5]}, "SendControlRequest.env_ids", "integers"),
        ("SendControl", {"env_ids": [True]}, "SendControlRequest.env_ids", "integers"),
    ],
    ids=lambda value: "",
)
def test_invalid_field_is_named(method: str, fields: object, where: str, expected: str) -> None:
    """The message has the field, the expected value and the found value."""
    with pytest.raises(tandem.InvalidArgument, match=f"{where}: expected .*{expected}.*, found .*nothing was sent"):
        envelopes.pack(tandem.services.MethodId[method], fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"bulk": np.zeros(2**25, np.uint8)},
        {"robot_name": "x" * (2**26 + 1)},
        {"env_ids": np.zeros(2**25, np.uint8)},
        {"bulk": np.zeros(2**23, np.float32), "env_ids": np.zeros(2**23, np.uint32), "robot_name": "x"},
        {"named": [{"actuator_name": "x" * 2**16}] * 1025},
    ],
    ids=["floats", "text", "integers", "together", "tables"],
)
def test_request_too_large_for_any_engine_is_refused(fields: dict[str, Any]) -> None:
    """The error is MessageTooLarge; FlatBuffers itself would abort the process."""
    with pytest.raises(tandem.MessageTooLarge, match="67108864 bytes"):
        envelopes.pack(tandem.services.MethodId.SendControl, fields)
