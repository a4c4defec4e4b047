"""Where a host listens, and who may reach it there."""

import ipaddress

import attrs

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
