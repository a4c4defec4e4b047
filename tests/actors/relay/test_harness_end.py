"""The harness end: one stream, from dialling to the reset that gives its place back."""

import pytest
import trio
import trio.testing

from actors.noise import Identity, NoiseError
from actors.relay import (
    Ack,
    ConnectionLost,
    Data,
    DialFailed,
    DisconnectReason,
    ExecutorStream,
    Frame,
    Handshake,
    HandshakeFailed,
    Heartbeat,
    MessageTooLarge,
    RelayError,
    RelayLimits,
    Reset,
    Resume,
    StreamClosed,
    StreamFailed,
    StreamReset,
    TraceContext,
    Verdict,
    decode,
    encode,
    open_harness_stream,
)
from actors.relay.testing import MemoryConnection, MemoryDialer
from tests.actors.relay.ends import AUTHORIZATION, HARNESS, URL, Bundle, datas, echo, world
from tests.support.cancelling import cancel_at_each_step


async def test_a_message_goes_there_and_back_and_the_router_sees_no_word_of_it() -> None:
    async with world() as w:
        async with w.open() as stream:
            await stream.send(b'{"method": "process/start"}')
            assert await stream.receive() == b'{"method": "process/start"}'

        records = datas(w.router.forwarded)
        assert len(records) == 2
        for frame in w.router.forwarded:
            assert b"process" not in frame
            assert AUTHORIZATION.encode() not in frame


async def test_the_first_frames_are_the_claim_and_the_handshake_and_nothing_else_before_the_reply() -> None:
    sent: list[MemoryConnection] = []
    dialer = MemoryDialer()
    dialer.listen(URL, sent.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_forever, dialer)
        await trio.testing.wait_all_tasks_blocked()
        frames = [decode(await sent[0].receive()) for _ in range(2)]  # type: ignore[arg-type]
        with pytest.raises(trio.WouldBlock):
            sent[0]._receiving.receive_nowait()
        nursery.cancel_scope.cancel()

    assert frames[0].body == Resume()
    assert isinstance(frames[1].body, Handshake)
    assert frames[0].stream_id == frames[1].stream_id


async def run_forever(dialer: MemoryDialer) -> None:
    async with open_harness_stream(Bundle(), HARNESS, dialer=dialer):
        await trio.sleep_forever()


BEFORE_REPLY = [
    (b"\xff\xff", HandshakeFailed, "failed to parse Noise relay frame: "),
    ("text", HandshakeFailed, "Noise relay transport expects binary protobuf frames"),
    (Data(0, b"x"), HandshakeFailed, "Noise relay received data before handshake completion"),
    (b"\x08\x02\x12\x01s\x4a\x00", HandshakeFailed, "Noise relay received data before handshake completion"),
    (Reset("why"), StreamReset, "Noise relay stream reset"),
    (Handshake(b"nonsense"), HandshakeFailed, "Noise relay handshake failed: "),
]


@pytest.mark.parametrize(("answer", "kind", "text"), BEFORE_REPLY, ids=range(len(BEFORE_REPLY)))
async def test_what_ends_a_handshake_says_so_in_the_words_of_the_protocol(
    answer: object, kind: type[RelayError], text: str
) -> None:
    with pytest.raises(kind) as caught:
        await answered_with(answer)

    assert str(caught.value).startswith(text)
    assert "why" not in str(caught.value)


async def answered_with(answer: object) -> None:
    dialer = MemoryDialer()
    async with trio.open_nursery() as nursery:

        async def reply(connection: MemoryConnection) -> None:
            for ignored in (Ack(), Resume(), Heartbeat()):
                await connection.send(encode(Frame("s", ignored)))
            await connection.send(encode(Frame("other", Data(0, b"x"))))
            if isinstance(answer, bytes):
                await connection.send(answer)
            elif isinstance(answer, str):
                await connection.send_text(answer)
            else:
                await connection.send(encode(Frame("s", answer)))  # type: ignore[arg-type]

        dialer.listen(URL, lambda connection: nursery.start_soon(reply, connection))
        error: RelayError | None = None
        try:
            async with open_harness_stream(Bundle(), HARNESS, dialer=dialer, stream_id="s"):
                pytest.fail("the handshake must not succeed")
        except RelayError as raised:
            error = raised
    assert error is not None
    raise error


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (DisconnectReason.PEER_CLOSE, "Noise relay websocket received close frame during handshake"),
        (DisconnectReason.READ_ERROR, "Noise relay websocket ended during handshake"),
    ],
)
async def test_a_connection_that_ends_during_the_handshake_may_be_tried_again(
    reason: DisconnectReason, text: str
) -> None:
    class Ends(MemoryConnection):
        async def receive(self) -> bytes | str:
            raise ConnectionLost(reason, "")

    dialer = MemoryDialer()
    dialer.listen(URL, lambda connection: None)
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def dial(url: str):
        async with MemoryDialer.dial(dialer, url) as near:
            near.__class__ = Ends
            yield near

    dialer.dial = dial  # type: ignore[method-assign]
    with pytest.raises(HandshakeFailed) as caught:
        async with open_harness_stream(Bundle(), HARNESS, dialer=dialer):
            pass

    assert str(caught.value) == text
    assert caught.value.retryable


async def test_an_executor_that_never_answers_ends_the_wait(autojump_clock: trio.testing.MockClock) -> None:
    dialer = MemoryDialer()
    dialer.listen(URL, lambda connection: None)
    began_s = trio.current_time()

    with pytest.raises(HandshakeFailed, match="did not answer the handshake within 20 s") as caught:
        async with open_harness_stream(Bundle(), HARNESS, dialer=dialer):
            pass
    assert caught.value.retryable
    assert trio.current_time() - began_s < 22


async def test_the_wrong_executor_cannot_read_the_handshake() -> None:
    async with world() as w:
        with pytest.raises(StreamReset):
            async with w.open(bundle=Bundle(executor_public_key=Identity.generate().public_key)):
                pass


async def test_a_stream_id_binds_the_handshake_so_it_fails_on_another_stream() -> None:
    async with world() as w:
        with pytest.raises(StreamReset):
            async with w.open(bundle=Bundle(executor_registration_id="another")):
                pass
        assert w.end.statistics().failures_counted == 1


async def test_nobody_to_dial_says_where_without_the_ticket() -> None:
    with pytest.raises(DialFailed) as caught:
        async with open_harness_stream(Bundle(), HARNESS, dialer=MemoryDialer()):
            pass

    assert "ws://relay/harness" in str(caught.value)
    assert "ticket" not in str(caught.value)


async def test_refused_credentials_of_the_executor_are_told_to_the_harness() -> None:
    async def refuse(key: object, authorization: str) -> Verdict:
        return Verdict.CREDENTIALS_REFUSED

    async with world(validate=refuse) as w:
        with pytest.raises(HandshakeFailed, match="environment registry rejected executor credentials") as caught:
            async with w.open():
                pass
    assert isinstance(caught.value.__cause__, NoiseError)


AFTER_REPLY = [
    (b"\xff\xff", "failed to parse Noise relay frame: "),
    ("text", "Noise relay transport expects binary protobuf frames"),
    (Handshake(b"x"), "Noise relay received invalid post-handshake frame"),
    (b"\x08\x02\x12\x01s\x4a\x00", "Noise relay received invalid post-handshake frame"),
    (Data(65, b"x"), "Noise relay ciphertext exceeds reorder window"),
    (Data(0, b"not a record of this channel"), "Noise channel transport failed: "),
    (Ack(), "Noise relay acknowledgement 5 is beyond the 1 records sent"),
]


@pytest.mark.parametrize(("bad", "text"), AFTER_REPLY, ids=range(len(AFTER_REPLY)))
async def test_what_ends_a_stream_after_the_handshake_says_so(bad: object, text: str) -> None:
    async def one(stream: ExecutorStream) -> None:
        await stream.receive()
        await trio.sleep_forever()

    async with world(one) as w, w.open(stream_id="s") as stream:
        await stream.send(b"hi")
        await trio.testing.wait_all_tasks_blocked()
        assert w.harness is not None
        if isinstance(bad, bytes):
            await w.harness.send(bad)
        elif isinstance(bad, str):
            await w.harness.send_text(bad)
        else:
            await w.harness.send(encode(Frame("s", bad, 5)))  # type: ignore[arg-type]
        with pytest.raises(StreamFailed) as caught:
            await stream.receive()
        with pytest.raises(StreamFailed):
            await stream.send(b"more")

    assert str(caught.value).startswith(text)


async def test_frames_of_other_streams_and_of_no_meaning_are_ignored() -> None:
    async with world() as w, w.open(stream_id="s") as stream:
        assert w.harness is not None
        for frame in (Frame("x", Data(0, b"x")), Frame("x", Reset("x")), Frame("s", Resume()), Frame("s", Heartbeat())):
            await w.harness.send(encode(frame))
        await stream.send(b"hi")

        assert await stream.receive() == b"hi"


async def test_a_reset_after_the_handshake_is_given_after_what_came_before_it() -> None:
    async def handler(stream: ExecutorStream) -> None:
        await stream.send(b"one")
        await stream.send(b"two")

    async with world(handler) as w, w.open() as stream:
        await trio.testing.wait_all_tasks_blocked()

        assert [await stream.receive(), await stream.receive()] == [b"one", b"two"]
        with pytest.raises(StreamReset, match=r"^Noise relay stream reset$"):
            await stream.receive()


async def test_a_lost_connection_ends_the_stream_with_its_reason() -> None:
    async with world() as w, w.open() as stream:
        await trio.testing.wait_all_tasks_blocked()
        w.router.cut()

        with pytest.raises(ConnectionLost) as caught:
            await stream.receive()
        assert caught.value.reason is DisconnectReason.PEER_CLOSE


async def test_81_only_the_first_record_of_a_request_has_its_trace_context() -> None:
    async with world() as w, w.open(stream_id="s") as stream:
        await stream.send(b"fs/readFile" + bytes(100_000), trace=TraceContext("00-abc-01", "k=v"))
        await stream.receive()

        frames = [decode(frame) for frame in w.router.forwarded]
        requests = [frame for frame in frames if isinstance(frame.body, Data)][:2]
        assert requests[0].trace == TraceContext("00-abc-01", "k=v")
        assert requests[1].trace is None
        assert all(b"fs/readFile" not in frame for frame in w.router.forwarded)
        assert all(frame.trace is None for frame in frames[-3:])


async def test_85_a_consumer_that_is_stuck_for_the_whole_limit_loses_the_stream(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def flood(stream: ExecutorStream) -> None:
        while True:
            await stream.send(bytes(50_000))

    limits = RelayLimits(queue_bytes=100_000, window_bytes=10_000_000, lane_bytes=10_000_000)
    async with world(flood, limits=limits) as w, w.open() as stream:
        await trio.sleep(59)
        assert stream.error is None
        await trio.sleep(2)

        assert isinstance(stream.error, StreamFailed)
        assert "were not received for 60 s" in str(stream.error)


async def test_a_slow_consumer_stops_the_sender_and_memory_stays_bounded() -> None:
    sent = 0

    async def flood(stream: ExecutorStream) -> None:
        nonlocal sent
        while True:
            await stream.send(bytes(50_000))
            sent += 1

    limits = RelayLimits(window_bytes=200_000, lane_bytes=100_000)
    async with world(flood, limits=limits) as w, w.open() as stream:
        await trio.testing.wait_all_tasks_blocked()
        held = stream.statistics().queued_bytes
        assert 100_000 <= held <= 600_000, "backlog, window, and what flew before the first acknowledgement"
        before = sent
        await trio.testing.wait_all_tasks_blocked()
        assert sent == before
        for _ in range(100):
            await stream.receive()

        assert stream.statistics().queued_bytes_peak <= 600_000
        assert w.end.statistics().streams == 1


async def test_p11_too_large_a_request_is_refused_before_anything_is_sent() -> None:
    async with world() as w, w.open(limits=RelayLimits(max_message_bytes=1000)) as stream:
        with pytest.raises(MessageTooLarge):
            await stream.send(bytes(1001))
        with pytest.raises(MessageTooLarge):
            await stream.send(b"")
        await stream.send(bytes(1000))

        assert await stream.receive() == bytes(1000)


async def test_leaving_gives_the_place_back_by_a_reset_after_what_was_sent() -> None:
    got: list[bytes] = []

    async def handler(stream: ExecutorStream) -> None:
        while True:
            got.append(await stream.receive())

    async with world(handler) as w:
        async with w.open() as stream:
            await stream.send(b"last words")
        await trio.testing.wait_all_tasks_blocked()

        assert got == [b"last words"]
        assert w.end.statistics().streams == 0
        assert isinstance(decode(w.router.forwarded[-1]).body, Reset)
    with pytest.raises(StreamClosed):
        await stream.send(b"after")
    with pytest.raises(StreamClosed):
        await stream.receive()


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    async with world() as w:
        with pytest.raises(KeyError, match="mine"):
            async with w.open():
                raise KeyError("mine")
        await trio.testing.wait_all_tasks_blocked()

        assert w.end.statistics().streams == 0


async def test_cancelling_at_each_step_leaves_nothing_on_either_end() -> None:
    async with world(echo) as w:
        await trio.testing.wait_all_tasks_blocked()
        tasks = trio.lowlevel.current_statistics().tasks_living

        async def operation() -> None:
            async with w.open() as stream:
                await stream.send(b"hi")
                await stream.receive()

        async def check() -> None:
            assert w.end.statistics().streams == 0
            assert w.end.statistics().validations == 0
            assert trio.lowlevel.current_statistics().tasks_living == tasks

        assert await cancel_at_each_step(operation, check=check) > 5


async def test_a_cancelled_send_or_receive_loses_nothing() -> None:
    async with world() as w, w.open() as stream:
        await stream.send(b"one")
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.receive()
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.send(b"never")
        await stream.send(b"two")

        assert [await stream.receive(), await stream.receive()] == [b"one", b"two"]


async def test_a_message_is_sent_at_once_or_refused_at_once_and_then_nothing_of_it_is_queued() -> None:
    async with world(limits=RelayLimits(lane_bytes=100)) as w, w.open() as stream:
        stream.send_nowait(b"x" * 100)
        with pytest.raises(trio.WouldBlock):
            stream.send_nowait(b"y")
        with pytest.raises(MessageTooLarge):
            stream.send_nowait(b"")

        assert stream.is_idle
        assert await stream.receive() == b"x" * 100
        stream.send_nowait(b"z")
        assert await stream.receive() == b"z"
        stream.close()
        with pytest.raises(StreamClosed):
            stream.send_nowait(b"late")
