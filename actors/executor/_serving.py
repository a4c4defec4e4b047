"""Serve an executor at a WebSocket address: a function fit for a supervised child."""

import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Protocol
from urllib.parse import urlsplit

import attrs
import trio

from actors.executor._errors import ListenAddressInvalid, ListenRefused, SettingInvalid
from actors.executor._events import Observer
from actors.executor._executor import Executor, open_executor, unobserved
from actors.executor._handshake import admission, serve_websocket_stream
from actors.executor._launching import ProcessLauncher
from actors.executor._limits import Limits
from actors.executor._settings import check_kind
from actors.protocol import EnvironmentInfo

__all__ = ["ExecutorEndpoint", "Started", "serve_executor"]


@attrs.frozen(kw_only=True)
class ExecutorEndpoint:
    """Where an executor can be reached, and the executor.

    Attributes:
        url: Such as ``ws://127.0.0.1:40123``.
        port: Its TCP port.
        executor: For a look at its statistics, and to serve it over other channels as well.
    """

    url: str
    port: int
    executor: Executor = attrs.field(repr=False, eq=False)


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
    file_roots: Sequence[str | PurePath] | None = None,
    http: bool = False,
    task_status: Started = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an executor over plain WebSocket until cancelled.

    Args:
        listen: ``ws://HOST:PORT``; port 0 takes a free one.
        token: What peers must show as ``Authorization: Bearer``. Needed for anything but loopback. Without one, web
            pages are turned away.
        limits: Bounds of connections, sessions and processes.
        observer: Told who comes, starts and ends.
        launcher: What starts processes; the system's own when ``None``.
        information: What is told about this environment; looked up when ``None``.
        variables: What processes may inherit when their client asks for it; a copy of ``os.environ`` when ``None``.
        file_roots: As :func:`open_executor` takes them.
        http: As :func:`open_executor` takes it.
        task_status: Told the :class:`ExecutorEndpoint` once peers can connect.

    Raises:
        ListenRefused: The address is not loopback and there is no token; nothing was opened.
        ListenAddressInvalid: The address is not of that shape.
        SettingInvalid: Something else is of another kind.
        RootUnusable: One of the roots is no folder.
        OSError: The port is taken, or the address not ours.

    Cancelled:
        Connections are closed, then all processes killed and reaped, each within its limit.
    """
    host, port = _judge_address(listen, token)
    async with open_executor(
        launcher=launcher,
        limits=limits,
        observer=observer,
        information=information,
        variables=variables,
        file_roots=file_roots,
        http=http,
    ) as executor:
        listeners = await _open_listeners(listen, host, port, trusted=token is not None)
        admits = admission(token)

        async def serve(stream: trio.SocketStream) -> None:
            await serve_websocket_stream(executor, stream, admits)

        await trio.serve_listeners(serve, listeners, task_status=_WhenListening(executor, task_status))


class _WhenListening:
    """Turns trio's word that it listens into ours. A nursery of our own would wrap what goes wrong in there."""

    def __init__(self, executor: Executor, told: Started) -> None:
        self._executor, self._told = executor, told

    def started(self, value: list[trio.SocketListener] | None = None) -> None:
        assert value, "trio says where it listens"
        host, port, *_ = value[0].socket.getsockname()
        shown = f"[{host}]" if ":" in host else host
        self._told.started(ExecutorEndpoint(url=f"ws://{shown}:{port}", port=port, executor=self._executor))


async def _open_listeners(listen: str, host: str, port: int, *, trusted: bool) -> list[trio.SocketListener]:
    """Open the sockets, and judge where they really are: a name means what the system makes of it."""
    listeners = await trio.open_tcp_listeners(port, host=host)
    # A free port is another one at each address: the one that is told must not be a stranger's at the others.
    kept = listeners if port else listeners[:1]
    outside = [one for one in kept if not _is_loopback_address(one.socket.getsockname()[0])]
    refused = bool(outside) and not trusted
    for listener in listeners:
        if refused or listener not in kept:
            listener.socket.close()
    if refused:
        raise ListenRefused(listen, "that name leads to an address that is not loopback, and no token was given")
    return kept


def _judge_address(listen: str, token: str | None) -> tuple[str, int]:
    check_kind("listen", listen, str)
    try:
        parts = urlsplit(listen)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ListenAddressInvalid(listen) from None
    more = parts.query or parts.fragment or "@" in parts.netloc or "\\" in listen or listen != listen.strip()
    if parts.scheme != "ws" or not host or port is None or parts.path not in {"", "/"} or more:
        raise ListenAddressInvalid(listen)
    if token is not None:
        _judge_token(listen, token)
    elif not _is_loopback(host):
        raise ListenRefused(listen, "it is not a loopback address and no token was given")
    return host, port


def _judge_token(listen: str, token: str) -> None:
    check_kind("token", token, str)
    if not token.strip():
        raise ListenRefused(listen, "the token is blank")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise SettingInvalid("token", "must be one word of printable ASCII: no header can carry another")


def _is_loopback(host: str) -> bool:
    try:
        return _is_loopback_address(host)
    except ValueError:
        return host == "localhost"


def _is_loopback_address(text: str) -> bool:
    # A mapped address counts as what it maps to from Python 3.13 on, and not before: here it is refused on all.
    address = ipaddress.ip_address(text)
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None
