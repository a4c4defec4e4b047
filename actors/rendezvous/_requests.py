"""What an HTTP client asked, as values. Nearly everything in them may be a secret."""

import attrs

__all__ = ["HttpRequest", "HttpUpgrade"]


@attrs.frozen
class HttpRequest:
    """One request, whole."""

    method: str
    """Upper case."""
    target: str = attrs.field(repr=False)
    """Path and query; the query may hold a secret."""
    headers: list[tuple[bytes, bytes]] = attrs.field(repr=False)
    """Lower-case names; values may hold secrets."""
    body: bytes = attrs.field(repr=False)
    """May hold secrets."""

    def header(self, name: bytes) -> str | None:
        """Give the one value of a header; none when it is absent or stands there twice."""
        values = [value for key, value in self.headers if key == name]
        return values[0].decode("latin-1") if len(values) == 1 else None

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@attrs.frozen
class HttpUpgrade:
    """A request to go on as something else."""

    target: str = attrs.field(repr=False)
    """Path and query; the query may hold a secret."""
    headers: list[tuple[bytes, bytes]] = attrs.field(repr=False)
    """Lower-case names."""
    early: bytes = attrs.field(repr=False)
    """What came behind the request."""
