"""Say why no connection came about, in the user's words, and without what an address may keep secret."""

import socket
import ssl
from collections.abc import Iterator
from typing import Final, cast

__all__ = ["place_of", "silence_hint", "why_unreachable"]

_TLS_FOR: Final = {"https": "http", "wss": "ws"}
_PLAIN_TO: Final = {plain: secured for secured, plain in _TLS_FOR.items()}
_NAME_UNKNOWN: Final = {socket.EAI_NONAME, socket.EAI_FAIL, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def why_unreachable(error: BaseException, scheme: str) -> str | None:
    """Give the reason that stands behind an error of connecting; None when only the library could say more.

    Args:
        error: What was raised; what caused it is searched too.
        scheme: `http`, `https`, `ws` or `wss`, as it was dialled.
    """
    for each in _chain(error):
        if (reason := _reason(each, scheme)) is not None:
            return reason
    return None


def silence_hint(scheme: str) -> str:
    """What to add when a side took the connection and then said nothing, or nothing of use."""
    if scheme in _TLS_FOR:
        return f"; if it speaks no TLS, the address begins with {_TLS_FOR[scheme]}://"
    return f"; if it speaks TLS, the address begins with {_PLAIN_TO[scheme]}://"


def place_of(url: str) -> str:
    """Scheme, host and port of a URL, and nothing that may be secret: who asks, path, query and fragment."""
    scheme, mark, rest = url.partition("#")[0].partition("?")[0].partition("://")
    # What stands before an `@` is cut first: a password may have a slash in it.
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('/')[0]}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it holds and what stands behind it, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += cast("tuple[BaseException, ...]", each.exceptions)
        waiting += [cause for cause in (each.__cause__, each.__context__) if cause is not None]


def _reason(error: BaseException, scheme: str) -> str | None:
    match error:
        case ssl.SSLError():
            return _tls_reason(error, scheme)
        case socket.gaierror(errno=errno):
            is_known = errno not in _NAME_UNKNOWN
            return (
                "its name could not be looked up just now" if is_known else "its name is not known; check the address"
            )
        case ConnectionRefusedError():
            return "connection refused: nothing listens there; check the address, and that it was started"
        case ConnectionResetError() | BrokenPipeError():
            return f"it hung up{silence_hint(scheme)}"
        case OSError(errno=int(), strerror=str(strerror)):
            return strerror[:1].lower() + strerror[1:]
        case _:
            return None


def _tls_reason(error: ssl.SSLError, scheme: str) -> str | None:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not accepted: {error.verify_message}"
        case ssl.SSLEOFError():
            return f"it hung up during the TLS handshake{silence_hint(scheme)}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE"):
            return f"it speaks no TLS: an address of it begins with {_TLS_FOR.get(scheme, scheme)}://"
        case ssl.SSLError(reason=str(reason)):
            return f"the TLS handshake failed: {reason.replace('_', ' ').lower()}"
        case _:
            return None
