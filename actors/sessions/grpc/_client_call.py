"""The caller's view of one call: send, receive, and learn how it ended."""

from collections.abc import AsyncIterator
from typing import Generic

import attrs
import trio

from actors.sessions.grpc._connection import Connection
from actors.sessions.grpc._errors import CallFailed, MessageTooLarge
from actors.sessions.grpc._headers import Ending
from actors.sessions.grpc._limits import Limits
from actors.sessions.grpc._methods import AnyMethod, Message, Method, Request, Response
from actors.sessions.grpc._pairs import NO_METADATA, Metadata
from actors.sessions.grpc._status import Status, StatusCode
from actors.sessions.grpc._stream import Stream


@attrs.frozen
class Reply(Generic[Message]):
    """The whole answer of a call that has one response.

    Attributes:
        message: The response.
        headers: What came before it.
        trailers: What came after it.
    """

    message: Message

    headers: Metadata

    trailers: Metadata


class ClientCall(Generic[Request, Response]):
    """An open call. It is given by `Channel.open_call` and ends with that block.

    Iterate over it for the responses. It fails with `CallFailed` for every status but OK.
    """

    def __init__(self, connection: Connection, stream: Stream, method: Method[Request, Response]) -> None:
        self._connection, self._stream, self._method = connection, stream, method

    def __repr__(self) -> str:
        return f"<ClientCall {self._method.path}>"

    async def send(self, message: Request) -> None:
        """Queue a message and wait until there is room for the next.

        Raises:
            CallFailed: The call has ended, or the message is over the limit.

        Cancelled:
            The message is queued whole or not at all.
        """
        await trio.lowlevel.checkpoint()
        stream = self._stream
        payload = checked(self._method, message, self._connection.limits)
        self._raise_if_ended()
        self._connection.outbound.send_message(stream, payload)
        while stream.queued_bytes > self._connection.limits.queued_bytes_max:
            await stream.room.park()
        self._raise_if_ended()

    def _raise_if_ended(self) -> None:
        if self._stream.failure is not None or self._stream.ending is not None:
            ending = self._ending()
            if ending.status.code is not StatusCode.OK:
                raise self._failed(ending)

    def finish_sending(self) -> None:
        """Say that no more messages follow. Calling it again does nothing."""
        self._connection.outbound.finish(self._stream, [])

    def send_only(self, payload: bytes) -> None:
        """Queue the one serialised message of a call that sends exactly one."""
        self._connection.outbound.send_message(self._stream, payload)
        self._connection.outbound.finish(self._stream, [])

    async def receive(self) -> Response:
        """Wait for the next response.

        Raises:
            trio.EndOfChannel: The call ended with OK.
            CallFailed: It ended otherwise.

        Cancelled:
            No response was taken.
        """
        if self._stream.inbox:
            await trio.lowlevel.checkpoint()
        payload = await self._next()
        if payload is None:
            raise trio.EndOfChannel
        return self._parse(payload)

    def __aiter__(self) -> AsyncIterator[Response]:
        return self

    async def __anext__(self) -> Response:
        """Wait for the next response, as `receive`.

        Cancelled:
            No response was taken.
        """
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    async def receive_only(self) -> Reply[Response]:
        """Wait for the one response of a call that has exactly one, and for its end.

        Raises:
            CallFailed: It ended with another status, or with another number of responses.

        Cancelled:
            The response may have been taken: the call is of no more use.
        """
        first = await self._next()
        if first is not None and await self._next() is not None:
            raise self._failed(Ending(Status(StatusCode.INTERNAL, "the peer sent more than one response")))
        if first is None:
            raise self._failed(Ending(Status(StatusCode.INTERNAL, "the peer ended the call without a response")))
        return Reply(self._parse(first), self._headers_now(), self.trailers)

    async def headers(self) -> Metadata:
        """Wait for the metadata that comes before the first response.

        Raises:
            CallFailed: The call ended before that.

        Cancelled:
            Only the wait ends.
        """
        stream = self._stream
        await trio.lowlevel.checkpoint()
        while stream.head is None and stream.ending is None and stream.failure is None:
            await stream.arrivals.park()
        if stream.head is None:
            self._raise_if_ended()
        return self._headers_now()

    def _headers_now(self) -> Metadata:
        return NO_METADATA if self._stream.head is None else self._stream.head.metadata

    @property
    def trailers(self) -> Metadata:
        """The metadata that came with the status; empty while the call goes on."""
        return NO_METADATA if self._stream.ending is None else self._stream.ending.metadata

    async def _next(self) -> bytes | None:
        stream = self._stream
        while not stream.inbox:
            if stream.ending is not None or stream.failure is not None or stream.remote_ended:
                ending = self._ending()
                if ending.status.code is StatusCode.OK:
                    return None
                raise self._failed(ending)
            await stream.arrivals.park()
        payload = stream.inbox.popleft()
        self._connection.taken(stream)
        return payload

    def _ending(self) -> Ending:
        stream = self._stream
        if stream.ending is not None:
            return stream.ending
        if stream.failure is not None:
            return Ending(stream.failure.status)
        return Ending(Status(StatusCode.INTERNAL, "the peer ended the call without trailers"))

    def _failed(self, ending: Ending) -> CallFailed:
        failure = self._stream.failure
        return CallFailed(
            self._method.path,
            ending.status,
            headers=self._headers_now(),
            trailers=ending.metadata,
            unprocessed=self._stream.ending is None and failure is not None and failure.unprocessed,
        )

    def _parse(self, payload: bytes) -> Response:
        try:
            return self._method.response.parse(payload)
        except Exception as broken:
            # Whatever a codec raises, the caller sees one kind of error; its cause is kept.
            raise self._failed(Ending(Status(StatusCode.INTERNAL, "a response cannot be parsed"))) from broken

    def close(self) -> None:
        """Let go of the call; the peer is told to stop unless it has ended."""
        self._connection.abandon(self._stream)


def checked(method: AnyMethod, message: object, limits: Limits) -> bytes:
    """Serialise a request of a method.

    Raises:
        CallFailed: It is over the limit; nothing was sent.
    """
    payload = method.request.serialise(message)
    if len(payload) > limits.message_bytes_max:
        oversize = MessageTooLarge(found_bytes=len(payload), limit_bytes=limits.message_bytes_max, inbound=False)
        raise CallFailed(method.path, limits.oversize_status(oversize)) from oversize
    return payload
