"""Paths as they travel: `file:` URIs. Knows the rules of URIs, not what exists on a disk."""

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from actors.protocol._faults import ProtocolFault

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_DRIVE: Final = re.compile(r"/+[A-Za-z][:|](/|$)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ONE_DOT: Final = frozenset({".", "%2e"})
_TWO_DOTS: Final = frozenset({"..", ".%2e", "%2e.", "%2e%2e"})


class PathUriRefused(ProtocolFault):
    """A text is not a path URI this host can use."""

    def __init__(self, rule: str, *, uri: str, foreign: bool = False) -> None:
        super().__init__(rule)
        self.rule = rule
        """The broken rule, as it travels."""
        self.uri = uri
        """The refused text."""
        self.foreign = foreign
        """It is a good path URI, of some other host."""


def path_from_uri(uri: str, *, platform: str = "linux") -> str:
    """Give the absolute path a `file:` URI names, with `.` and `..` resolved and percent escapes decoded.

    Bytes that are not UTF-8 come out as surrogate escapes, as the operating system's functions take them.

    Raises:
        PathUriRefused: No or another scheme, a query, a fragment, NUL, a control character, a foreign host or drive.
    """
    found = _SCHEME.fullmatch(uri)
    if found is None:
        raise PathUriRefused("invalid URI: relative URL without a base", uri=uri)
    scheme, rest = found[1].lower(), found[2]
    if scheme != "file":
        raise PathUriRefused(f"unsupported path URI scheme `{scheme}`", uri=uri)
    if _CONTROL.search(rest):
        # The other implementation drops tabs and line ends in silence. A name that changes on the way is worse.
        raise PathUriRefused("invalid URI: control character", uri=uri)
    before_fragment, hash_mark, _ = rest.partition("#")
    before_query, question_mark, _ = before_fragment.partition("?")
    if question_mark:
        raise PathUriRefused("query parameters are not allowed in path URIs", uri=uri)
    if hash_mark:
        raise PathUriRefused("fragments are not allowed in path URIs", uri=uri)
    host, path = _split_host(before_query.replace("\\", "/"))
    if "%00" in path:
        raise PathUriRefused(f"'{uri}' is invalid on '{platform}'", uri=uri)
    if host.lower() not in {"", "localhost"} or _DRIVE.match(path):
        raise PathUriRefused(f"'{uri}' is invalid on '{platform}'", uri=uri, foreign=True)
    return unquote_to_bytes(_without_dots(path)).decode("utf-8", "surrogateescape")


def uri_from_path(path: str) -> str:
    """Give the `file:` URI of an absolute path.

    Raises:
        PathUriRefused: The path is relative or holds NUL.
    """
    if not path.startswith("/"):
        raise PathUriRefused("path is not absolute", uri=path)
    if "\0" in path:
        raise PathUriRefused("path holds a NUL character", uri=path)
    return "file://" + quote_from_bytes(path.encode("utf-8", "surrogateescape"), safe="/-._~!$&'()*+,;=:@")


def _split_host(rest: str) -> tuple[str, str]:
    if not rest.startswith("//"):
        return "", rest if rest.startswith("/") else "/" + rest
    host, slash, path = rest[2:].partition("/")
    return host, slash + path if slash else "/"


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for position, segment in enumerate(segments):
        dots = segment.lower()
        last = position == len(segments) - 1
        if dots in _TWO_DOTS:
            if kept:
                kept.pop()
        elif dots not in _ONE_DOT:
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)
