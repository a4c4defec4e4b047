"""Make sessions on one host that share one connection."""

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import attrs
import trio

from actors.blocks import block, open_helpers
from actors.sessions._arguments import check_callable, check_kind
from actors.sessions._binding import Binding
from actors.sessions._delegate import DelegateFailed, Report, log_failure
from actors.sessions._endpoint import dialled_url, endpoint_fault
from actors.sessions._errors import InvalidEndpoint, SessionClosed
from actors.sessions._journal import Journal
from actors.sessions._session import Session, SessionCore
from actors.sessions._values import SessionOptions
from actors.sessions._wording import oversize_status
from actors.sessions.grpc import Channel, ChannelOptions, Dial, open_channel

_PROVIDER_ENDED: Final = (
    "the provider of code sessions is closed: its `open_provider` block has ended. Make sessions inside the block"
)


@attrs.frozen(kw_only=True)
class ProviderStatistics:
    """What a provider has done and is doing.

    Attributes:
        generations: Host sessions ever begun, failed openings included.
        sessions_live: Host sessions that are open or being opened.
        connections_dialled: Connections ever made.
        connections_open: Connections at this moment.
        delegate_failures: Delegates that raised something that had no place.
    """

    generations: int = 0

    sessions_live: int = 0

    connections_dialled: int = 0

    connections_open: int = 0

    delegate_failures: int = 0


def _no_trace() -> str | None:
    return None


class _Home:
    """What the sessions of a provider share."""

    def __init__(
        self, channel: Channel, nursery: trio.Nursery, report: Report, traceparent: Callable[[], str | None]
    ) -> None:
        self._channel, self._nursery = channel, nursery
        self._report_to, self._traceparent = report, traceparent
        self._generations = self._delegate_failures = 0
        self._closed = False
        # Every binding here has not ended; the connection is released when it is empty.
        self._bindings: set[Binding] = set()

    def statistics(self) -> ProviderStatistics:
        return ProviderStatistics(
            generations=self._generations,
            sessions_live=len(self._bindings),
            connections_dialled=self._channel.connections_dialled,
            connections_open=self._channel.connections_open,
            delegate_failures=self._delegate_failures,
        )

    def new_binding(self, options: SessionOptions, journal: Journal | None) -> Binding:
        """Take the next generation."""
        if self._closed:
            raise SessionClosed(_PROVIDER_ENDED)
        self._generations += 1
        binding = Binding(
            self._channel,
            self._nursery,
            self._generations,
            report=self._report,
            traceparent=self._traceparent,
            heartbeat_interval_s=options.heartbeat_interval_s,
            journal=journal,
        )
        binding.on_ended = self._on_ended
        self._bindings.add(binding)
        return binding

    def start(self, work: Callable[[SessionCore], Awaitable[object]], core: SessionCore) -> None:
        """Run a task that outlives calls."""
        self._nursery.start_soon(work, core)

    def close(self) -> None:
        """End every session at once."""
        self._closed = True
        for binding in [*self._bindings]:
            binding.link.finish(SessionClosed())

    def _on_ended(self, binding: Binding) -> None:
        self._bindings.discard(binding)
        if not self._bindings:
            self._channel.release()

    def _report(self, failed: DelegateFailed) -> None:
        self._delegate_failures += 1
        self._report_to(failed)


class SessionProvider:
    """Makes sessions on one host. Given by `open_provider`.

    Connects with the first session, and lets go of the connection when the last one has ended, however it ended.
    """

    def __init__(self, home: _Home | InvalidEndpoint) -> None:
        # A URL that cannot be used stands in the place of what would have been made from it.
        self._home = home

    def __repr__(self) -> str:
        return f"<SessionProvider with {self.statistics().sessions_live} live sessions>"

    def statistics(self) -> ProviderStatistics:
        """Count what is there and what has happened."""
        return ProviderStatistics() if isinstance(self._home, InvalidEndpoint) else self._home.statistics()

    async def create_session(self, options: SessionOptions | None = None) -> Session:
        """Open a session.

        Args:
            options: What to ask of the host.

        Raises:
            HostUnavailable: The host could not be reached or has no room, after five attempts or 60 s.
            HostCallFailed: The host refused.
            InvalidEndpoint: The URL of the provider cannot be used.
            InvalidArgument: `options` are of the wrong kind.
            SessionsError: The host broke the protocol, or the provider has ended.

        Cancelled:
            What was half open is dropped.
        """
        await trio.lowlevel.checkpoint()
        check_kind("options", options, SessionOptions, or_none=True)
        if isinstance(self._home, InvalidEndpoint):
            raise self._home
        core = SessionCore(self._home, options or SessionOptions())
        await core.open()
        return Session(core)


@block
async def open_provider(
    url: str,
    *,
    ssl_context: ssl.SSLContext | None = None,
    channel_options: ChannelOptions | None = None,
    dial: Dial | None = None,
    report: Report = log_failure,
    traceparent: Callable[[], str | None] = _no_trace,
) -> AsyncGenerator[SessionProvider]:
    """Open a provider of sessions on one host for the length of a block. Nothing is connected before the first one.

    At the end of the block every session ends; shut them down before it to know that the host has closed them.

    Args:
        url: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`; judged when the first session is wanted.
            `grpc://HOST:PORT`, as hosts listen, is `http://HOST:PORT`.
        ssl_context: Used for https; by default the system's, with its certificates.
        channel_options: Bounds and habits of the connection.
        dial: Opens a stream in place of the network.
        report: Hears of delegates that fail; must not raise. By default the logger `actors.sessions` tells of each,
            with its traceback.
        traceparent: Gives the W3C trace parent of the caller, where there is one.

    Raises:
        InvalidArgument: Something is of the wrong kind.

    Cancelled:
        Every session ends.
    """
    check_kind("url", url, str)
    check_kind("ssl_context", ssl_context, ssl.SSLContext, or_none=True)
    check_kind("channel_options", channel_options, ChannelOptions, or_none=True)
    check_callable("dial", dial, or_none=True)
    check_callable("report", report)
    check_callable("traceparent", traceparent)
    url = dialled_url(url)
    fault = endpoint_fault(url)
    if fault is not None:
        yield SessionProvider(fault)
        return
    options = channel_options or ChannelOptions()
    limits = attrs.evolve(options.limits, oversize_status=oversize_status)
    options = attrs.evolve(options, limits=limits)
    async with (
        open_channel(url, options=options, ssl_context=ssl_context, dial=dial) as channel,
        open_helpers() as nursery,
    ):
        home = _Home(channel, nursery, report, traceparent)
        try:
            yield SessionProvider(home)
        finally:
            home.close()
