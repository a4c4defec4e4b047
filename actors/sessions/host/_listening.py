"""Where a host listens, who may reach it there, and what a caller has to show."""

import hmac
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs
import trio

from actors.sessions.grpc import Abort, Route, ServerCall, StatusCode, listen_tcp, listen_unix
from actors.sessions.host._errors import ListenRefused


@attrs.frozen
class Listen:
    """An address to listen on, read."""

    path: str | None
    host: str = ""
    port: int = 0

    @property
    def loopback(self) -> bool:
        """Whether nobody but this machine can reach it."""
        if self.path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self, *, token: bool, tls: bool) -> None:
        """Refuse to let strangers run code.

        Raises:
            ListenRefused: Others could reach it without a token, or read what is said.
        """
        if not self.loopback and not (token and tls):
            raise ListenRefused(self.host, token=token, tls=tls)

    async def open(self, ssl_context: ssl.SSLContext | None) -> Sequence[trio.abc.Listener[Any]]:
        """Listen."""
        if self.path is not None:
            return listen_unix(self.path)
        return await listen_tcp(self.host, self.port, ssl_context=ssl_context)

    def endpoint(self, address: str, *, tls: bool) -> str:
        """Say what to dial."""
        return ("unix:" if self.path is not None else "https://" if tls else "http://") + address


def read_listen(listen: str) -> Listen:
    """Read `grpc://ADDRESS:PORT` or `unix:PATH`.

    Raises:
        ValueError: It is neither.
    """
    if listen.startswith("unix:"):
        return Listen(listen.removeprefix("unix:").removeprefix("//"))
    address, colon, port = listen.removeprefix("grpc://").rpartition(":")
    if not listen.startswith("grpc://") or not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"a host listens on grpc://ADDRESS:PORT or unix:PATH, not on {listen!r}")
    return Listen(None, address.strip("[]"), int(port))


def guarded(routes: Sequence[Route], token: str) -> list[Route]:
    """Let nobody call without the token."""
    expected = f"Bearer {token}".encode()

    def check(call: ServerCall) -> None:
        shown = call.metadata.get("authorization") or ""
        if not hmac.compare_digest(shown.encode() if isinstance(shown, str) else shown, expected):
            raise Abort(StatusCode.UNAUTHENTICATED, "this code-mode host wants a bearer token, and not the one it got")

    return [attrs.evolve(route, run=_checked(check, route.run), run_now=_checked_now(check, route)) for route in routes]


def _checked(
    check: Callable[[ServerCall], None], run: Callable[[ServerCall], Awaitable[None]]
) -> Callable[[ServerCall], Awaitable[None]]:
    async def checked(call: ServerCall) -> None:
        check(call)
        await run(call)

    return checked


def _checked_now(check: Callable[[ServerCall], None], route: Route) -> Callable[[ServerCall], bytes] | None:
    run_now = route.run_now
    if run_now is None:
        return None

    def checked(call: ServerCall) -> bytes:
        check(call)
        return run_now(call)

    return checked
