"""Dial and listen: TCP, unix sockets, and TLS that agrees on HTTP/2."""

import os
import socket
import ssl
import stat
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

from actors.sessions.grpc._dialling import Dial
from actors.sessions.grpc._preface import ALPN, alpn_of


@attrs.frozen
class Target:
    """Where a server is.

    Attributes:
        text: As the user wrote it.
        scheme: `http` or `https`.
        authority: What requests name as their host.
        host: Empty for a unix socket.
        port: 0 for a unix socket.
        path: Of a unix socket; empty otherwise.
    """

    text: str

    scheme: str

    authority: str

    host: str = ""

    port: int = 0

    path: str = ""


def parse_target(text: str) -> Target:
    """Read `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.

    Raises:
        ValueError: It is none of those. The text of a URL with credentials is not repeated.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix://") if text.startswith("unix:///") else text.removeprefix("unix:")
        if path:
            return Target(text, "http", "localhost", path=path)
    url = urlsplit(text)
    if url.username is not None or url.password is not None:
        raise ValueError("a target must not hold credentials; send them as metadata")
    if url.scheme not in {"http", "https"} or not url.hostname or url.path not in {"", "/"} or url.query:
        raise ValueError(f"a target is http://HOST:PORT, https://HOST:PORT or unix:PATH, not {text!r}")
    port = url.port or (443 if url.scheme == "https" else 80)
    return Target(text, url.scheme, url.netloc, host=url.hostname, port=port)


def dialler(target: Target, ssl_context: ssl.SSLContext | None = None) -> Dial:
    """Return what opens a connection to a target."""

    async def dial() -> trio.abc.Stream:
        if target.path:
            return await trio.open_unix_socket(target.path)
        plain = await trio.open_tcp_stream(target.host, target.port)
        if target.scheme == "http":
            return plain
        return await _secured(plain, target.host, ssl_context or ssl.create_default_context())

    return dial


async def _secured(plain: trio.SocketStream, host: str, context: ssl.SSLContext) -> trio.abc.Stream:
    context.set_alpn_protocols([ALPN])
    secured = trio.SSLStream(plain, context, server_hostname=host, https_compatible=True)
    try:
        await secured.do_handshake()
        if alpn_of(secured) != ALPN:
            raise OSError(f"{host} did not agree on HTTP/2 in the TLS handshake (ALPN)")
    except BaseException:
        await trio.aclose_forcefully(secured)
        raise
    return secured


async def listen_tcp(
    host: str, port: int, *, ssl_context: ssl.SSLContext | None = None
) -> Sequence[trio.abc.Listener[Any]]:
    """Listen on every address of a host; port 0 picks a free one (see `addresses_of`).

    Args:
        host: A name or an address.
        port: 0 to 65535.
        ssl_context: With a certificate, to speak TLS; ALPN is set on it.

    Raises:
        OSError: The port is taken, or the address is not ours.

    Cancelled:
        Nobody listens.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise _named(error, f"{host}:{port}") from error
    if ssl_context is None:
        return listeners
    ssl_context.set_alpn_protocols([ALPN])
    return [trio.SSLListener(listener, ssl_context, https_compatible=True) for listener in listeners]


def listen_unix(path: str, *, mode: int = 0o600) -> Sequence[trio.SocketListener]:
    """Listen on a unix socket; one that nobody listens on any more is replaced.

    Args:
        path: Where; at most about 100 bytes.
        mode: Who may connect; by default only this user.

    Raises:
        OSError: It cannot be bound, or a server listens there already.
    """
    _remove_dead(path)
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~mode)
    try:
        raw.setblocking(False)
        raw.bind(path)
        raw.listen(128)
    except OSError as error:
        raw.close()
        raise _named(error, path) from error
    except BaseException:
        raw.close()
        raise
    finally:
        os.umask(before)
    return [trio.SocketListener(trio.socket.from_stdlib_socket(raw))]


def _named(error: OSError, where: str) -> OSError:
    """Say where, which the system does not; the kind of the error stays."""
    text = f"cannot listen on {where}: {error.strerror or error}"
    # The numbers of names that have no address are none of the system's.
    return OSError(text) if error.errno is None or isinstance(error, socket.gaierror) else OSError(error.errno, text)


def _remove_dead(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            if probe.connect_ex(path) == 0:
                return
        os.unlink(path)
    except FileNotFoundError:
        return


def addresses_of(listeners: Sequence[trio.abc.Listener[Any]]) -> list[str]:
    """Say where listeners listen: `HOST:PORT` or a path."""
    addresses: list[str] = []
    for listener in listeners:
        inner: object = getattr(listener, "transport_listener", listener)
        if isinstance(inner, trio.SocketListener):
            name = inner.socket.getsockname()
            addresses.append(f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name))
    return addresses
