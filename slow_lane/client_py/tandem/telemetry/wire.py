"""The daemon's messages and methods, made from the compiled protos at their first use.

The descriptors are in a pool of their own, not in protobuf's default pool. There a program may have other code that was
generated for the same service, such as MOSAIC's. This module imports grpc and protobuf only when `load` is called.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# A FileDescriptorSet: schema/protos/slow_lane.proto and the files that it imports, such as trainer.proto.
_DESCRIPTORS = Path(__file__).with_name("slow_lane.binpb")
_SERVICES = ("gymgui.trainer.TrainerService", "tandem.slow_lane.v1.SlowLane")


@dataclass(frozen=True)
class Method:
    """A method of one of the services: its path in HTTP/2, and the classes of its messages.

    `kind` is the name of the function of grpc.Channel that makes its callable, such as "unary_stream".
    """

    path: str
    request: Any
    response: Any
    kind: str

    @property
    def fields(self) -> Mapping[str, Any]:
        """Descriptors of the request's fields, by name."""
        return self.request.DESCRIPTOR.fields_by_name  # type: ignore[no-any-return]

    def on(self, channel: Any) -> Any:
        """Returns the callable that calls the method on `channel`, a grpc.Channel."""
        return getattr(channel, self.kind)(
            self.path, request_serializer=self.request.SerializeToString, response_deserializer=self.response.FromString
        )


@dataclass(frozen=True)
class Wire:
    """The parts of grpc and protobuf that a client uses: the methods of both services by their distinct names.

    `constants` are the values of the daemon's enum Constant.
    """

    grpc: ModuleType
    methods: dict[str, Method]
    constants: dict[str, int]


@functools.cache
def load() -> Wire:
    """Imports grpc and protobuf, and makes the message classes; ModuleNotFoundError if a package is missing."""
    try:
        import grpc
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"TrainerClient: expected the packages grpcio and protobuf, found no module {error.name}; "
            "pip install grpcio protobuf",
            name=error.name,
        ) from error

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes()).file:
        pool.Add(file)
    kinds = {False: "unary", True: "stream"}
    methods = [method for service in _SERVICES for method in pool.FindServiceByName(service).methods]
    by_name = {
        method.name: Method(
            f"/{method.containing_service.full_name}/{method.name}",
            message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type),
            f"{kinds[method.client_streaming]}_{kinds[method.server_streaming]}",
        )
        for method in methods
    }
    assert len(by_name) == len(methods), "two methods have the same name"
    constants = pool.FindEnumTypeByName("tandem.slow_lane.v1.Constant").values_by_name
    return Wire(grpc, by_name, {name: value.number for name, value in constants.items()})
