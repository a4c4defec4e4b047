"""The way to this machine: an executor in this very process, spoken to through memory. Nothing listens anywhere."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import PurePath
from typing import final

import attrs
import trio
from attrs.validators import optional

from actors.environments._demands import of, offering
from actors.environments._harness_connector import HarnessConnector, hold_harness
from actors.environments._seams import LinkReport, LinkRequest
from actors.executor import CloseReason, Executor, Limits, ProcessLauncher, open_executor
from actors.harness import ChannelClosed

_MESSAGES_IN_FLIGHT = 16


@final
@attrs.frozen(kw_only=True)
class LocalConnector:
    """Run an executor beside the manager; its processes end with the link.

    Attributes:
        launcher: What starts processes; the system's own when left out.
        limits: Its bounds.
        file_roots: Folders that hold everything reachable through files; the whole machine when left out.
        http: Make HTTP requests for `Environment.http`.
    """

    launcher: ProcessLauncher | None = attrs.field(default=None, validator=optional(offering("launch")))
    limits: Limits | None = attrs.field(default=None, validator=optional(of(Limits)))
    file_roots: Sequence[str | PurePath] | None = None
    http: bool = attrs.field(default=False, validator=of(bool))

    async def hold(self, _request: LinkRequest, report: LinkReport, /) -> None:
        """Open an executor and a harness to it, report it, and hold both.

        Cancelled:
            Every process is killed and reaped, within a bound.
        """
        async with open_executor(
            launcher=self.launcher, limits=self.limits, file_roots=self.file_roots, http=self.http
        ) as executor:
            how = HarnessConnector(dialer=_InProcessDialer(executor), recovery=None)
            await hold_harness("ws://local.invalid/", report, how)


class _InProcessDialer:
    """Opens channels to one executor in this process."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    @asynccontextmanager
    async def dial(self, url: str) -> AsyncGenerator["_NearEnd", None]:
        """Open a channel; leaving the context ends it at both ends."""
        del url  # There is only one executor.
        to_far, at_far = trio.open_memory_channel[bytes](_MESSAGES_IN_FLIGHT)
        to_near, at_near = trio.open_memory_channel[bytes](_MESSAGES_IN_FLIGHT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._executor.serve_channel, _FarEnd(to_near, at_far))
            try:
                yield _NearEnd(to_far, at_near)
            finally:
                to_far.close()
                at_near.close()
                nursery.cancel_scope.cancel()


class _NearEnd:
    """The harness's end."""

    def __init__(self, outgoing: trio.MemorySendChannel[bytes], incoming: trio.MemoryReceiveChannel[bytes]) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    async def send(self, message: bytes) -> None:
        try:
            await self._outgoing.send(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ChannelClosed("the executor in this process has ended", written=False) from None

    async def receive(self) -> bytes | str:
        try:
            return await self._incoming.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise ChannelClosed("the executor in this process has ended") from None

    async def ping(self) -> None:
        await trio.lowlevel.checkpoint()  # Both ends live and die together.


class _FarEnd:
    """The executor's end."""

    peer = "this process"
    answers_malformed = False

    def __init__(self, outgoing: trio.MemorySendChannel[bytes], incoming: trio.MemoryReceiveChannel[bytes]) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    async def receive(self) -> bytes | str:
        return await self._incoming.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        try:
            for message in messages:
                await self._outgoing.send(message)
        except trio.ClosedResourceError:
            raise trio.BrokenResourceError("the harness in this process has ended") from None

    async def close(self, reason: CloseReason) -> None:
        del reason  # Nobody is left to read it.
        self._outgoing.close()
        self._incoming.close()
        await trio.lowlevel.checkpoint()
