"""Check the ids and names that callers choose."""

from typing import Final

from actors.sessions.grpc import Abort, StatusCode

IDENTIFIER_BYTES_MAX: Final = 256


def check_identifier(text: str, field: str) -> None:
    """Refuse an id that is empty or too long.

    Raises:
        Abort: With INVALID_ARGUMENT and the field's name.
    """
    if not text:
        raise Abort(StatusCode.INVALID_ARGUMENT, f"code-mode {field} must not be empty")
    if len(text.encode()) > IDENTIFIER_BYTES_MAX:
        raise Abort(StatusCode.INVALID_ARGUMENT, f"code-mode {field} exceeds {IDENTIFIER_BYTES_MAX} bytes")


def check_namespace(text: str) -> None:
    """Refuse a namespace that is too long; it may be empty."""
    if text:
        check_identifier(text, "tool namespace")
