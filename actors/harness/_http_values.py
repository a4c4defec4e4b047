"""What is said of HTTP requests and their answers."""

import json
from typing import Any

import attrs

from actors.harness._errors import Failed, HarnessError
from actors.harness._wording import shown_url


@attrs.frozen
class FromVariable:
    """A header's value that only the executor knows: one of its own variables.

    Attributes:
        name: The variable.
        prefix: What stands in front of its value, such as ``"Bearer "``.
    """

    name: str
    prefix: str = attrs.field(default="", repr=False)


def _size_only(data: bytes) -> str:
    return f"<{len(data)} bytes>"


@attrs.frozen(kw_only=True)
class HttpAnswer:
    """What a server answered, whatever its status.

    Attributes:
        status: Such as 200.
        headers: Names in small letters, in order; a name may come more than once.
        body: The whole body.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=_size_only)

    @property
    def ok(self) -> bool:
        """The status says success: 200 to 299."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """Give the first header of a name; None when there is none."""
        return first_header(self.headers, name)

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 becomes replacement marks."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Give the body as a JSON value, or raise `ValueError`."""
        return json.loads(self.body)


def first_header(headers: tuple[tuple[str, str], ...], name: str) -> str | None:
    """Give the first header of a name."""
    wanted = name.lower()
    return next((value for each, value in headers if each == wanted), None)


class HttpRequestFailed(Failed):
    """No answer came from the server, or not the whole of it."""

    def __init__(self, url: str, message: str, *, kind: str | None = None, reason: str | None = None) -> None:
        super().__init__(f"HTTP request failed: {message}" + (f" ({reason})" if reason else ""))
        self.url: str = shown_url(url)
        """Where to, without query, user and password."""
        self.kind: str | None = kind
        self.reason: str | None = reason
        """What went wrong, where the executor says it: ``connect``, ``timeout``, ``protocol``, ``body``..."""


class HttpUnavailable(Failed):
    """This executor makes no HTTP requests."""

    def __init__(self) -> None:
        super().__init__("this executor makes no HTTP requests: start it with http=True, or with `--http`")


class HttpBodyBroken(HarnessError):
    """A streamed body ended before its end: what was read is not all of it."""

    def __init__(self, url: str, received_bytes: int, reason: str) -> None:
        self.url: str = shown_url(url)
        self.received_bytes: int = received_bytes
        self.reason: str = reason
        super().__init__(f"HTTP request failed: body of `{self.url}` broke off after {received_bytes} bytes: {reason}")
