"""The whole rendezvous on real sockets: registry, router and both real ends, and everything that may go wrong."""

import gc
import json
import logging
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

import attrs
import psutil
import pytest
import trio
import trio.testing

from actors.noise import Identity
from actors.relay import (
    ConnectionLost,
    Data,
    DialRefused,
    DisconnectReason,
    ExecutorStream,
    Frame,
    PhysicalConnection,
    Redial,
    RelayLimits,
    RelayStream,
    Reset,
    Resume,
    StreamReset,
    UpkeepEvent,
    WebSocketConnection,
    WebSocketDialer,
    decode,
    encode,
    keep_executor_connected,
    open_harness_stream,
    serve_executor,
)
from actors.rendezvous import (
    Grant,
    RegistryAuthFailed,
    RegistryClient,
    RegistryConfigInvalid,
    RegistryHttpFailed,
    RegistryRequestFailed,
    Rendezvous,
    RendezvousLimits,
    bearer,
    open_registry_client,
    open_rendezvous,
)
from tests.support.cancelling import cancel_at_each_step
from tests.support.settling import until

HARNESS, EXECUTOR = Identity.generate(), Identity.generate()
TOKENS = {
    "executor": "executor-token-0123456789",
    "harness": "harness-token-0123456789",
    "limited": "limited-tok-0123456789",
}
GRANTS = [
    Grant(token=TOKENS["executor"], name="executor", may_connect=False),
    Grant(token=TOKENS["harness"], name="harness", may_register=False),
    Grant(token=TOKENS["limited"], name="limited", environments=frozenset({"mine"})),
]
# What a polite close may take: these tests are on the real clock.
FAST = RelayLimits(close_s=0.1)
DIALER = WebSocketDialer(limits=FAST)
SOON = Redial(first_s=0.02, cap_s=0.1)


async def echo(stream: ExecutorStream) -> None:
    while True:
        await stream.send(await stream.receive())


@attrs.define
class World:
    """A rendezvous, clients of both roles, and what happened to the executor."""

    rendezvous: Rendezvous
    executor: RegistryClient
    harness: RegistryClient
    nursery: trio.Nursery
    events: list[UpkeepEvent] = attrs.field(factory=list)

    def what(self) -> list[str]:
        return [event.what for event in self.events]

    async def until(self, what: str, times: int = 1) -> None:
        await until(lambda: self.what().count(what) >= times)

    async def run_executor(self, environment_id: str = "env", handler=echo, identity: Identity = EXECUTOR) -> None:
        async def serve(connection: PhysicalConnection, registration) -> DisconnectReason:
            registration_id = registration.executor_registration_id
            return await serve_executor(
                connection,
                identity,
                environment_id=environment_id,
                registration_id=registration_id,
                validate=partial(self.executor.verdict, environment_id, registration_id),
                handler=handler,
                limits=FAST,
            )

        register = partial(self.executor.register, environment_id, identity.public_key)
        keep = partial(keep_executor_connected, register, serve, dialer=DIALER, redial=SOON, report=self.events.append)
        self.nursery.start_soon(keep)
        await self.until("connected")

    @asynccontextmanager
    async def open(self, environment_id: str = "env") -> AsyncGenerator[RelayStream, None]:
        bundle = await self.harness.connect(environment_id, HARNESS.public_key)
        async with open_harness_stream(bundle, HARNESS, dialer=DIALER, limits=FAST) as stream:
            yield stream

    async def raw_harness(self, stack: AsyncExitStack, stream_id: str) -> PhysicalConnection:
        bundle = await self.harness.connect("env", HARNESS.public_key)
        connection = await stack.enter_async_context(DIALER.dial(bundle.websocket_url))
        await connection.send(encode(Frame(stream_id, Resume())))
        return connection

    async def raw_executor(self, stack: AsyncExitStack) -> PhysicalConnection:
        registration = await self.executor.register("env", EXECUTOR.public_key)
        return await stack.enter_async_context(DIALER.dial(registration.url))


@asynccontextmanager
async def world(limits: RendezvousLimits | None = None, **options) -> AsyncGenerator[World, None]:
    async with AsyncExitStack() as stack:
        bounds = limits or RendezvousLimits(close_s=0.1)
        rendezvous = await stack.enter_async_context(open_rendezvous(GRANTS, limits=bounds, **options))
        executor, harness = [
            await stack.enter_async_context(open_registry_client(rendezvous.url, bearer(TOKENS[role])))
            for role in ("executor", "harness")
        ]
        async with trio.open_nursery() as nursery:
            yield World(rendezvous, executor, harness, nursery)
            nursery.cancel_scope.cancel()


async def nothing_moves() -> None:
    """Wait until whoever could send is stopped: what is on its way between two sockets of one machine is quick."""
    await trio.testing.wait_all_tasks_blocked(0.05)


async def received(connection: PhysicalConnection) -> Frame:
    message = await connection.receive()
    assert isinstance(message, bytes)
    return decode(message)


async def test_a_harness_finds_its_executor_and_speaks_with_it() -> None:
    async with world() as w:
        await w.run_executor()
        async with w.open() as stream:
            await stream.send(b"hello")
            assert await stream.receive() == b"hello"
            assert w.rendezvous.statistics().streams == 1
        await until(lambda: w.rendezvous.statistics().streams == 0)

        counters = w.rendezvous.statistics().counters
        assert (counters.validations_passed, counters.validations_failed) == (1, 0)
        assert w.rendezvous.statistics().authorizations == 0


async def test_many_streams_and_large_messages_pass_whole() -> None:
    async with world() as w:
        await w.run_executor()

        async def one(number: int) -> None:
            async with w.open() as stream:
                message = bytes([number]) * (number * 300_000 + 1)
                await stream.send(message)
                assert await stream.receive() == message

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(one, number)

        assert w.rendezvous.statistics().counters.streams_reset_slow == 0


async def test_a_bundle_is_good_for_one_attempt() -> None:
    async with world() as w:
        await w.run_executor()
        bundle = await w.harness.connect("env", HARNESS.public_key)
        async with open_harness_stream(bundle, HARNESS, dialer=DIALER, limits=FAST):
            pass

        with pytest.raises(DialRefused) as caught:
            async with open_harness_stream(bundle, HARNESS, dialer=DIALER):
                pass
        assert caught.value.status == 401


async def test_an_authorization_stolen_by_another_harness_opens_nothing() -> None:
    async with world() as w:
        await w.run_executor()
        bundle = await w.harness.connect("env", HARNESS.public_key)

        with pytest.raises(StreamReset):
            async with open_harness_stream(bundle, Identity.generate(), dialer=DIALER, limits=FAST):
                pass
        assert w.rendezvous.statistics().counters.validations_failed == 1


@pytest.mark.parametrize(
    ("token", "action", "environment_id", "status"),
    [
        ("nobody-knows-this-token", "connect", "env", 401),
        (TOKENS["executor"], "connect", "env", 403),
        (TOKENS["harness"], "register", "env", 403),
        (TOKENS["limited"], "register", "other", 403),
    ],
)
async def test_without_the_right_token_nothing_is_to_be_had(
    token: str, action: str, environment_id: str, status: int
) -> None:
    async with world() as w, open_registry_client(w.rendezvous.url, bearer(token)) as client:
        with pytest.raises(RegistryAuthFailed) as caught:
            await getattr(client, action)(environment_id, HARNESS.public_key)

        assert caught.value.status == status
        assert not caught.value.retryable
        assert token not in str(caught.value)


async def test_an_environment_whose_executor_is_away_is_offline_and_may_be_tried_again() -> None:
    async with world() as w:
        with pytest.raises(RegistryHttpFailed) as caught:
            await w.harness.connect("env", HARNESS.public_key)

        assert (caught.value.status, caught.value.code) == (409, "environment_offline")
        assert caught.value.retryable


async def test_ids_with_any_printable_character_work_and_others_are_refused() -> None:
    async with world() as w:
        for environment_id in ("a/b", "a b", "café", "%2F", "...", "?x#y"):
            registration = await w.executor.register(environment_id, EXECUTOR.public_key)
            assert registration.environment_id == environment_id
        for environment_id in ("a\nb", "a\x00b", "x" * 257, "\u202eabc"):
            with pytest.raises(RegistryHttpFailed) as caught:
                await w.executor.register(environment_id, EXECUTOR.public_key)
            assert caught.value.status == 400
        for environment_id in ("", " ", ".", ".."):
            with pytest.raises(RegistryConfigInvalid):
                await w.executor.register(environment_id, EXECUTOR.public_key)


async def test_the_executors_end_is_told_to_its_harnesses_and_theirs_to_it() -> None:
    async with world() as w, AsyncExitStack() as stack:
        executor = await w.raw_executor(stack)
        harness = await w.raw_harness(stack, "s")
        assert await received(executor) == Frame("s", Resume())
        async with AsyncExitStack() as other:
            await w.raw_harness(other, "t")
            assert await received(executor) == Frame("t", Resume())

        assert isinstance((await received(executor)).body, Reset)
        assert isinstance(executor, WebSocketConnection)
        await executor.close()
        with pytest.raises(ConnectionLost) as caught:
            await harness.receive()
        assert caught.value.reason is DisconnectReason.PEER_CLOSE


async def test_a_stream_id_is_claimed_once_and_a_harness_speaks_for_its_own_only() -> None:
    async with world() as w, AsyncExitStack() as stack:
        executor = await w.raw_executor(stack)
        first = await w.raw_harness(stack, "s")
        await received(executor)
        second = await w.raw_harness(stack, "s")
        assert isinstance((await received(second)).body, Reset)
        with pytest.raises(ConnectionLost):
            await second.receive()

        third = await w.raw_harness(stack, "t")
        await received(executor)
        await third.send(encode(Frame("s", Reset("an attack"))))
        await third.send(encode(Frame("t", Data(0, b"mine"))))
        assert await received(executor) == Frame("t", Data(0, b"mine"))
        await first.send(encode(Frame("s", Data(0, b"still here"))))
        assert await received(executor) == Frame("s", Data(0, b"still here"))
        assert w.rendezvous.statistics().counters.frames_dropped == 1
        assert w.rendezvous.statistics().counters.streams_refused == 1


async def test_frames_pass_byte_for_byte_also_such_as_a_later_version_may_send() -> None:
    async with world() as w, AsyncExitStack() as stack:
        executor = await w.raw_executor(stack)
        harness = await w.raw_harness(stack, "s")
        await received(executor)
        odd = b"\x12\x01s" + b"\x08\x01" + b"\x32\x00" + b"\x18\x05" + b"\xf2\x06\x03new"
        await harness.send(odd)
        assert await executor.receive() == odd

        await executor.send(odd)
        assert await harness.receive() == odd


async def test_a_slow_harness_is_reset_and_nobody_else_waits() -> None:
    limits = RendezvousLimits(stream_bytes=2_000_000, close_s=0.1)
    async with world(limits) as w, AsyncExitStack() as stack:
        executor = await w.raw_executor(stack)
        slow, quick = await w.raw_harness(stack, "slow"), await w.raw_harness(stack, "quick")
        await received(executor)
        await received(executor)
        # A harness that never reads: its own buffers fill, then the router's bound is reached.
        for seq in range(400):
            await executor.send(encode(Frame("slow", Data(seq, bytes(60_000)))))
            if seq % 50 == 0:
                await executor.send(encode(Frame("quick", Data(seq, b"x"))))
                with trio.fail_after(5):
                    assert (await received(quick)).stream_id == "quick"

        assert await received(executor) == Frame("slow", Reset("noise_relay_protocol_error"))
        assert w.rendezvous.statistics().counters.streams_reset_slow == 1
        await until(lambda: w.rendezvous.statistics().buffered_bytes == 0)
        assert slow is not quick


async def test_a_slow_executor_stops_its_harnesses_one_by_one_and_nothing_is_lost() -> None:
    limits = RendezvousLimits(lane_bytes=200_000, close_s=0.1)
    async with world(limits) as w, AsyncExitStack() as stack:
        executor = await w.raw_executor(stack)
        harness = await w.raw_harness(stack, "s")
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while sent < 400:
                await harness.send(encode(Frame("s", Data(sent, bytes(60_000)))))
                sent += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            await nothing_moves()
            assert sent < 400, "the harness is no longer read from"
            await received(executor)
            for seq in range(400):
                frame = await received(executor)
                assert isinstance(frame.body, Data)
                assert frame.body.seq == seq


async def test_bulk_between_the_real_ends_is_stopped_by_its_reader_and_never_reset() -> None:
    async def flood(stream: ExecutorStream) -> None:
        await stream.receive()
        for number in range(60):
            await stream.send(bytes([number]) * 1_000_000)
        await stream.receive()

    async with world(RendezvousLimits(stream_bytes=6_000_000, close_s=0.1)) as w:
        await w.run_executor(handler=flood)
        async with w.open() as stream:
            await stream.send(b"go")
            for number in range(60):
                assert await stream.receive() == bytes([number]) * 1_000_000
                if number % 20 == 0:
                    await nothing_moves()

        assert w.rendezvous.statistics().counters.streams_reset_slow == 0


async def test_limits_have_a_policy_and_a_counter() -> None:
    limits = RendezvousLimits(max_streams_per_executor=1, max_streams_per_token=2, close_s=0.1, requests_per_s=5)
    async with world(limits) as w, AsyncExitStack() as stack:
        await w.raw_executor(stack)
        await w.raw_harness(stack, "s")
        await until(lambda: w.rendezvous.statistics().streams == 1)
        refused = await w.raw_harness(stack, "t")
        assert isinstance((await received(refused)).body, Reset)
        await until(lambda: w.rendezvous.statistics().streams_by_grant == {"harness": 1})

        async def hurry() -> None:
            for _ in range(300):
                await w.harness.connect("env", HARNESS.public_key)

        with pytest.raises(RegistryHttpFailed) as caught:
            await hurry()
        assert (caught.value.status, caught.value.retry_after_s) == (429, 1.0)
        assert w.rendezvous.statistics().counters.streams_refused == 1
        assert w.rendezvous.statistics().counters.requests_rate_limited == 1


async def test_too_many_connections_are_closed_unread_and_counted() -> None:
    async with world(RendezvousLimits(max_connections=2, close_s=0.1)) as w:
        host, port = w.rendezvous.url.removeprefix("http://").split(":")
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(await trio.open_tcp_stream(host, int(port)))
            await until(lambda: w.rendezvous.statistics().counters.connections == 2)
            with pytest.raises(RegistryRequestFailed):
                await w.harness.connect("env", HARNESS.public_key)

        assert w.rendezvous.statistics().counters.connections_refused >= 1


async def test_p12_dials_that_come_too_fast_are_told_when_to_come_again() -> None:
    async with world(RendezvousLimits(dials_per_s=1, close_s=0.1)) as w:
        registration = await w.executor.register("env", EXECUTOR.public_key)
        answers = []
        for _ in range(4):
            try:
                async with DIALER.dial(registration.url):
                    answers.append(101)
            except DialRefused as refused:
                answers.append((refused.status, refused.retry_after_s))

        assert answers == [101, 101, (503, 1.0), (503, 1.0)]
        assert w.rendezvous.statistics().counters.dials_rate_limited == 2


async def test_a_newer_connection_of_a_registration_takes_the_older_ones_place() -> None:
    async with world() as w, AsyncExitStack() as stack:
        registration = await w.executor.register("env", EXECUTOR.public_key)
        older = await stack.enter_async_context(DIALER.dial(registration.url))
        harness = await w.raw_harness(stack, "s")
        newer = await stack.enter_async_context(DIALER.dial(registration.url))
        assert await received(older) == Frame("s", Resume())
        with pytest.raises(ConnectionLost):
            await older.receive()
        with pytest.raises(ConnectionLost):
            await harness.receive()

        await w.raw_harness(stack, "t")
        assert await received(newer) == Frame("t", Resume())
        assert w.rendezvous.statistics().executors == 1
        assert w.rendezvous.statistics().counters.executors_replaced == 1


async def test_a_restart_loses_nothing_that_is_not_rebuilt_by_itself() -> None:
    async with world() as w:
        port = int(w.rendezvous.url.rsplit(":", 1)[1])
        await w.run_executor()
        async with w.open() as stream:
            await stream.send(b"before")
            assert await stream.receive() == b"before"
        first = w.rendezvous
        await drop(first)
        await w.until("disconnected")
        async with open_rendezvous(GRANTS, port=port, limits=RendezvousLimits(close_s=0.1)) as second:
            assert second.url == first.url
            await w.until("connected", 2)
            # The client's kept connection is the old one's still, which answers once more: not here, try again.
            with pytest.raises(RegistryHttpFailed) as caught:
                await w.harness.connect("env", HARNESS.public_key)
            assert caught.value.retryable
            async with w.open() as stream:
                await stream.send(b"after")
                assert await stream.receive() == b"after"

    assert w.what().count("registered") == 2
    assert any("HTTP status 404" in event.why for event in w.events)


async def drop(rendezvous: Rendezvous) -> None:
    """Make the port free and cut every connection, as the end of a process does."""
    await rendezvous.drain(within_s=0)
    for socket in list(rendezvous._router.sockets):
        await socket.close(1012)


async def test_draining_takes_nothing_new_and_lets_streams_end_by_themselves() -> None:
    async with world() as w:
        await w.run_executor()
        drained: list[bool] = []

        async def drain() -> None:
            drained.append(await w.rendezvous.drain(within_s=10))

        async with trio.open_nursery() as nursery, w.open() as stream:
            nursery.start_soon(drain)
            await until(lambda: w.rendezvous.statistics().draining)
            with pytest.raises(RegistryHttpFailed) as caught:
                await w.harness.connect("env", HARNESS.public_key)
            assert (caught.value.status, caught.value.retryable) == (503, True)
            await stream.send(b"still served")
            assert await stream.receive() == b"still served"
            assert not drained

        assert drained == [True]


async def test_p22_leaving_closes_everything_at_once_within_the_limit() -> None:
    async with trio.open_nursery() as nursery:
        async with world(RendezvousLimits(close_s=1.0)) as w:
            registration = await w.executor.register("env", EXECUTOR.public_key)
            nursery.start_soon(hold, registration.url, None)
            await until(lambda: w.rendezvous.statistics().executors == 1)
            for number in range(20):
                bundle = await w.harness.connect("env", HARNESS.public_key)
                nursery.start_soon(hold, bundle.websocket_url, f"s{number}")
            await until(lambda: w.rendezvous.statistics().streams == 20)
            left_s = trio.current_time()
        assert trio.current_time() - left_s < 10  # one after the other they would take 21


async def test_leaving_tells_every_peer_that_it_may_come_again() -> None:
    """Mutant: the tasks that write are not shielded, and are cancelled before the goodbye is out."""
    told: list[ConnectionLost] = []
    async with trio.open_nursery() as nursery, world() as w:
        registration = await w.executor.register("env", EXECUTOR.public_key)
        nursery.start_soon(hold, registration.url, None, told)
        await until(lambda: w.rendezvous.statistics().executors == 1)
        bundle = await w.harness.connect("env", HARNESS.public_key)
        nursery.start_soon(hold, bundle.websocket_url, "s", told)
        await until(lambda: w.rendezvous.statistics().streams == 1)

    assert [(lost.reason, lost.detail) for lost in told] == [(DisconnectReason.PEER_CLOSE, "close code 1001")] * 2


@contextmanager
def kept(told: list[ConnectionLost] | None) -> Iterator[None]:
    try:
        yield
    except ConnectionLost as lost:
        if told is not None:
            told.append(lost)


async def hold(url: str, stream_id: str | None, told: list[ConnectionLost] | None = None) -> None:
    """Be connected, read nothing, and go when the other side has gone."""
    async with DIALER.dial(url) as connection:
        with kept(told):
            if stream_id is not None:
                await connection.send(encode(Frame(stream_id, Resume())))
            while True:
                await connection.receive()


async def test_rubbish_on_the_port_harms_nobody() -> None:
    async with world(RendezvousLimits(head_s=0.2, idle_s=0.2, close_s=0.1)) as w:
        host, port = w.rendezvous.url.removeprefix("http://").split(":")
        rubbish = [
            b"\x16\x03\x01 this is no HTTP\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
            b"POST /cloud/environment/e/connect HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n"
            + b"x" * 70_000,
            b"POST /cloud/environment/e/connect HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf",
            b"GET /rendezvous/harness?ticket=x HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\r\n",
            b"GET /rendezvous/elsewhere HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\r\n",
            b"",
        ]
        answers = []
        for data in rubbish:
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                answer = b""
                try:
                    await stream.send_all(data)
                    with trio.fail_after(5):
                        async for piece in stream:
                            answer += piece
                except trio.BrokenResourceError:
                    pass
                answers.append(answer[:12])

        assert answers[:2] == [b"HTTP/1.1 400", b"HTTP/1.1 404"]
        assert answers[2] in (b"HTTP/1.1 431", b""), "what it had not read takes the answer away"
        assert answers[4:] == [b"", b"HTTP/1.1 401", b"HTTP/1.1 404", b""]
        assert w.rendezvous.statistics().counters.connections_failed == 0
        await w.executor.register("env", EXECUTOR.public_key)


async def test_health_needs_no_token_and_tells_nothing() -> None:
    async with world() as w:
        host, port = w.rendezvous.url.removeprefix("http://").split(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            answer = b"".join([piece async for piece in stream])

        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"status": "ok"}


async def test_no_secret_is_in_any_text_log_repr_or_answer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    async with world() as w:
        await w.run_executor()
        bundle = await w.harness.connect("env", HARNESS.public_key)
        secrets = [*TOKENS.values(), bundle.harness_key_authorization, bundle.websocket_url.partition("=")[2]]
        async with open_harness_stream(bundle, HARNESS, dialer=DIALER, limits=FAST) as stream:
            await stream.send(b"x")
            shown += [repr(stream), repr(bundle), repr(w.rendezvous), str(w.rendezvous.statistics()), repr(w.harness)]
        try:
            async with open_harness_stream(bundle, HARNESS, dialer=DIALER):
                pass
        except DialRefused as refused:
            shown.append(str(refused))
        shown += map(str, w.events)
    text = "".join(shown) + "".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpcore2", "hpack"))
    )

    for secret in secrets:
        assert secret not in text


async def test_cancelling_at_each_step_leaves_no_task_file_or_connection() -> None:
    process = psutil.Process(os.getpid())

    async def operation() -> None:
        async with open_rendezvous(GRANTS, limits=RendezvousLimits(close_s=0.1)):
            await trio.lowlevel.checkpoint()

    await operation()
    tasks, files = trio.lowlevel.current_statistics().tasks_living, process.num_fds()

    async def check() -> None:
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        gc.collect()
        assert process.num_fds() == files

    assert await cancel_at_each_step(operation, check=check) >= 3


async def test_a_whole_life_leaves_no_task_or_file() -> None:
    process = psutil.Process(os.getpid())
    async with world() as w:
        assert w is not None
    tasks, files = trio.lowlevel.current_statistics().tasks_living, process.num_fds()
    for _ in range(3):
        async with world() as w:
            await w.run_executor()
            async with w.open() as stream:
                await stream.send(b"hello")
                await stream.receive()
    gc.collect()

    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert process.num_fds() <= files


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_rendezvous(GRANTS):
            raise KeyError("mine")
