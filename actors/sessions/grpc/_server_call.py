"""The handler's view of one call, and how the call ends on the wire."""

import math

import trio

from actors.sessions.grpc._connection import Connection
from actors.sessions.grpc._errors import Abort, CallGone, MessageTooLarge
from actors.sessions.grpc._headers import OK_TRAILERS, RESPONSE_HEAD, RequestHead, header_list_bytes, trailers
from actors.sessions.grpc._metadata import Headers, metadata_to_headers
from actors.sessions.grpc._pairs import Metadata, MetadataLike
from actors.sessions.grpc._status import OK, Status, StatusCode
from actors.sessions.grpc._stream import Stream
from actors.sessions.grpc._whole import WholeRequest


class ServerCall:
    """What a handler knows of its call. It lives as long as the handler, inside the call's own cancel scope.

    A reset by the caller, a lost connection, the deadline and the server's own end all cancel that scope.
    """

    def __init__(self, connection: Connection, of: Stream | WholeRequest, head: RequestHead, peer: str) -> None:
        self._connection, self._head = connection, head
        # A request that came whole has a stream only if its answer needs one.
        self._whole: WholeRequest | None = of if isinstance(of, WholeRequest) else None
        self._opened: Stream | None = of if isinstance(of, Stream) else None
        self._headers: Headers = []
        self._headers_sent = self._all_said = False
        self._trailers: Headers = []
        self._scope: trio.CancelScope | None = None
        self.peer = peer
        """The address of the caller, for people to read."""
        self.deadline_s: float = math.inf if head.timeout_s is None else trio.current_time() + head.timeout_s
        """When the caller gives up, on trio's clock; infinite if never."""

    @property
    def scope(self) -> trio.CancelScope:
        """Cancel it to end the call; the caller sees CANCELLED."""
        if self._scope is None:
            self._scope = trio.CancelScope(deadline=self.deadline_s)
        return self._scope

    @property
    def _stream(self) -> Stream:
        if self._opened is None:
            assert self._whole is not None, "a call has neither a stream nor a whole request"
            self._opened = self._connection.open_whole(self._whole)
        return self._opened

    def __repr__(self) -> str:
        return f"<ServerCall {self.path} from {self.peer}>"

    @property
    def path(self) -> str:
        """`/package.Service/Method`."""
        return self._head.path

    @property
    def authority(self) -> str:
        """The name under which the caller reached this server."""
        return self._head.authority

    @property
    def metadata(self) -> Metadata:
        """What the caller sent beside its messages."""
        return self._head.metadata

    @property
    def time_left_s(self) -> float:
        """Seconds until the caller gives up; infinite if never, 0 if it has."""
        return max(0.0, self.deadline_s - trio.current_time())

    def set_headers(self, metadata: MetadataLike) -> None:
        """Set the metadata that goes out before the first message.

        Raises:
            InvalidMetadata: It cannot be written as headers.
            RuntimeError: The headers are out already.
        """
        if self._headers_sent:
            raise RuntimeError(f"the headers of {self.path} were sent with its first message; set them before it")
        self._headers = metadata_to_headers(metadata)

    def send_headers(self) -> None:
        """Send the headers now, so that the caller knows it was admitted before any message is ready."""
        if not self._headers_sent:
            self._headers_sent = True
            self._connection.outbound.send_headers(self._stream, [*RESPONSE_HEAD, *self._headers])

    def set_trailers(self, metadata: MetadataLike) -> None:
        """Set the metadata that goes out with the status.

        Raises:
            InvalidMetadata: It cannot be written as headers.
        """
        self._trailers = metadata_to_headers(metadata)

    def queue(self, *payload: bytes, flushed: bool = False) -> None:
        """Queue one serialised message behind those before it.

        Args:
            payload: The message, in any pieces.
            flushed: Whether `flush` is called in this very step: the writer need not wake then.

        Raises:
            MessageTooLarge: It is over this server's limit; the call ends with the status for that.
            CallGone: The caller has left.
        """
        limit = self._connection.limits.message_bytes_max
        if (size := sum(map(len, payload))) > limit:
            raise MessageTooLarge(found_bytes=size, limit_bytes=limit, inbound=False)
        if self._stream.failure is not None:
            raise CallGone(self.path, self._stream.failure.status.message)
        self.send_headers()
        self._connection.outbound.send_message(self._stream, *payload, wake=not flushed)

    @property
    def has_room(self) -> bool:
        """Whether a message can be queued without waiting for those before it to leave."""
        return self._stream.failure is None and self._stream.queued_bytes <= self._connection.limits.queued_bytes_max

    def flush(self) -> None:
        """Write what is queued in this very step, where that can be done without waiting; else it is written soon."""
        self._connection.flush()

    async def send(self, payload: bytes) -> None:
        """Queue one serialised message and wait until there is room for the next.

        Raises:
            MessageTooLarge, CallGone: As `queue`.

        Cancelled:
            The message is queued whole or not at all.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.queue(payload)
        limit = self._connection.limits.queued_bytes_max
        if self._stream.queued_bytes <= limit:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        while self._stream.queued_bytes > limit:
            await self._stream.room.park()

    async def receive(self) -> bytes | None:
        """Take the next serialised message, or None when the caller has sent its last.

        Raises:
            Abort: What arrived breaks the rules; unless caught, the call ends with that status.
            CallGone: The caller has left.

        Cancelled:
            No message was taken.
        """
        stream = self._stream
        if stream.inbox:
            await trio.lowlevel.checkpoint()
        while not stream.inbox:
            if stream.unusable is not None:
                raise Abort(stream.unusable.code, stream.unusable.message)
            if stream.failure is not None:
                raise CallGone(self.path, stream.failure.status.message)
            if stream.remote_ended:
                return None
            await stream.arrivals.park()
        payload = stream.inbox.popleft()
        self._connection.taken(stream)
        return payload

    async def receive_only(self) -> bytes:
        """Take the one message of a method that has exactly one.

        Raises:
            Abort: There is none, or more than one.
            CallGone: The caller has left.

        Cancelled:
            No message was taken.
        """
        stream = self._stream
        while not (stream.remote_ended or stream.unusable is not None):
            if stream.failure is not None:
                raise CallGone(self.path, stream.failure.status.message)
            if len(stream.inbox) > 1:
                break
            await stream.arrivals.park()
        return self.take_only()

    def take_only(self) -> bytes:
        """Take the one message of a method that has exactly one, once the caller has said all.

        Raises:
            Abort: There is none, or more than one.
        """
        if self._whole is not None:
            return self._whole.message
        stream = self._stream
        if stream.unusable is not None:
            raise Abort(stream.unusable.code, stream.unusable.message)
        if len(stream.inbox) != 1:
            number = "more than one request" if stream.inbox else "no request"
            raise Abort(StatusCode.INTERNAL, f"the caller sent {number} to a method that takes exactly one")
        return stream.inbox.popleft()

    def answer(self, payload: bytes) -> None:
        """Give the one response and end the call well. Only the server calls this.

        Raises:
            MessageTooLarge: As `queue`.
            CallGone: As `queue`.
        """
        plain = self._opened is None and not (self._headers or self._trailers)
        if plain and self._whole is not None and self._connection.write_whole(self._whole, payload):
            self._all_said = True
            return
        stream = self._stream
        if self._headers_sent or len(payload) > self._connection.limits.message_bytes_max:
            self.queue(payload)
            self.finish(OK, [])
        elif not (stream.over or stream.local_ended):
            self._headers_sent = True
            closing = self._fitting(OK, self._trailers) if self._trailers else [*OK_TRAILERS]
            self._connection.outbound.answer(stream, [*RESPONSE_HEAD, *self._headers], payload, closing)
        self._all_said = True

    def finish(self, status: Status, metadata: Headers) -> None:
        """Say how the call ended, behind what is queued, unless that is said. Only the server calls this."""
        if self._all_said:
            return
        stream, outbound = self._stream, self._connection.outbound
        if stream.over or stream.local_ended:
            return
        more = [*self._trailers, *metadata]
        block = [*OK_TRAILERS] if status is OK and not more else self._fitting(status, more)
        if self._headers and not self._headers_sent:
            self.send_headers()
        if not self._headers_sent:
            block = [*RESPONSE_HEAD, *block]
        outbound.finish(stream, block)

    def _fitting(self, status: Status, more: Headers) -> Headers:
        """Keep within what the caller accepts: a larger block would cost it the whole connection."""
        block = trailers(status, more)
        limit = self._connection.header_list_bytes_max
        room = None if limit is None else limit - header_list_bytes(RESPONSE_HEAD)
        if room is None or header_list_bytes(block) <= room:
            return block
        text = f"the trailers of this {status.code.name} are larger than the caller accepts and were left out"
        return trailers(Status(status.code or StatusCode.RESOURCE_EXHAUSTED, text), [])
