"""The checked-in message classes say what the proto says, and the typed methods are those of the service."""

from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool

from actors.sessions._wire import _methods, code_mode_pb2
from actors.sessions.grpc import Method, methods_of
from tests.actors.sessions.wire_generation import PROTO, generate
from tests.support.skips import needs_package

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


@needs_package("grpc_tools", "grpcio-tools")
def test_the_checked_in_messages_are_made_from_the_checked_in_proto(tmp_path: Path) -> None:
    generate(tmp_path)
    made = (tmp_path / PROTO.replace(".proto", "_pb2.pyi")).read_text()
    kept = Path(code_mode_pb2.__file__).with_suffix(".pyi").read_text()

    assert names_in(made) == names_in(kept)


def test_the_descriptor_in_the_messages_stands_alone() -> None:
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto()
    code_mode_pb2.DESCRIPTOR.CopyToProto(file)
    pool.Add(file)

    assert pool.FindServiceByName("codex.code_mode.v1.CodeModeHost").full_name == SERVICE.full_name


def names_in(stub: str) -> list[str]:
    """What a stub declares; import lines and annotations differ between versions of the generator."""
    lines = [line.split(":")[0].strip() for line in stub.splitlines() if not line.startswith(("from ", "import "))]
    return sorted(line for line in lines if line and not line.startswith("def "))
