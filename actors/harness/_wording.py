"""Times and addresses as errors show them."""

import re
from typing import Final

_PLACE: Final = re.compile(r"(\[[^\[\]@]*\]|[^:@\[\]]*)(:\d*)?")


def duration_text(seconds: float) -> str:
    """Write a time as the other implementation does: `10s`, `1.5s`, `100ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.6g}ms"
    return f"{seconds:.9g}s"


def shown_text(text: str, longest: int = 200) -> str:
    """A text in quotes, on one line and not too long."""
    return ascii(text) if len(text) <= longest else f"{text[:longest]!a} and {len(text) - longest} more characters"


def shown_url(url: str) -> str:
    """Cut everything a URL may keep secret: query, fragment, user and password."""
    bare = url.partition("#")[0].partition("?")[0]
    scheme, mark, rest = bare.partition("://")
    place, slash, path = rest.partition("/")
    if "@" not in place and not _PLACE.fullmatch(place):
        place, slash, path = rest, "", ""  # A slash in a password, perhaps: rather too little than that.
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}"
