import pytest
import trio
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, wrappers_pb2
from google.protobuf.descriptor import ServiceDescriptor

from actors.sessions import grpc
from actors.sessions.grpc.testing import MemoryNetwork
from tests.support.skips import package

Text = wrappers_pb2.StringValue


@pytest.fixture(scope="module")
def service() -> ServiceDescriptor:
    """A service as generated code would carry it, over messages that protobuf brings along."""
    file = descriptor_pb2.FileDescriptorProto(name="words.proto", package="words", syntax="proto3")
    file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
    words = file.service.add(name="Words")
    kind = "." + Text.DESCRIPTOR.full_name
    for name, sends, receives in [
        ("ToUpper", False, False), ("SplitIt", False, True),
        ("JoinAll", True, False), ("EachHTTPWord", True, True),
    ]:  # fmt: skip
        words.method.add(
            name=name, input_type=kind, output_type=kind, client_streaming=sends, server_streaming=receives
        )
    pool = descriptor_pool.Default()
    pool.Add(file)  # type: ignore[no-untyped-call]  # protobuf's
    return pool.FindServiceByName("words.Words")


class Words:
    async def to_upper(self, call: grpc.ServerCall, request: Text) -> Text:
        return Text(value=request.value.upper())

    async def split_it(self, call: grpc.ServerCall, request: Text, send: grpc.Send[Text]) -> None:
        for word in request.value.split():
            await send(Text(value=word))

    async def join_all(self, call: grpc.ServerCall, requests: grpc.Requests[Text]) -> Text:
        return Text(value=" ".join([request.value async for request in requests]))

    async def each_http_word(self, call: grpc.ServerCall, requests: grpc.Requests[Text], send: grpc.Send[Text]) -> None:
        async for request in requests:
            await send(request)


async def test_a_service_is_served_and_called_by_its_descriptor(
    service: ServiceDescriptor, network: MemoryNetwork
) -> None:
    methods = grpc.methods_of(service)
    server = grpc.Server(grpc.routes_of(service, Words()))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, [network.listener])
        async with grpc.open_channel("http://m", dial=network.dial) as channel:
            assert (await channel.unary(methods["ToUpper"], Text(value="a"))).value == "A"
            async with channel.stream(methods["SplitIt"], Text(value="a b c")) as words:
                assert [word.value async for word in words] == ["a", "b", "c"]
            for name in ("JoinAll", "EachHTTPWord"):
                async with channel.open_call(methods[name]) as call:
                    for word in "xyz":
                        await call.send(Text(value=word))
                    call.finish_sending()
                    assert " ".join([word.value async for word in call]) == "x y z"
        nursery.cancel_scope.cancel()


def test_an_implementation_with_gaps_is_refused_with_all_of_them_named(service: ServiceDescriptor) -> None:
    with pytest.raises(TypeError, match=r"Half cannot serve words.Words: it has no split_it, join_all, each_http_word"):
        grpc.routes_of(service, type("Half", (), {"to_upper": None.__class__})())


def test_details_of_a_status_can_be_read_again() -> None:
    duration = duration_pb2.Duration(seconds=3)
    status = grpc.rich_status(grpc.StatusCode.ABORTED, "try later", [duration, Text(value="x"), duration])

    assert grpc.details_of(status, duration_pb2.Duration) == [duration, duration]
    assert grpc.details_of(status, Text) == [Text(value="x")]
    assert grpc.details_of(status, struct_pb2.Struct) == []


def test_broken_details_do_not_hide_the_status() -> None:
    status = grpc.Status(grpc.StatusCode.ABORTED, "x", b"\xff\xff")

    assert grpc.details_of(status, Text) == []


def test_the_reference_reads_our_details() -> None:
    rpc_status = package("google.rpc.status_pb2", "googleapis-common-protos")
    status = grpc.rich_status(grpc.StatusCode.ABORTED, "m", [Text(value="x")])

    theirs = rpc_status.Status.FromString(status.details)

    assert (theirs.code, theirs.message, theirs.details[0].type_url) == (
        10,
        "m",
        "type.googleapis.com/google.protobuf.StringValue",
    )
