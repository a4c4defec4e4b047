"""The whole rendezvous in memory, on a virtual clock: keepalive, storms, silence, and what a client does about it."""

import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import httpx2
import pytest
import trio
import trio.testing

from actors.noise import Identity
from actors.relay import (
    ConnectionLost,
    DialRefused,
    DisconnectReason,
    ExecutorStream,
    PhysicalConnection,
    Redial,
    RegistrarFailed,
    UpkeepEvent,
    Verdict,
    WebSocketDialer,
    keep_executor_connected,
    open_harness_stream,
    serve_executor,
)
from actors.relay.testing import MemoryDialer
from actors.rendezvous import (
    Grant,
    RegistryClient,
    RegistryConfigInvalid,
    RegistryError,
    RegistryHttpFailed,
    RegistryRequestFailed,
    Rendezvous,
    RendezvousLimits,
    bearer,
    open_registry_client,
    open_rendezvous,
)
from actors.rendezvous.testing import MemoryNetwork
from tests.support.cancelling import cancel_at_each_step

TOKEN = "a-token-of-everybody-here"
GRANTS = [Grant(token=TOKEN, name="all")]
KEY = Identity.generate()


@asynccontextmanager
async def served(
    network: MemoryNetwork, limits: RendezvousLimits | None = None
) -> AsyncGenerator[tuple[Rendezvous, RegistryClient, WebSocketDialer], None]:
    async with AsyncExitStack() as stack:
        rendezvous = await stack.enter_async_context(
            open_rendezvous(GRANTS, listeners=network.listeners(), public_url=network.url, limits=limits)
        )
        client = await stack.enter_async_context(
            open_registry_client(network.url, bearer(TOKEN), transport=network.transport())
        )
        yield rendezvous, client, WebSocketDialer(open_stream=network.open_stream)


async def echo(stream: ExecutorStream) -> None:
    while True:
        await stream.send(await stream.receive())


async def serve(client: RegistryClient, connection: PhysicalConnection, registration) -> DisconnectReason:
    registration_id = registration.executor_registration_id
    return await serve_executor(
        connection,
        KEY,
        environment_id=registration.environment_id,
        registration_id=registration_id,
        validate=partial(client.verdict, registration.environment_id, registration_id),
        handler=echo,
    )


async def test_the_same_code_runs_in_memory(autojump_clock: trio.testing.MockClock) -> None:
    async with served(MemoryNetwork()) as (rendezvous, client, dialer), trio.open_nursery() as nursery:
        register = partial(client.register, "env", KEY.public_key)
        nursery.start_soon(partial(keep_executor_connected, register, partial(serve, client), dialer=dialer))
        await trio.testing.wait_all_tasks_blocked()
        bundle = await client.connect("env", KEY.public_key)
        async with open_harness_stream(bundle, KEY, dialer=dialer) as stream:
            await stream.send(b"x" * 1_000_000)
            assert len(await stream.receive()) == 1_000_000
            await trio.sleep(1000)

            assert stream.error is None, "pings keep an idle stream"
            assert rendezvous.statistics().streams == 1
        nursery.cancel_scope.cancel()


async def test_p13_the_router_gives_up_a_silent_peer_within_interval_and_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    network = MemoryNetwork()
    async with served(network) as (rendezvous, client, _):
        registration = await client.register("env", KEY.public_key)
        stream = await network.open_stream("x", 1)
        target = registration.url.partition(":80")[2]
        await stream.send_all(
            f"GET {target} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 101")
        began_s = trio.current_time()
        assert rendezvous.statistics().executors == 1
        await trio.sleep(89)
        assert rendezvous.statistics().executors == 1
        await trio.sleep(5)

        assert rendezvous.statistics().executors == 0
        assert trio.current_time() - began_s < 95


async def test_a_harness_that_names_no_stream_is_let_go(autojump_clock: trio.testing.MockClock) -> None:
    async with served(MemoryNetwork()) as (rendezvous, client, dialer), AsyncExitStack() as stack:
        registration = await client.register("env", KEY.public_key)
        await stack.enter_async_context(dialer.dial(registration.url))
        bundle = await client.connect("env", KEY.public_key)
        connection = await stack.enter_async_context(dialer.dial(bundle.websocket_url))
        with pytest.raises(ConnectionLost):
            await connection.receive()

        assert 10 <= trio.current_time() <= 13
        assert rendezvous.statistics().authorizations == 0


async def test_an_unused_authorization_is_over_after_a_minute(autojump_clock: trio.testing.MockClock) -> None:
    async with served(MemoryNetwork()) as (rendezvous, client, dialer), AsyncExitStack() as stack:
        registration = await client.register("env", KEY.public_key)
        await stack.enter_async_context(dialer.dial(registration.url))
        bundle = await client.connect("env", KEY.public_key)
        await trio.sleep(60)
        with pytest.raises(DialRefused):
            async with dialer.dial(bundle.websocket_url):
                pass

        await trio.sleep(6)
        assert rendezvous.statistics().authorizations == 0


async def test_p12_a_storm_of_executors_comes_back_spread_and_all_get_in(
    autojump_clock: trio.testing.MockClock,
) -> None:
    network, count = MemoryNetwork(), 60
    entropy = random.Random(12)
    attempts: list[float] = []

    async def open_stream(host: str, port: int) -> trio.abc.Stream:
        attempts.append(trio.current_time())
        return await network.open_stream(host, port)

    dialer = WebSocketDialer(open_stream=open_stream)
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        client = await stack.enter_async_context(
            open_registry_client(network.url, bearer(TOKEN), transport=network.transport())
        )

        async def idle(connection: PhysicalConnection, registration: object) -> DisconnectReason:
            with pytest.raises(ConnectionLost):
                await connection.receive()
            return DisconnectReason.PEER_CLOSE

        for number in range(count):
            nursery.start_soon(
                partial(
                    keep_executor_connected,
                    partial(client.register, f"env-{number}", KEY.public_key),
                    idle,
                    dialer=dialer,
                    redial=Redial(first_s=1, cap_s=30),
                    spread=entropy.random,
                )
            )
        await trio.sleep(600)
        attempts.clear()
        back_s = trio.current_time()
        limits = RendezvousLimits(dials_per_s=5)
        async with open_rendezvous(
            GRANTS, listeners=network.listeners(), public_url=network.url, limits=limits
        ) as rendezvous:
            await trio.sleep(90)

            assert rendezvous.statistics().executors == count
            by_second = [sum(1 for at in attempts if second <= at - back_s < second + 1) for second in range(90)]
            assert max(by_second) <= count // 5
            nursery.cancel_scope.cancel()


UNSTABLE = [
    RegistryHttpFailed("busy", 503, None, retryable=True, retry_after_s=40.0),
    RegistryRequestFailed("ConnectError"),
]


async def test_an_executor_registers_again_after_4xx_only_and_obeys_try_again_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    events: list[UpkeepEvent] = []
    registered: list[float] = []
    answers: list[Exception | None] = [
        DialRefused("x", 503, 7.0),
        DialRefused("x", 500, None),
        DialRefused("x", 404, None),
        None,
    ]
    troubles: list[Exception] = list(UNSTABLE)
    dialer = MemoryDialer()
    dialer.listen("ws://x", lambda connection: None)

    class Refusing:
        @asynccontextmanager
        async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
            if (answer := answers.pop(0) if answers else None) is not None:
                raise answer
            async with dialer.dial(url) as connection:
                yield connection

    class Given:
        url, environment_id, executor_registration_id = "ws://x", "env", "reg"

    async def register() -> Given:
        if troubles:
            raise troubles.pop(0)
        registered.append(trio.current_time())
        return Given()

    lives = iter([4.0, 4.0, 20.0, 4.0])

    async def live(connection: PhysicalConnection, registration: object) -> DisconnectReason:
        await trio.sleep(next(lives, 1e9))
        return DisconnectReason.PEER_CLOSE

    with trio.move_on_after(1000):
        await keep_executor_connected(
            register, live, dialer=Refusing(), redial=Redial(quick_tries=0), spread=lambda: 1.0, report=events.append
        )

    waits = [event.retry_in_s for event in events if event.retry_in_s is not None]
    assert waits == [60, 2, 10.5, 8, 16, 30, 30, 1, 2], "40 and 7 were asked for; 20 s of life begin again"
    assert len(registered) == 2


async def test_an_address_that_had_worked_is_replaced_at_once_and_one_that_never_did_is_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Mutants: never at once; always at once, which is a tight loop with a registry that gives bad addresses."""
    events: list[UpkeepEvent] = []
    answers: list[int | None] = [404, None, 404, 404, 404]
    dialer = MemoryDialer()
    dialer.listen("ws://x", lambda connection: None)

    class Given:
        url, environment_id, executor_registration_id = "ws://x", "env", "reg"

    class Forgetful:
        @asynccontextmanager
        async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
            if (status := answers.pop(0) if answers else None) is not None:
                raise DialRefused("x", status, None)
            async with dialer.dial(url) as connection:
                yield connection

    async def register() -> Given:
        await trio.lowlevel.checkpoint()
        return Given()

    async def live(connection: PhysicalConnection, registration: object) -> DisconnectReason:
        await trio.sleep(20 if len(answers) == 3 else 1e9)
        return DisconnectReason.PEER_CLOSE

    with trio.move_on_after(1000):
        await keep_executor_connected(
            register, live, dialer=Forgetful(), redial=Redial(quick_tries=0), spread=lambda: 1.0, report=events.append
        )

    waits = [event.retry_in_s for event in events if event.retry_in_s is not None]
    assert waits == [1, 1, 0, 4, 8], "the second address worked for 20 s: only its refusal is followed at once"


@pytest.mark.parametrize("url", ["", "nonsense", "http://relay.example/x", "ws://", "ws://[::1/x?ticket=secret"])
async def test_an_address_that_can_never_be_dialled_is_not_dialled_again_but_another_one_asked_for(
    url: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Executors in the field redial such an address for ever (9.2, item 24). Mutant: keep the registration."""
    events: list[UpkeepEvent] = []
    memory = MemoryDialer()
    memory.listen("ws://good", lambda connection: None)

    class Given:
        environment_id, executor_registration_id = "env", "reg"

        def __init__(self, url: str) -> None:
            self.url = url

    urls = [url, url, "ws://good"]

    async def register() -> Given:
        await trio.lowlevel.checkpoint()
        return Given(urls.pop(0))

    class Dialer:
        @asynccontextmanager
        async def dial(self, url: str) -> AsyncGenerator[PhysicalConnection, None]:
            dialer = memory if url == "ws://good" else WebSocketDialer()
            async with dialer.dial(url) as connection:
                yield connection

    async def live(connection: PhysicalConnection, registration: object) -> DisconnectReason:
        await trio.sleep(1000)
        return DisconnectReason.PEER_CLOSE

    with trio.move_on_after(100):
        await keep_executor_connected(
            register, live, dialer=Dialer(), redial=Redial(quick_tries=0), spread=lambda: 1.0, report=events.append
        )

    assert [event.what for event in events] == ["registered", "dial failed"] * 2 + ["registered", "connected"]
    assert [event.retry_in_s for event in events if event.retry_in_s] == [1, 2], "no tight loop with a bad registry"
    assert "secret" not in str(events)


async def test_a_final_refusal_ends_the_attempts() -> None:
    async def register() -> None:
        raise RegistrarFailed("no", retryable=False)

    with pytest.raises(RegistrarFailed):
        await keep_executor_connected(register, serve, dialer=MemoryDialer())  # type: ignore[arg-type]


def answering(*answers: httpx2.Response | Exception, seen: list[httpx2.Request] | None = None) -> httpx2.MockTransport:
    left = list(answers)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        given = left.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    return httpx2.MockTransport(answer)


@asynccontextmanager
async def asking(transport: httpx2.AsyncBaseTransport) -> AsyncGenerator[RegistryClient, None]:
    async with open_registry_client(" https://registry.example/base// ", bearer(TOKEN), transport=transport) as client:
        yield client


async def test_a_request_has_the_shape_of_the_contract() -> None:
    seen: list[httpx2.Request] = []
    async with asking(answering(httpx2.Response(200, json={"valid": True}), seen=seen)) as client:
        assert await client.validate("my env", "reg", KEY.public_key, "secret")

    request = seen[0]
    assert (request.method, str(request.url)) == (
        "POST",
        "https://registry.example/base/cloud/environment/my%20env/validate",
    )
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"


async def test_redirects_are_not_followed() -> None:
    moved = httpx2.Response(302, headers={"location": "https://elsewhere.example/"})
    seen: list[httpx2.Request] = []
    async with asking(answering(moved, seen=seen)) as client:
        with pytest.raises(RegistryHttpFailed) as caught:
            await client.connect("env", KEY.public_key)

    assert caught.value.status == 302
    assert not caught.value.retryable
    assert len(seen) == 1


async def test_a_network_failure_is_retryable_and_shows_no_secret() -> None:
    failure = httpx2.ConnectError(f"could not send Bearer {TOKEN}")
    async with asking(answering(failure)) as client:
        with pytest.raises(RegistryRequestFailed) as caught:
            await client.connect("env", KEY.public_key)

    assert caught.value.retryable
    assert TOKEN not in str(caught.value) + repr(client)


async def test_a_registry_that_never_answers_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    class Silent(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await trio.sleep_forever()
            raise AssertionError

    async with asking(Silent()) as client:
        with pytest.raises(RegistryRequestFailed, match="timed out"):
            await client.register("env", KEY.public_key)
    assert trio.current_time() == pytest.approx(10.0)


async def test_retry_after_comes_with_the_error() -> None:
    busy = httpx2.Response(429, headers={"retry-after": "12"}, json={"error": {"code": "slow", "message": "down"}})
    async with asking(answering(busy)) as client:
        with pytest.raises(RegistryHttpFailed, match=r"\(429, slow\): down") as caught:
            await client.connect("env", KEY.public_key)

    assert (caught.value.retryable, caught.value.retry_after_s) == (True, 12.0)


VERDICTS = [
    ([httpx2.Response(200, json={"valid": True})], Verdict.VALID),
    ([httpx2.Response(200, json={"valid": False})], Verdict.REJECTED),
    ([httpx2.Response(401)], Verdict.CREDENTIALS_REFUSED),
    ([httpx2.Response(403)], Verdict.TROUBLE),
    ([httpx2.Response(404)], Verdict.TROUBLE),
    ([httpx2.Response(200, json={"valid": "yes"})], Verdict.TROUBLE),
    ([httpx2.ConnectError("x")], Verdict.TROUBLE),
    ([httpx2.Response(503), httpx2.Response(200, json={"valid": True})], Verdict.VALID),
    ([httpx2.Response(503)] * 3, Verdict.TROUBLE),
]


@pytest.mark.parametrize(("answers", "verdict"), VERDICTS, ids=range(len(VERDICTS)))
async def test_a_verdict_tells_bad_keys_from_a_registry_in_trouble(
    answers: list[httpx2.Response | Exception], verdict: Verdict, autojump_clock: trio.testing.MockClock
) -> None:
    async with asking(answering(*answers)) as client:
        assert await client.verdict("env", "reg", KEY.public_key, "secret") is verdict
    assert trio.current_time() <= 2


@pytest.mark.parametrize("base", ["", "  ", "ftp://x", "registry.example"])
async def test_an_unusable_registry_address_is_refused(base: str) -> None:
    with pytest.raises(RegistryConfigInvalid):
        async with open_registry_client(base, bearer(TOKEN)):
            pass


async def test_cancelling_a_question_at_each_step_leaves_the_client_usable() -> None:
    async with served(MemoryNetwork()) as (_, client, _dialer):
        await client.register("env", KEY.public_key)

        async def operation() -> None:
            with pytest.raises(RegistryError):
                await client.connect("env", KEY.public_key)

        assert await cancel_at_each_step(operation) >= 2
        await client.register("env", KEY.public_key)
