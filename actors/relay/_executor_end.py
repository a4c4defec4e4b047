"""The executor end: many streams on one physical connection. One of the two files of this package that know Noise.

One task reads and never waits for a stream, one writes, one watches for gaps; each validation and each stream's
handler has a task of its own. What to do is decided in `_admission`; here it is done.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from random import SystemRandom

import trio

from actors.noise import HandshakeRequest, Identity, NoiseError, PublicKey, Responder, SecureChannel, stream_prologue
from actors.relay._admission import Admission, Cause, Refusal, Ruling, Verdict
from actors.relay._connection import PhysicalConnection
from actors.relay._errors import (
    ConnectionLost,
    DisconnectReason,
    FrameInvalid,
    FrameUndecodable,
    ReassemblyFull,
    RelayError,
    StreamFailed,
    StreamReset,
)
from actors.relay._frames import Ack, Frame, Handshake, Reset, encode_handshake, parse
from actors.relay._limits import RelayLimits
from actors.relay._outgoing import Outgoing
from actors.relay._schedule import LaneFailed
from actors.relay._statistics import ExecutorStatistics
from actors.relay._stream import RelayStream

__all__ = ["ExecutorEnd", "ExecutorStream", "Handler", "Validator", "serve_executor"]

_DRAW = SystemRandom().random


class ExecutorStream(RelayStream):
    """A stream as the executor's handler gets it. Until its first message has come, its harness is only asserted."""

    harness_public_key: PublicKey
    """Who asked, and was found good by the registry."""
    environment_id: str
    """The environment that the stream is bound to."""
    executor_registration_id: str
    """The registration that the stream is bound to."""


Validator = Callable[[PublicKey, str], Awaitable[Verdict]]
"""Asks the registry about a harness key and its authorization. It is cancelled when its time is up."""
Handler = Callable[[ExecutorStream], Awaitable[None]]
"""Serves one stream. A `RelayError` ends the stream only; any other exception ends the connection, as in trio's
`serve_listeners`. When it returns the stream is reset."""


async def serve_executor(
    connection: PhysicalConnection,
    identity: Identity,
    *,
    environment_id: str,
    registration_id: str,
    validate: Validator,
    handler: Handler,
    limits: RelayLimits | None = None,
    draw: Callable[[], float] = _DRAW,
    task_status: trio.TaskStatus["ExecutorEnd"] = trio.TASK_STATUS_IGNORED,
) -> DisconnectReason:
    """Serve streams on a physical connection until it ends, and tell why it did.

    Args:
        connection: One that is open; whoever opened it closes it.
        identity: The executor's own keys.
        environment_id: Part of what every stream is bound to, as is ``registration_id``.
        validate: Asks the registry about a harness.
        handler: Serves one stream.
        limits: Bounds.
        draw: Random numbers from 0 to 1 that nobody can foretell, for lots among handshakes while too many fail.
        task_status: Told the running end, for its statistics.

    Cancelled:
        Every stream ends with its handler cancelled; nothing more is written.
    """
    end = ExecutorEnd(connection, identity, environment_id, registration_id, validate, handler, limits, draw)
    task_status.started(end)
    return await end.run()


class ExecutorEnd:
    """One physical connection of an executor. Started by `serve_executor`."""

    def __init__(
        self,
        connection: PhysicalConnection,
        identity: Identity,
        environment_id: str,
        registration_id: str,
        validate: Validator,
        handler: Handler,
        limits: RelayLimits | None,
        draw: Callable[[], float] = _DRAW,
    ) -> None:
        self._connection, self._identity = connection, identity
        self._environment_id, self._registration_id = environment_id, registration_id
        self._validate, self._handler, self._draw = validate, handler, draw
        self._limits = limits or RelayLimits()
        self._admission = Admission(self._limits)
        self._outgoing = Outgoing(self._limits, self._lane_failed)
        # Same keys as `_admission.active`, except inside one breath.
        self._streams: dict[str, ExecutorStream] = {}
        # By number: what to cancel when nobody waits for the answer any more.
        self._validations: dict[int, trio.CancelScope] = {}
        # What the streams held at the last count, and what has come since: never less than what they hold now.
        self._held_bytes_most = 0
        self._frames_dropped = 0
        self._gap_opened = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._lost: ConnectionLost | None = None

    def statistics(self) -> ExecutorStatistics:
        """Tell what the connection carries and has refused."""
        return ExecutorStatistics(
            streams=len(self._streams),
            validations=len(self._validations),
            held_bytes=self._count_held_bytes(),
            unsent_bytes=self._outgoing.schedule.queued_bytes,
            frames_dropped=self._frames_dropped,
            resets_refused=self._outgoing.schedule.resets_refused,
            failures_counted=self._admission.failures_counted,
            looked_by_lot=self._admission.looked_by_lot,
            refusals=dict(self._admission.refusals),
        )

    async def run(self) -> DisconnectReason:
        """Serve until the connection ends. Cancelled: as `serve_executor`."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._run_loops)
        finally:
            self._end_all(ConnectionLost(DisconnectReason.LOCAL_SHUTDOWN, ""))
        assert self._lost is not None, "the loops end with the connection"
        return self._lost.reason

    async def _run_loops(self) -> None:
        """Run the loops until the connection is lost; then let the handlers end by themselves, for a moment."""
        async with trio.open_nursery() as loops:
            for loop in (self._read, partial(self._outgoing.run, self._connection), self._watch_gaps):
                loops.start_soon(self._until_lost, loop, loops.cancel_scope)
        assert self._nursery is not None, "the loops run in it"
        assert self._lost is not None, "nothing else ends the loops"
        self._nursery.cancel_scope.deadline = trio.current_time() + self._limits.close_s
        self._end_all(self._lost)

    async def _until_lost(self, loop: Callable[[], Awaitable[None]], loops: trio.CancelScope) -> None:
        try:
            await loop()
        except ConnectionLost as lost:
            self._lost = self._lost or lost
            loops.cancel()

    def _end_all(self, error: ConnectionLost) -> None:
        for validation in self._validations.values():
            validation.cancel()
        for stream in list(self._streams.values()):
            stream.end(error)
        self._outgoing.all_closed()

    async def _read(self) -> None:
        while True:
            message = await self._connection.receive()
            try:
                unchecked = parse(message) if isinstance(message, bytes) else None
                if unchecked is None:
                    self._frames_dropped += 1
                elif (record := unchecked.record()) is not None:
                    self._take_record(*record)
                else:
                    self._take(unchecked.validate())
            except (FrameUndecodable, FrameInvalid):
                self._frames_dropped += 1

    def _take(self, frame: Frame) -> None:
        """Do what one frame asks for, without waiting for anything."""
        match frame.body:
            case Handshake(payload):
                self._take_handshake(frame.stream_id, payload)
            case Reset():
                self._take_reset(frame.stream_id)
            case Ack():
                if (stream := self._streams.get(frame.stream_id)) is not None:
                    self._guarded(stream, partial(stream.take_ack, frame.ack))
            case _:
                pass  # Nothing that an executor heeds.

    def _take_record(self, stream_id: str, seq: int, payload: bytes) -> None:
        now_s = trio.current_time()
        if (stream := self._streams.get(stream_id)) is None:
            refusal = self._admission.data(stream_id, now_s)
            assert refusal is not None, "every active stream is there"
            self._refuse(stream_id, refusal)
            return
        try:
            stream.take_record(seq, payload, now_s)
        except StreamFailed as error:
            self._end_stream(stream, error)
        self._held_bytes_most += len(payload)
        if stream.error is None and self._held_bytes_most > self._limits.connection_bytes:
            self._check_memory(stream)
        if stream.gap_deadline_s is not None:
            self._gap_opened.set()

    def _check_memory(self, stream: ExecutorStream) -> None:
        """End the stream whose record went over what the whole connection may hold."""
        if (held := self._count_held_bytes()) > self._limits.connection_bytes:
            self._end_stream(stream, StreamFailed(str(ReassemblyFull(held, self._limits.connection_bytes))))

    def _count_held_bytes(self) -> int:
        self._held_bytes_most = sum(stream.held_bytes for stream in self._streams.values())
        return self._held_bytes_most

    def _guarded(self, stream: ExecutorStream, step: Callable[[], None]) -> None:
        try:
            step()
        except StreamFailed as error:
            self._end_stream(stream, error)

    def _take_reset(self, stream_id: str) -> None:
        self._cancel_validation(self._admission.reset(stream_id, trio.current_time()))
        if (stream := self._streams.pop(stream_id, None)) is not None:
            stream.end(StreamReset())
            self._outgoing.schedule.close_lane(stream_id)

    def _take_handshake(self, stream_id: str, message: bytes) -> None:
        now_s = trio.current_time()
        if not self._outgoing.schedule.has_room_for_handshake:
            self._admission.refuse(Cause.CONTROL_FULL)
            return
        if (refusal := self._admission.handshake(stream_id, now_s, self._draw())) is not None:
            self._refuse(stream_id, refusal)
            return
        try:
            prologue = stream_prologue(self._environment_id, self._registration_id, stream_id)
            responder = Responder(
                self._identity, prologue=prologue, max_payload_bytes=self._limits.max_authorization_bytes
            )
            request = responder.read_request(message)
        except NoiseError:
            self._refuse(stream_id, self._admission.unreadable(now_s))
            return
        match self._admission.authorization(stream_id, request.payload, now_s):
            case Refusal() as refusal:
                self._refuse(stream_id, refusal)
            case Ruling(number):
                assert self._nursery is not None, "frames are read inside it"
                scope = self._validations[number] = trio.CancelScope()
                self._nursery.start_soon(self._ask_registry, stream_id, number, scope, responder, request)

    async def _ask_registry(
        self, stream_id: str, number: int, scope: trio.CancelScope, responder: Responder, request: HandshakeRequest
    ) -> None:
        """Ask about one harness, beside everything else, and act on the answer."""
        verdict = Verdict.TROUBLE
        scope.deadline = trio.current_time() + self._limits.validation_s
        try:
            with scope:
                verdict = await self._verdict_on(request)
        finally:
            del self._validations[number]
        if self._lost is not None:
            return
        match self._admission.validated(stream_id, number, verdict, trio.current_time()):
            case Ruling():
                self._accept(stream_id, number, responder, request.public_key)
            case Refusal(cause) as refusal:
                if cause is Cause.CREDENTIALS_REFUSED:
                    self._tell_credentials_refused(stream_id, responder)
                self._refuse(stream_id, refusal)
            case None:
                pass  # Reset, repeated or overtaken by data in the meantime.

    async def _verdict_on(self, request: HandshakeRequest) -> Verdict:
        try:
            return await self._validate(request.public_key, request.authorization)
        except Exception:  # Whatever an injected validator raises is the registry's trouble, and counted as that.
            return Verdict.TROUBLE

    def _accept(self, stream_id: str, number: int, responder: Responder, public_key: PublicKey) -> None:
        try:
            reply, channel = responder.accept()
        except NoiseError:
            self._refuse(stream_id, self._admission.reply_failed(trio.current_time()))
            return
        self._admission.activate(stream_id, number)
        self._outgoing.schedule.put_reply(stream_id, encode_handshake(stream_id, reply))
        stream = self._streams[stream_id] = self._new_stream(stream_id, number, channel, public_key)
        stream.send_ack()
        assert self._nursery is not None, "validations run inside it"
        self._nursery.start_soon(self._run_handler, stream)

    def _new_stream(self, stream_id: str, number: int, channel: SecureChannel, key: PublicKey) -> ExecutorStream:
        stream = ExecutorStream(stream_id, number, channel, self._outgoing, self._limits)
        stream.harness_public_key = key
        stream.environment_id = self._environment_id
        stream.executor_registration_id = self._registration_id
        return stream

    def _tell_credentials_refused(self, stream_id: str, responder: Responder) -> None:
        """Tell the harness, inside the encrypted reply, that it is not its own key that was refused."""
        try:
            reply = responder.reject_credentials()
        except NoiseError:
            return
        self._outgoing.schedule.put_reply(stream_id, encode_handshake(stream_id, reply))
        self._outgoing.wake()

    async def _run_handler(self, stream: ExecutorStream) -> None:
        try:
            await self._handler(stream)
            # The handler's last words go out before the reset that follows them.
            with trio.move_on_after(self._limits.close_s):
                await stream.wait_until_written()
        except RelayError:
            pass  # The stream's own end, or an ending that the handler chose: the same to the peer.
        finally:
            stream.close()
            self._forget(stream)

    def _end_stream(self, stream: ExecutorStream, error: RelayError) -> None:
        stream.end(error)
        self._forget(stream)

    def _forget(self, stream: ExecutorStream) -> None:
        """Drop a stream that ended on this side, and tell the peer; a later one of the same id is left alone."""
        if self._admission.ended(stream.stream_id, stream.number):
            del self._streams[stream.stream_id]
            self._outgoing.schedule.put_reset(stream.stream_id, was_known=True)
            self._outgoing.wake()

    def _lane_failed(self, failed: LaneFailed) -> None:
        if (stream := self._streams.get(failed.lane.stream_id)) is not None:
            self._end_stream(stream, StreamFailed(str(failed.error)))

    def _refuse(self, stream_id: str, refusal: Refusal) -> None:
        self._cancel_validation(refusal.dropped)
        if refusal.reset:
            self._outgoing.schedule.put_reset(stream_id, was_known=refusal.cause is not Cause.NO_SUCH_STREAM)
            self._outgoing.wake()

    def _cancel_validation(self, number: int | None) -> None:
        if number is not None and (scope := self._validations.get(number)) is not None:
            scope.cancel()

    async def _watch_gaps(self) -> None:
        """End streams whose missing record does not come."""
        while True:
            deadlines = [s.gap_deadline_s for s in self._streams.values() if s.gap_deadline_s is not None]
            if not deadlines:
                await self._gap_opened.wait()
                self._gap_opened = trio.Event()
                continue
            await trio.sleep_until(min(deadlines))
            for stream in list(self._streams.values()):
                self._guarded(stream, partial(stream.check_gap, trio.current_time()))
