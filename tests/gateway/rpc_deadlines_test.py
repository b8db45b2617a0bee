"""Each RPC of package hazel.rpc answers in time. Its limits are seconds, so the target is manual.

tools/bazel test //tests/gateway:rpc_deadlines_test
"""

from typing import Any

import schema.protos.hazel.scene_pb2 as scene_pb2

from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tandem.testing.gateways import Gateway, rpc_doors
from tests.gateway.stubs import SERVICES, ZEROS, connected, engine

_SECS = 1.0
_FIRST_IMAGE_SECS = 30.0  # the engine loads its renderer
_IMAGE_SECS = 5.0
_IMAGES = ("StreamCamera", "StreamViewport")
# The fields of those requests that need some.
_FIELDS: dict[str, dict[str, Any]] = {
    "GetEntity": {"name": "torso"},
    "SendControl": {"controls": ZEROS},
    "SetActionGroup": {"group": {"group_name": "legs", "actions": [0.5], "action_indices": [2]}},
    "SetControl": {"bulk": ZEROS},
    "SetQpos": {"bulk": [0.0] * 9},
    "Step": {"actions": ZEROS},
    "StreamCamera": {"name": "track", "width": 64, "height": 48},
    "StreamViewport": {"viewport_name": "Main", "width": 64, "height": 48},
}


def test_each_rpc_answers_in_time() -> None:
    """With a response, or its first item."""
    name = unique_name()
    with engine(name) as _, Gateway(name) as gateway, connected(gateway) as stubs:
        stubs.reset()
        get_entity = stubs.channel.unary_unary("/hazel.rpc.SceneService/GetEntity")
        found = scene_pb2.GetEntityRequest(name="floor").SerializeToString()
        floor = scene_pb2.GetEntityResponse.FromString(get_entity(found, timeout=_SECS)).entity.id
        fields = {**_FIELDS, "SetEntityTransform": {"id": floor, "transform": {"position": {"z": -1.0}}}}
        methods = [(service, method) for service in SERVICES for method in service.methods]
        assert len(methods) == len(rpc_doors())
        for service, method in methods:
            request = method.input_type._concrete_class(**fields.get(method.name, {})).SerializeToString()
            call = stubs.channel.unary_stream(f"/{service.full_name}/{method.name}")
            limits = (_FIRST_IMAGE_SECS, _IMAGE_SECS) if method.name in _IMAGES else (_SECS,)
            for secs in limits:
                answers = call(request, timeout=secs)
                method.output_type._concrete_class.FromString(next(answers))
                answers.cancel()
