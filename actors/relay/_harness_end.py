"""The harness end: one stream on one physical connection, from dialling to the reset that gives its place back.

One of the two files of this package that know Noise.
"""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import trio

from actors.blocks import open_helpers
from actors.noise import Identity, Initiator, NoiseError, PublicKey, SecureChannel, stream_prologue
from actors.relay._connection import Dialer, PhysicalConnection
from actors.relay._errors import (
    ConnectionLost,
    DisconnectReason,
    FrameInvalid,
    FrameUndecodable,
    HandshakeFailed,
    RelayError,
    StreamFailed,
    StreamReset,
)
from actors.relay._frames import (
    Ack,
    Data,
    Handshake,
    Reset,
    UncheckedFrame,
    encode_handshake,
    encode_reset,
    encode_resume,
    parse,
)
from actors.relay._limits import RelayLimits
from actors.relay._outgoing import Outgoing
from actors.relay._schedule import LaneFailed
from actors.relay._stream import RelayStream

__all__ = ["StreamBundle", "open_harness_stream"]


class StreamBundle(Protocol):
    """What one physical connection attempt needs. Its parts belong together and are used once."""

    @property
    def websocket_url(self) -> str:
        """Where to dial; a secret from its first `?` on."""
        ...

    @property
    def environment_id(self) -> str:
        """The environment that the stream is bound to."""
        ...

    @property
    def executor_registration_id(self) -> str:
        """The registration that the stream is bound to."""
        ...

    @property
    def executor_public_key(self) -> PublicKey:
        """Who must answer."""
        ...

    @property
    def harness_key_authorization(self) -> str:
        """What the executor shows to the registry. A secret."""
        ...


@asynccontextmanager
async def open_harness_stream(
    bundle: StreamBundle,
    identity: Identity,
    *,
    dialer: Dialer,
    limits: RelayLimits | None = None,
    stream_id: str | None = None,
) -> AsyncGenerator[RelayStream, None]:
    """Dial, shake hands, and give the stream once its channel exists.

    Args:
        bundle: A fresh one: it is used up, also by an attempt that fails.
        identity: The harness's own keys.
        dialer: How to reach the rendezvous.
        limits: Bounds of the stream.
        stream_id: The stream's name; a random one by default, and better so.

    Raises:
        DialFailed: The rendezvous could not be reached.
        HandshakeFailed: The executor did not answer, or not as it should, or the connection ended before it could; the
            cause says more where there is one.
        StreamReset: The executor, or the router in its name, refused the stream.

    Cancelled:
        The executor is told by a reset, as far as that takes no longer than the close limit; nothing is left.
    """
    bounds = limits or RelayLimits()
    end = _HarnessEnd(bundle, identity, bounds, stream_id or str(uuid.uuid4()))
    async with dialer.dial(bundle.websocket_url) as connection, open_helpers() as nursery:
        stream = await end.shake_hands(connection)
        # Somebody has to write the goodbye, also when all around is cancelled.
        loops = trio.CancelScope(shield=True)
        nursery.start_soon(end.run_loops, connection, loops)
        try:
            yield stream
            with trio.move_on_after(bounds.close_s / 2):
                await end.flush()
        finally:
            stream.close()
            try:
                await end.say_goodbye()
            finally:
                loops.cancel()


class _HarnessEnd:
    """The loops of one stream."""

    def __init__(self, bundle: StreamBundle, identity: Identity, limits: RelayLimits, stream_id: str) -> None:
        self._limits = limits
        self._stream_id = stream_id
        self._authorization = bundle.harness_key_authorization.encode()
        try:
            prologue = stream_prologue(bundle.environment_id, bundle.executor_registration_id, stream_id)
            self._initiator = Initiator(identity, bundle.executor_public_key, prologue=prologue)
        except NoiseError as error:
            raise HandshakeFailed(f"failed to start Noise relay handshake: {error}") from error
        self._outgoing = Outgoing(limits, self._lane_failed)
        self._stream: RelayStream | None = None
        self._gap_opened = trio.Event()

    async def shake_hands(self, connection: PhysicalConnection) -> RelayStream:
        """Claim the stream id, send message 1 at once, and wait for the reply."""
        try:
            request = self._initiator.write_request(self._authorization)
        except NoiseError as error:
            raise HandshakeFailed(f"failed to start Noise relay handshake: {error}") from error
        with trio.move_on_after(self._limits.handshake_s) as scope:
            try:
                await connection.send(encode_resume(self._stream_id))
                await connection.send(encode_handshake(self._stream_id, request))
                channel = await self._wait_for_reply(connection)
            except (HandshakeFailed, trio.Cancelled):
                await self._take_back(connection)
                raise
            self._stream = RelayStream(self._stream_id, 1, channel, self._outgoing, self._limits)
            self._stream.send_ack()
            return self._stream
        assert scope.cancelled_caught, "nothing else leaves the block"
        raise HandshakeFailed(
            f"the executor did not answer the handshake within {self._limits.handshake_s:g} s", retryable=True
        )

    async def _take_back(self, connection: PhysicalConnection) -> None:
        """Tell the executor that nobody waits for its answer any more, within a bound."""
        with trio.move_on_after(self._limits.close_s / 4, shield=True), suppress(ConnectionLost):
            await connection.send(encode_reset(self._stream_id))

    async def _wait_for_reply(self, connection: PhysicalConnection) -> SecureChannel:
        while True:
            try:
                message = await connection.receive()
            except ConnectionLost as lost:
                if lost.reason is DisconnectReason.PEER_CLOSE:
                    raise HandshakeFailed(
                        "Noise relay websocket received close frame during handshake", retryable=True
                    ) from lost
                raise HandshakeFailed("Noise relay websocket ended during handshake", retryable=True) from lost
            if (reply := self._reply_in(message)) is not None:
                try:
                    return self._initiator.read_response(reply)
                except NoiseError as error:
                    raise HandshakeFailed(f"Noise relay handshake failed: {error}") from error

    def _reply_in(self, message: bytes | str) -> bytes | None:
        """Give the executor's answer, or None for a frame that is not ours or means nothing now."""
        unchecked = _parse(message, HandshakeFailed)
        if unchecked.stream_id != self._stream_id:
            return None
        try:
            body = unchecked.validate().body
        except FrameInvalid as error:
            raise HandshakeFailed("Noise relay received data before handshake completion") from error
        match body:
            case Handshake(payload):
                return payload
            case Data():
                raise HandshakeFailed("Noise relay received data before handshake completion")
            case Reset():
                raise StreamReset
            case _:
                return None

    async def run_loops(self, connection: PhysicalConnection, scope: trio.CancelScope) -> None:
        """Run everything that the stream needs until the scope is cancelled."""
        with scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, connection)
                nursery.start_soon(self._read, connection)
                nursery.start_soon(self._watch_gap)

    async def _write(self, connection: PhysicalConnection) -> None:
        """Write the stream's records until the connection is lost."""
        try:
            await self._outgoing.run(connection)
        except ConnectionLost as lost:
            self._end(lost)

    async def _read(self, connection: PhysicalConnection) -> None:
        """Take the stream's frames until it ends. What follows its end is nobody's."""
        try:
            while True:
                self._take(await connection.receive())
                await self._wait_for_consumer()
        except RelayError as error:
            self._end(error)

    def _take(self, message: bytes | str) -> None:
        stream = self._open_stream()
        unchecked = _parse(message, StreamFailed)
        if unchecked.stream_id != self._stream_id:
            return
        try:
            frame = unchecked.validate()
        except FrameInvalid as error:
            raise StreamFailed("Noise relay received invalid post-handshake frame") from error
        match frame.body:
            case Data(seq, payload):
                stream.take_record(seq, payload, trio.current_time())
                if stream.gap_deadline_s is not None:
                    self._gap_opened.set()
            case Reset():
                raise StreamReset
            case Handshake():
                raise StreamFailed("Noise relay received invalid post-handshake frame")
            case Ack():
                stream.take_ack(frame.ack)
            case _:
                pass

    async def _wait_for_consumer(self) -> None:
        """Read on only when there is room; a consumer that is stuck for the whole limit loses the connection."""
        with trio.move_on_after(self._limits.silence_s) as scope:
            await self._open_stream().wait_for_room()
        if scope.cancelled_caught:
            raise StreamFailed(f"the stream's messages were not received for {self._limits.silence_s:g} s")

    async def _watch_gap(self) -> None:
        """End the stream when a record does not come."""
        stream = self._open_stream()
        while stream.error is None:
            if (deadline_s := stream.gap_deadline_s) is None:
                await self._gap_opened.wait()
                self._gap_opened = trio.Event()
                continue
            await trio.sleep_until(deadline_s)
            try:
                stream.check_gap(trio.current_time())
            except StreamFailed as error:
                self._end(error)

    async def flush(self) -> None:
        """Wait until all that was sent is written, as long as the stream lives."""
        if self._open_stream().error is None:
            await self._outgoing.drain()

    async def say_goodbye(self) -> None:
        """Tell the executor by a reset that the stream's place is free, within a bound."""
        self._outgoing.schedule.put_reset(self._stream_id, was_known=True)
        with trio.move_on_after(self._limits.close_s / 4, shield=True):
            await self._outgoing.drain()

    def _open_stream(self) -> RelayStream:
        assert self._stream is not None, "the loops start after the handshake"
        return self._stream

    def _end(self, error: RelayError) -> None:
        self._open_stream().end(error)

    def _lane_failed(self, failed: LaneFailed) -> None:
        self._outgoing.schedule.close_lane(self._stream_id)
        self._end(StreamFailed(str(failed.error)))


def _parse(message: bytes | str, failure: type[HandshakeFailed | StreamFailed]) -> UncheckedFrame:
    if isinstance(message, str):
        raise failure("Noise relay transport expects binary protobuf frames")
    try:
        return parse(message)
    except FrameUndecodable as error:
        raise failure(f"failed to parse Noise relay frame: {error}") from error
