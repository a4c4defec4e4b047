"""Check the address of a host. Nothing of a refused address is repeated that could be a secret."""

from urllib.parse import urlsplit

from actors.sessions._errors import InvalidEndpoint


def dialled_url(url: str) -> str:
    """Say what is dialled for what a host says it listens on; all else stays."""
    return f"http://{url.removeprefix('grpc://')}" if url.startswith("grpc://") else url


def endpoint_fault(url: str) -> InvalidEndpoint | None:
    """Say what is wrong with `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`, if anything is."""
    if url.startswith("unix:"):
        path = url.removeprefix("unix:").removeprefix("//")
        return None if path else InvalidEndpoint("invalid gRPC code-mode host URL: a unix socket needs a path")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # Its own text may hold the user name and password.
        return InvalidEndpoint("invalid gRPC code-mode host URL: the host or port cannot be read")
    return _fault_of_parts(
        parts.scheme, "@" in parts.netloc, parts.hostname, parts.path, bool(parts.query or parts.fragment)
    )


def _fault_of_parts(scheme: str, credentials: bool, host: str | None, path: str, more: bool) -> InvalidEndpoint | None:
    if scheme not in {"http", "https"}:
        return InvalidEndpoint("gRPC code-mode host URL must use http or https")
    if credentials:
        return InvalidEndpoint("gRPC code-mode host URL must not include credentials")
    if path not in {"", "/"} or more:
        return InvalidEndpoint("gRPC code-mode host URL must not include a path, query, or fragment")
    return None if host else InvalidEndpoint("invalid gRPC code-mode host URL: empty host")
