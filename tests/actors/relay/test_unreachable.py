"""Why no connection came about, as three dialers say it: to a registry, a rendezvous and an executor."""

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from actors.harness import HarnessError, WebSocketConnectTimedOut
from actors.harness import WebSocketDialer as HarnessDialer
from actors.noise import Identity
from actors.relay import DialFailed, WebSocketDialer, place_of, why_unreachable
from actors.rendezvous import RegistryConfigInvalid, RegistryRequestFailed, bearer, open_registry_client
from tests.support.certificates import self_signed

KEY = Identity.generate().public_key
Handle = Callable[[trio.SocketStream], Awaitable[None]]


async def ask_registry(place: str, *, is_secured: bool) -> None:
    url = f"{'https' if is_secured else 'http'}://{place}"
    async with open_registry_client(url, bearer("a-token")) as registry:
        await registry.connect("tools", KEY)


async def dial_rendezvous(place: str, *, is_secured: bool) -> None:
    async with WebSocketDialer().dial(f"{'wss' if is_secured else 'ws'}://{place}/x?ticket=secret"):
        pass


async def dial_executor(place: str, *, is_secured: bool) -> None:
    async with HarnessDialer().dial(f"{'wss' if is_secured else 'ws'}://{place}"):
        pass


DIALS = [ask_registry, dial_rendezvous, dial_executor]


@asynccontextmanager
async def listening(handle: Handle) -> AsyncGenerator[str, None]:
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        yield f"127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="module")
def shake_hands(tmp_path_factory: pytest.TempPathFactory) -> Handle:
    """Speaks TLS, with a certificate that nobody knows."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    places: list[Path] = [tmp_path_factory.mktemp("tls") / name for name in ("certificate", "key")]
    for place, content in zip(places, self_signed(), strict=True):
        place.write_bytes(content)
    context.load_cert_chain(*places)

    async def shake_hands(stream: trio.SocketStream) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await trio.SSLStream(stream, context, server_side=True).do_handshake()
        await stream.aclose()

    return shake_hands


async def said_by(dial, place: str, *, is_secured: bool) -> str:
    with pytest.raises((RegistryRequestFailed, DialFailed, HarnessError)) as failed:
        await dial(place, is_secured=is_secured)
    said = str(failed.value)
    assert place.partition(":")[0] in said, "it says to what"
    for theirs in ("Error", "Exception", "all attempts", "secret", "_ssl.c"):
        assert theirs not in said
    return said


@pytest.mark.parametrize("is_secured", [False, True])
@pytest.mark.parametrize("dial", DIALS)
async def test_a_port_where_nothing_listens_is_told_as_that(dial, is_secured: bool) -> None:
    """Mutant: the error of the library, which holds the reason in a group that caused it, is shown."""
    said = await said_by(dial, "127.0.0.1:9", is_secured=is_secured)

    assert "connection refused: nothing listens there; check the address" in said


@pytest.mark.parametrize("dial", DIALS)
async def test_a_name_that_is_not_known_is_told_as_that(dial) -> None:
    class Nothing(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host, port, family=0, type=0, proto=0, flags=0):  # noqa: A002
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        async def getnameinfo(self, sockaddr, flags):
            raise AssertionError

    trio.socket.set_custom_hostname_resolver(Nothing())
    assert "its name is not known; check the address" in await said_by(dial, "no.such.host:80", is_secured=False)


@pytest.mark.parametrize("dial", DIALS)
async def test_tls_towards_what_speaks_none_is_told_as_that(dial) -> None:
    async def answer_plainly(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.aclose()

    async with listening(answer_plainly) as place:
        said = await said_by(dial, place, is_secured=True)

    assert "it speaks no TLS: an address of it begins with " in said
    assert said.endswith("http://") if dial is ask_registry else said.endswith("ws://")


@pytest.mark.parametrize("dial", DIALS)
async def test_plain_words_towards_what_speaks_tls_are_told_as_that(dial, shake_hands: Handle) -> None:
    async with listening(shake_hands) as place:
        said = await said_by(dial, place, is_secured=False)

    assert "if it speaks TLS, the address begins with " in said


@pytest.mark.parametrize("dial", DIALS)
async def test_a_certificate_that_nobody_vouches_for_is_told_as_that(dial, shake_hands: Handle) -> None:
    async with listening(shake_hands) as place:
        said = await said_by(dial, place, is_secured=True)

    assert "its certificate is not accepted: self-signed certificate" in said


async def test_silence_after_the_connection_was_taken_is_told_with_the_likely_reason() -> None:
    async def be_silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with listening(be_silent) as place:
        with pytest.raises(WebSocketConnectTimedOut, match=r"after 50ms; if it speaks no TLS, .* begins with ws://"):
            async with HarnessDialer(connect_timeout_s=0.05).dial(f"wss://{place}"):
                pass
        with pytest.raises(DialFailed, match=r"timed out after 0\.05 s; if it speaks no TLS, .* begins with ws://"):
            async with WebSocketDialer(connect_s=0.05).dial(f"wss://{place}"):
                pass


@pytest.mark.parametrize("url", ["ws://127.0.0.1:9", "tools", "", "http://", "http://host:99999", "http://host:0"])
async def test_what_can_be_no_registry_is_refused_with_what_was_given(url: str) -> None:
    with pytest.raises(RegistryConfigInvalid, match="must be an http or https URL with a host, not") as refused:
        async with open_registry_client(url, bearer("a-token")):
            pass

    assert repr(url) in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://h:1/x", "http://me:word@h:1/x", "http://me:wo/rd@h:1/x", "http://h:1?a=word", "http://h:1#word"]
)
def test_a_place_shows_nothing_that_may_be_secret(url: str) -> None:
    assert place_of(url) == "http://h:1"


def test_the_reason_is_found_behind_what_libraries_raise_and_a_ring_of_causes_ends() -> None:
    refused = ConnectionRefusedError(111, "Error connecting to ('h', 1): Connection refused")
    outer = OSError("all attempts to connect failed")
    outer.__cause__ = ExceptionGroup("all attempts", [OSError("x"), refused])
    refused.__context__ = outer

    assert why_unreachable(outer, "http") == (
        "connection refused: nothing listens there; check the address, and that it was started"
    )
    assert why_unreachable(OSError("x"), "http") is None
    assert why_unreachable(OSError(113, "No route to host"), "ws") == "no route to host"
