"""Times and addresses as errors show them."""

from urllib.parse import urlsplit


def duration_text(seconds: float) -> str:
    """Write a time as the other implementation does: `10s`, `1.5s`, `100ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.6g}ms"
    return f"{seconds:.9g}s"


def shown_url(url: str) -> str:
    """Cut everything a URL may keep secret: query, fragment, user and password."""
    bare = url.partition("#")[0].partition("?")[0]
    parts = urlsplit(bare)
    return bare if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
