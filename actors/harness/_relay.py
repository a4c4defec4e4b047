"""Reach an executor through a rendezvous, encrypted end to end: each connection is a new stream on a fresh bundle."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, final

import trio

from actors.harness._arguments import check_kind
from actors.harness._channel import ChannelClosed
from actors.harness._errors import (
    Disconnected,
    HarnessError,
    InvalidArgument,
    ProtocolBroken,
    WebSocketConnectFailed,
)
from actors.harness._recovery_policy import RecoveryPolicy
from actors.noise import Identity
from actors.relay import Dialer as PhysicalDialer
from actors.relay import (
    DialFailed,
    DialRefused,
    HandshakeFailed,
    RegistrarFailed,
    RelayError,
    RelayLimits,
    RelayStream,
    StreamBundle,
    WebSocketDialer,
    open_harness_stream,
)

RELAY_RECOVERY: Final = RecoveryPolicy(
    quick_tries=20, quick_delay_s=0.06, first_delay_s=0.5, delay_max_s=5.0, jitter=0.5
)
"""How a session over a relay is resumed: every try costs the registry a bundle, and a crowd loses its relay at once."""

_UNAUTHORIZED: Final = 401


class NoBundle(HarnessError):
    """The registry gave no bundle, and asking again makes no sense."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class NoBundleYet(Disconnected):
    """The registry gave no bundle, or could not be asked; asking again may help."""

    def __init__(self, said: str) -> None:
        HarnessError.__init__(self, said)
        self.said: str = said
        self.reason = said


@final
class RelayDialer:
    """Opens channels through a rendezvous. The address it is given is not dialled: each bundle has its own."""

    def __init__(
        self,
        next_bundle: Callable[[], Awaitable[StreamBundle]],
        identity: Identity,
        *,
        dialer: PhysicalDialer | None = None,
        limits: RelayLimits | None = None,
    ) -> None:
        """Say where bundles come from and who we are.

        Args:
            next_bundle: Gives a fresh bundle, once for every physical connection. A `HarnessError` comes out as it is,
                a `RegistrarFailed` ends a recovery unless it says that asking again makes sense.
            identity: Our keys, the same for all connections.
            dialer: How to reach the rendezvous; a WebSocket when left out.
            limits: Bounds of the stream.

        Raises:
            InvalidArgument: The first or the second is of another kind.
        """
        if not callable(next_bundle):
            raise InvalidArgument("next_bundle", f"must be an async function, not {type(next_bundle).__name__}")
        check_kind("identity", identity, Identity)
        self._next_bundle, self._identity = next_bundle, identity
        self._limits = limits or RelayLimits()
        self._dialer = dialer or WebSocketDialer(limits=self._limits)

    def __repr__(self) -> str:
        return f"<RelayDialer of {self._identity!r}>"

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator["RelayChannel", None]:
        """Open a channel; leaving the context gives its place at the executor back, within a bound.

        Raises:
            HarnessError: There was no bundle, the rendezvous could not be reached, or the executor did not answer.

        Cancelled:
            The bundle is used up; nothing else is left.
        """
        del url
        async with AsyncExitStack() as stack:
            try:
                stream = await self._open(stack)
            except DialRefused as refused:
                if refused.status != _UNAUTHORIZED:
                    raise _translated(refused) from refused
                stream = await self._once_more(stack)
            except RelayError as error:
                raise _translated(error) from error
            yield RelayChannel(stream)

    async def _once_more(self, stack: AsyncExitStack) -> RelayStream:
        """The bundle was too old when it was used: the only thing wrong with us may be the time it took."""
        try:
            return await self._open(stack)
        except RelayError as error:
            raise _translated(error) from error

    async def _open(self, stack: AsyncExitStack) -> RelayStream:
        bundle = await self._next_bundle()
        opening = open_harness_stream(bundle, self._identity, dialer=self._dialer, limits=self._limits)
        return await stack.enter_async_context(opening)


@final
class RelayChannel:
    """Whole messages over one stream of a relay.

    `send`, `receive` and `ping` raise `ChannelClosed` once the channel has ended, as `MessageChannel` says.

    Cancelled:
        The message was not queued, and none that came is lost.
    """

    def __init__(self, stream: RelayStream) -> None:
        self._stream = stream

    def __repr__(self) -> str:
        return f"<RelayChannel over {self._stream!r}>"

    async def send(self, message: bytes) -> None:
        """Queue one message for the stream; see `MessageChannel.send`."""
        try:
            await self._stream.send(message)
        except RelayError as error:
            # A stream takes a message whole or not at all: this one was refused before anything of it was encrypted.
            raise ChannelClosed(str(error), written=False) from error

    async def receive(self) -> bytes | str:
        """Give the next message; see `MessageChannel.receive`."""
        try:
            return await self._stream.receive()
        except RelayError as error:
            raise ChannelClosed(str(error)) from error

    async def ping(self) -> None:
        """Say whether the stream lives, as far as is known here.

        The physical connection has pings of its own, and the rendezvous resets the streams of an executor that is
        silent towards it; the protocol has no question that only the executor could answer.
        """
        await trio.lowlevel.checkpoint()
        if self._stream.error is not None:
            raise ChannelClosed(str(self._stream.error))


def _translated(error: RelayError) -> HarnessError:
    """Put what went wrong at the relay into the harness's words, and keep whether and when to try again."""
    said = _in_our_words(error)
    if isinstance(error, RegistrarFailed | DialRefused):
        said.retry_after_s = error.retry_after_s
    return said


def _in_our_words(error: RelayError) -> HarnessError:
    match error:
        case RegistrarFailed(retryable=retryable):
            return NoBundleYet(str(error)) if retryable else NoBundle(str(error))
        case DialRefused(target=target, detail=detail, status=status):
            return WebSocketConnectFailed(target, detail, status=status)
        case DialFailed(target=target, detail=detail):
            return WebSocketConnectFailed(target, detail)
        case HandshakeFailed(retryable=False):
            return ProtocolBroken(str(error))
        case _:
            return Disconnected(str(error))
