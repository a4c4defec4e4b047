"""Methods and routes of a protobuf service, made from the descriptors that generated code carries.

No generated service code is needed, and grpcio is not. The only file that knows protobuf.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message

from actors.sessions.grpc._methods import AnyMethod, Codec, Method
from actors.sessions.grpc._routes import Route, bidirectional, client_stream, server_stream, unary
from actors.sessions.grpc._status import Status, StatusCode

AMessage = TypeVar("AMessage", bound=Message)
ARequest = TypeVar("ARequest", bound=Message)
AResponse = TypeVar("AResponse", bound=Message)


def protobuf_codec(message: type[AMessage]) -> Codec[AMessage]:
    """Write and read one kind of message."""
    return Codec(message.SerializeToString, message.FromString)


def protobuf_method(
    path: str,
    request: type[ARequest],
    response: type[AResponse],
    *,
    client_streaming: bool = False,
    server_streaming: bool = False,
) -> Method[ARequest, AResponse]:
    """Name a method with the types of its messages, so that type checkers know them."""
    return Method(
        path,
        protobuf_codec(request),
        protobuf_codec(response),
        client_streaming=client_streaming,
        server_streaming=server_streaming,
    )


def methods_of(service: ServiceDescriptor) -> Mapping[str, AnyMethod]:
    """List the methods of a service by name: `methods_of(thing_pb2.DESCRIPTOR.services_by_name["Thing"])`."""
    return {method.name: _method(service, method) for method in service.methods}


def _method(service: ServiceDescriptor, method: MethodDescriptor) -> AnyMethod:
    return protobuf_method(
        f"/{service.full_name}/{method.name}",
        _class_of(method.input_type),
        _class_of(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )


def _class_of(descriptor: Descriptor) -> type[Message]:
    return message_factory.GetMessageClass(descriptor)


def routes_of(service: ServiceDescriptor, implementation: object) -> list[Route]:
    """Serve a service with the methods of an object: `GetThing` with `get_thing`, each in its shape.

    Raises:
        TypeError: Methods are missing; all of them are named.
    """
    methods = methods_of(service)
    handlers = {name: getattr(implementation, _snake_case(name), None) for name in methods}
    missing = [_snake_case(name) for name, handler in handlers.items() if handler is None]
    if missing:
        kind = type(implementation).__name__
        raise TypeError(f"{kind} cannot serve {service.full_name}: it has no {', '.join(missing)}")
    return [_route(method, cast("Any", handlers[name])) for name, method in methods.items()]


def _route(method: AnyMethod, handler: Any) -> Route:
    match (method.client_streaming, method.server_streaming):
        case (False, False):
            return unary(method, handler)
        case (False, True):
            return server_stream(method, handler)
        case (True, False):
            return client_stream(method, handler)
        case _:
            return bidirectional(method, handler)


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _rich_status_class() -> Any:
    """Build `google.rpc.Status` in a pool of its own: its package is not needed, and cannot clash."""
    pool = descriptor_pool.DescriptorPool()
    any_file = descriptor_pb2.FileDescriptorProto()
    any_pb2.DESCRIPTOR.CopyToProto(any_file)
    pool.Add(any_file)
    file = descriptor_pb2.FileDescriptorProto(name="google/rpc/status.proto", package="google.rpc", syntax="proto3")
    file.dependency.append(any_file.name)
    status = file.message_type.add(name="Status")
    field = descriptor_pb2.FieldDescriptorProto
    optional, repeated = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    status.field.add(name="code", number=1, type=field.TYPE_INT32, label=optional)
    status.field.add(name="message", number=2, type=field.TYPE_STRING, label=optional)
    status.field.add(
        name="details", number=3, type=field.TYPE_MESSAGE, label=repeated, type_name=".google.protobuf.Any"
    )
    pool.Add(file)
    return _class_of(pool.FindMessageTypeByName("google.rpc.Status"))


_RichStatus = _rich_status_class()


def rich_status(code: StatusCode, message: str, details: Iterable[Message]) -> Status:
    """Make a status with messages that say more, packed as `google.rpc.Status`."""
    rich = _RichStatus(code=int(code), message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        rich.details.add(type_url=packed.type_url, value=packed.value)
    return Status(code, message, rich.SerializeToString())


def details_of(status: Status, kind: type[AMessage]) -> list[AMessage]:
    """Return the details of one kind; empty when there are none or they cannot be read."""
    rich = _RichStatus()
    try:
        rich.ParseFromString(status.details)
    except Exception:
        # Details are an extra: broken ones must not hide the status they came with.
        return []
    name = kind.DESCRIPTOR.full_name
    return [kind.FromString(packed.value) for packed in rich.details if packed.type_url.rpartition("/")[2] == name]
