"""Serve an executor at a WebSocket address: a function fit for a supervised child."""

import ipaddress
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

import attrs
import trio

from actors.executor._errors import ListenAddressInvalid, ListenRefused
from actors.executor._events import Observer
from actors.executor._executor import Executor, open_executor, unobserved
from actors.executor._handshake import admission, serve_websocket_stream
from actors.executor._launching import ProcessLauncher
from actors.executor._limits import Limits
from actors.protocol import EnvironmentInfo

__all__ = ["ExecutorEndpoint", "Started", "serve_executor"]


@attrs.frozen(kw_only=True)
class ExecutorEndpoint:
    """Where an executor can be reached, and the executor."""

    url: str
    """Such as ``ws://127.0.0.1:40123``."""
    port: int
    """Its TCP port."""
    executor: Executor = attrs.field(repr=False, eq=False)
    """For a look at its statistics, and to serve it over other channels as well."""


class Started(Protocol):
    """What a supervised child says when it can serve."""

    def started(self, value: ExecutorEndpoint, /) -> None:
        """Say it, with where."""
        ...


async def serve_executor(
    listen: str = "ws://127.0.0.1:0",
    *,
    token: str | None = None,
    limits: Limits | None = None,
    observer: Observer = unobserved,
    launcher: ProcessLauncher | None = None,
    information: EnvironmentInfo | None = None,
    variables: Mapping[str, str] | None = None,
    task_status: Started = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an executor over plain WebSocket until cancelled.

    Args:
        listen: ``ws://HOST:PORT``; port 0 takes a free one.
        token: What peers must show as ``Authorization: Bearer``. Needed for anything but loopback. Without one, web
        pages are
            turned away.
        limits: Bounds of connections, sessions and processes.
        observer: Told who comes, starts and ends.
        launcher: What starts processes; the system's own when ``None``.
        information: What is told about this environment; looked up when ``None``.
        variables: What processes may inherit when their client asks for it; a copy of ``os.environ`` when ``None``.
        task_status: Told the :class:`ExecutorEndpoint` once peers can connect.

    Raises:
        ListenRefused: The address is not loopback and there is no token; nothing was opened.
        ListenAddressInvalid: The address is not of that shape.
        OSError: The port is taken, or the address not ours.

    Cancelled:
        Connections are closed, then all processes killed and reaped, each within its limit.
    """
    host, port = _judge_address(listen, token)
    async with open_executor(
        launcher=launcher, limits=limits, observer=observer, information=information, variables=variables
    ) as executor:
        listeners = await trio.open_tcp_listeners(port, host=host)
        admits = admission(token)

        async def serve(stream: trio.SocketStream) -> None:
            await serve_websocket_stream(executor, stream, admits)

        await trio.serve_listeners(serve, listeners, task_status=_WhenListening(host, executor, task_status))


class _WhenListening:
    """Turns trio's word that it listens into ours. A nursery of our own would wrap what goes wrong in there."""

    def __init__(self, host: str, executor: Executor, told: Started) -> None:
        self._host, self._executor, self._told = host, executor, told

    def started(self, value: list[trio.SocketListener] | None = None) -> None:
        assert value, "trio says where it listens"
        port = value[0].socket.getsockname()[1]
        shown = f"[{self._host}]" if ":" in self._host else self._host
        url = f"ws://{shown}:{port}"
        self._told.started(ExecutorEndpoint(url=url, port=port, executor=self._executor))


def _judge_address(listen: str, token: str | None) -> tuple[str, int]:
    try:
        parts = urlsplit(listen)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ListenAddressInvalid(listen) from None
    if parts.scheme != "ws" or not host or port is None or parts.path not in {"", "/"} or parts.query:
        raise ListenAddressInvalid(listen)
    if token is not None and not token.strip():
        raise ListenRefused(listen, "the token is blank")
    if token is None and not _is_loopback(host):
        raise ListenRefused(listen, "it is not a loopback address and no token was given")
    return host, port


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
