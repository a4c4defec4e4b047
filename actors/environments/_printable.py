"""Show foreign text so that it stays one line and steers nothing: no id may forge a line of a log."""

from typing import Final


def shown(text: str, longest: int = 64) -> str:
    """A foreign text as one line of printable ASCII in quotes, cut in the middle of nowhere but said to be cut."""
    cut = ascii(text[:longest])
    return cut if len(text) <= longest else f"{cut} and {len(text) - longest} more characters"


def printable(text: str) -> str:
    """A foreign text in which nothing but printable characters is left as it was, so that it stays one line."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def time_text(seconds: float) -> str:
    """A span of time for people: at most three digits that count, the unit after it, never below a tenth of a ms."""
    if seconds < 0.001:
        return f"{max(round(seconds, 4), 0.0001):g} s"
    for most, unit_s, unit in _UNITS:
        if seconds < most:
            return f"{seconds / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:.0f} d"


_UNITS: Final = ((600, 1, "s"), (36_000, 60, "min"), (172_800, 3_600, "h"), (86_313_600, 86_400, "d"))


def brief(text: str, longest: int = 400) -> str:
    """A foreign text as one line of bounded length, said to be cut where it is."""
    cut = printable(text[:longest])
    return cut if len(text) <= longest else f"{cut} and {len(text) - longest} more characters"


def shown_url(url: str) -> str:
    """A URL in quotes, without what may be secret."""
    return repr(url_without_secrets(url))


def url_without_secrets(url: str) -> str:
    """A URL without what may be secret: who asks, the query and the fragment."""
    scheme, colon, rest = url.split("?", 1)[0].split("#", 1)[0].partition("://")
    authority, slash, path = rest.partition("/")
    return printable(f"{scheme}{colon}{authority.rpartition('@')[2]}{slash}{path}")
