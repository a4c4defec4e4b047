"""One connection: messages in, answers and news out, until either end has had enough."""

from collections.abc import Callable

import trio

from actors.executor._channel import CloseReason, EagerChannel, MessageChannel
from actors.executor._outbox import Outbox
from actors.executor._requests import Requests
from actors.executor._statistics import Counters
from actors.protocol import (
    INITIALIZED,
    ErrorResponse,
    MalformedMessage,
    MessageTooLarge,
    Notification,
    Request,
    Response,
    decode_message,
    encode_message,
    unreadable_message,
)

__all__ = ["serve_connection"]

_PROTOCOL_ERROR = 1002
_TOO_BIG = 1009


class _Ended(Exception):
    """We end the connection, and say why."""

    def __init__(self, reason: CloseReason) -> None:
        super().__init__(reason)
        self.reason = reason


async def serve_connection(
    channel: MessageChannel,
    make_requests: Callable[[Outbox, trio.Nursery], Requests],
    counters: Counters,
    *,
    outbox_bytes: int,
    message_bytes_max: int,
) -> str:
    """Serve one connection to its end; its session is detached then.

    Returns:
        Why it ended.

    Cancelled:
        The channel is closed within its own bound, the session detached.
    """
    outbox = Outbox(room_bytes=outbox_bytes)
    if isinstance(channel, EagerChannel):
        channel.send_when_idle(outbox)
    requests: Requests | None = None
    reason: CloseReason = (1001, "the executor is stopping")
    try:
        async with trio.open_nursery() as nursery:
            requests = make_requests(outbox, nursery)
            nursery.start_soon(_send, channel, outbox, nursery.cancel_scope)
            reader = _Reader(channel, requests, outbox, counters, message_bytes_max)
            reason = await reader.read()
            nursery.cancel_scope.cancel()
    finally:
        outbox.close()
        if requests is not None:
            requests.closing()
            if requests.session is not None:
                requests.session.detach()
        await channel.close(reason)
    return reason[1]


async def _send(channel: MessageChannel, outbox: Outbox, connection: trio.CancelScope) -> None:
    """The only task that sends: a message half sent by a cancelled task would ruin the connection."""
    try:
        while True:
            await channel.send(await outbox.take())
    except trio.BrokenResourceError:
        connection.cancel()


class _Reader:
    """Takes messages apart and hands them on."""

    def __init__(
        self,
        channel: MessageChannel,
        requests: Requests,
        outbox: Outbox,
        counters: Counters,
        message_bytes_max: int,
    ) -> None:
        self._channel, self._requests, self._outbox = channel, requests, outbox
        self._counters, self._message_bytes_max = counters, message_bytes_max
        self._is_eager = isinstance(channel, EagerChannel)

    async def read(self) -> CloseReason:
        """Read until the end; the reason is ours or the peer's."""
        answers = self._outbox.answers
        try:
            while True:
                data = await self._channel.receive()
                self._counters.messages_received += 1
                if self._is_eager:
                    self._outbox.cork()
                self._take(data)
                if not answers.has_room:
                    self._outbox.uncork()
                    await answers.wait_room()
        except trio.EndOfChannel:
            return (1000, "the peer ended it")
        except _Ended as ended:
            return ended.reason

    def _take(self, data: bytes | str) -> None:
        try:
            message = decode_message(data, limit_bytes=self._message_bytes_max)
        except MessageTooLarge as fault:
            raise _Ended((_TOO_BIG, str(fault))) from None
        except MalformedMessage as fault:
            self._malformed(fault)
            return
        match message:
            case Request():
                self._requests.handle(message)
            case Notification():
                self._notified(message)
            case Response() | ErrorResponse():
                raise _Ended((_PROTOCOL_ERROR, "answer to a request that was never made"))

    def _notified(self, notification: Notification) -> None:
        if notification.method != INITIALIZED.name:
            self._counters.news_ignored += 1
        elif not self._requests.initialized():
            raise _Ended((_PROTOCOL_ERROR, "initialized before initialize"))

    def _malformed(self, fault: MalformedMessage) -> None:
        self._counters.messages_malformed += 1
        if not self._channel.answers_malformed:
            raise _Ended((_PROTOCOL_ERROR, f"malformed message: {fault.reason}"))
        answer = unreadable_message(self._channel.peer, fault.reason)
        self._outbox.add_answer(encode_message(answer))
