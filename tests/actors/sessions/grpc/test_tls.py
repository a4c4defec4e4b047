import ssl

import pytest
import trio

from actors.sessions import grpc
from tests.actors.sessions.grpc.peers import GrpcioClient, grpcio, run_ours
from tests.actors.sessions.grpc.service import COUNT, ECHO, Seen
from tests.support.skips import needs_package, package

trustme = package("trustme", ".[interop]")


@pytest.fixture(scope="module")
def authority() -> object:
    return trustme.CA()


@pytest.fixture
def server_context(authority: object) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)  # type: ignore[attr-defined]  # trustme's
    return context


@pytest.fixture
def client_context(authority: object) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)  # type: ignore[attr-defined]  # trustme's
    return context


async def test_calls_are_made_over_tls(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> None:
    listeners = await grpc.listen_tcp("127.0.0.1", 0, ssl_context=server_context)
    port = grpc.addresses_of(listeners)[0].rpartition(":")[2]
    async with (
        run_ours(Seen(), listeners),
        grpc.open_channel(f"https://localhost:{port}", ssl_context=client_context) as channel,
    ):
        assert await channel.unary(ECHO, bytes(500_000)) == bytes(500_000)
        async with channel.stream(COUNT, b"50 60000") as stream:
            assert len([message async for message in stream]) == 50


async def test_a_server_that_does_not_agree_on_http2_is_refused(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext, nursery: trio.Nursery
) -> None:
    [listener] = await trio.open_ssl_over_tcp_listeners(0, server_context, host="127.0.0.1")
    port = listener.transport_listener.socket.getsockname()[1]

    async def handshake_only(stream: trio.SSLStream[trio.SocketStream]) -> None:
        with pytest.raises(trio.BrokenResourceError):  # It is the whole block that ends so.
            await stream.receive_some(1)

    nursery.start_soon(trio.serve_listeners, handshake_only, [listener])
    async with grpc.open_channel(f"https://localhost:{port}", ssl_context=client_context) as channel:
        with pytest.raises(grpc.CallFailed, match="did not agree on HTTP/2"):
            await channel.unary(ECHO, b"")
    nursery.cancel_scope.cancel()


async def test_a_caller_that_does_not_agree_on_http2_is_closed(
    server_context: ssl.SSLContext, client_context: ssl.SSLContext
) -> None:
    listeners = await grpc.listen_tcp("127.0.0.1", 0, ssl_context=server_context)
    port = int(grpc.addresses_of(listeners)[0].rpartition(":")[2])
    async with run_ours(Seen(), listeners):
        stream = await trio.open_ssl_over_tcp_stream("localhost", port, ssl_context=client_context)
        await stream.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012  # It is the whole block that ends so.
            while await stream.receive_some(100):
                raise AssertionError("an answer came without an agreement")
        await trio.aclose_forcefully(stream)


async def test_a_certificate_nobody_vouches_for_is_unavailable(server_context: ssl.SSLContext) -> None:
    listeners = await grpc.listen_tcp("127.0.0.1", 0, ssl_context=server_context)
    port = grpc.addresses_of(listeners)[0].rpartition(":")[2]
    async with run_ours(Seen(), listeners), grpc.open_channel(f"https://localhost:{port}") as channel:
        with pytest.raises(grpc.CallFailed, match="UNAVAILABLE: could not connect"):
            await channel.unary(ECHO, b"")


@needs_package("grpc", ".[interop]")
async def test_grpcio_calls_us_over_tls(authority: object, server_context: ssl.SSLContext) -> None:
    listeners = await grpc.listen_tcp("127.0.0.1", 0, ssl_context=server_context)
    port = grpc.addresses_of(listeners)[0].rpartition(":")[2]
    async with run_ours(Seen(), listeners):
        root = authority.cert_pem.bytes()  # type: ignore[attr-defined]  # trustme's
        channel = grpcio.secure_channel(f"localhost:{port}", grpcio.ssl_channel_credentials(root))
        try:
            answer = await GrpcioClient(channel).call(ECHO, [b"hello"])
        finally:
            await trio.to_thread.run_sync(channel.close)

    assert answer.messages == [b"hello"]
