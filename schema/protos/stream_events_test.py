"""Compatibility of StreamEvents with clients that are older than the daemon: fields stay, and new ones may be added."""

import pytest
import schema.protos.slow_lane_pb2 as slow_lane
from google.protobuf import descriptor_pb2

# A field that was in any version of Tandem must stay in this list.
_FIELDS = {
    "StreamEventsRequest": [
        "string run_id = 1",
        "uint64 since_step = 2",
        "uint64 since_episode = 3",
        "uint64 since_lifecycle = 4",
        "uint64 since_malformed = 5",
        "bool follow = 6",
        "uint64 since_scalars = 7",
    ],
    "EventBatch": [
        "string run_id = 1",
        "string worker_id = 2",
        "tandem.slow_lane.v1.Position begin = 3",
        "tandem.slow_lane.v1.Position end = 4",
        "repeated gymgui.trainer.RunStep steps = 5",
        "repeated gymgui.trainer.RunEpisode episodes = 6",
        "repeated tandem.slow_lane.v1.LifecycleEvent lifecycle = 7",
        "repeated tandem.slow_lane.v1.MalformedLine malformed = 8",
        "repeated tandem.slow_lane.v1.Scalars scalars = 9",
    ],
    "Position": [
        "uint64 offset = 1",
        "uint64 steps = 2",
        "uint64 episodes = 3",
        "uint64 lifecycle = 4",
        "uint64 malformed = 5",
        "uint64 text_lines = 6",
    ],
    "LifecycleEvent": [
        "uint64 seq_id = 1",
        "string event = 2",
        "string payload_json = 3",
        "google.protobuf.Timestamp timestamp = 4",
        "string worker_id = 5",
    ],
    "Scalars": [
        "uint64 seq_id = 1",
        "uint64 step = 2",
        "repeated string names = 3",
        "repeated double values = 4",
        "google.protobuf.Timestamp timestamp = 5",
        "string worker_id = 6",
    ],
    "MalformedLine": [
        "uint64 seq_id = 1",
        "uint64 offset = 2",
        "uint64 length = 3",
        "string reason = 4",
        "string head = 5",
    ],
}


def _declared(field: descriptor_pb2.FieldDescriptorProto) -> str:
    repeated = "repeated " if field.label == field.LABEL_REPEATED else ""
    kind = field.type_name[1:] or field.Type.Name(field.type).removeprefix("TYPE_").lower()
    return f"{repeated}{kind} {field.name} = {field.number}"


@pytest.mark.parametrize("message", _FIELDS)
def test_fields_stay(message: str) -> None:
    """The fields' numbers, names and types do not change."""
    found = descriptor_pb2.DescriptorProto()
    slow_lane.DESCRIPTOR.message_types_by_name[message].CopyToProto(found)
    assert [field for field in _FIELDS[message] if field not in map(_declared, found.field)] == []


def test_call_stays() -> None:
    """The method's path and messages do not change, and it stays a stream."""
    found = descriptor_pb2.ServiceDescriptorProto()
    slow_lane.DESCRIPTOR.services_by_name["SlowLane"].CopyToProto(found)
    (call,) = [method for method in found.method if method.name == "StreamEvents"]
    assert slow_lane.DESCRIPTOR.package == "tandem.slow_lane.v1"
    assert (call.input_type, call.client_streaming) == (".tandem.slow_lane.v1.StreamEventsRequest", False)
    assert (call.output_type, call.server_streaming) == (".tandem.slow_lane.v1.EventBatch", True)
