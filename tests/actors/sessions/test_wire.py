"""The checked-in message classes say what the proto says, and the typed methods are those of the service."""

from google.protobuf import descriptor_pb2, descriptor_pool

from actors.sessions._wire import _methods, code_mode_pb2
from actors.sessions.grpc import Method, methods_of

SERVICE = code_mode_pb2.DESCRIPTOR.services_by_name["CodeModeHost"]


def test_the_typed_methods_are_those_of_the_service() -> None:
    typed = {m.path: m for m in vars(_methods).values() if isinstance(m, Method)}
    described = {m.path: m for m in methods_of(SERVICE).values()}

    assert typed.keys() == described.keys()
    for path, method in typed.items():
        assert method.server_streaming == described[path].server_streaming, path
        assert method.request.parse(b"") == described[path].request.parse(b""), path
        assert method.response.parse(b"") == described[path].response.parse(b""), path


def test_an_empty_opening_is_a_valid_request_without_limits() -> None:
    request = code_mode_pb2.OpenSessionRequest.FromString(b"")

    assert not request.HasField("cell_execution_limits")
    assert request.output_truncation == code_mode_pb2.OUTPUT_TRUNCATION_UNSPECIFIED


def test_the_descriptor_in_the_messages_stands_alone() -> None:
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto()
    code_mode_pb2.DESCRIPTOR.CopyToProto(file)
    pool.Add(file)

    assert pool.FindServiceByName("codex.code_mode.v1.CodeModeHost").full_name == SERVICE.full_name
