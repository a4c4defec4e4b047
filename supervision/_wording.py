"""Spans of time, and exceptions of users, as texts show them."""

from typing import Final

__all__: list[str] = []

CAUSE_CHARS_MAX: Final = 400
"""The longest text of an exception of a user in a sentence of ours; the exception itself stays whole beside it."""

_UNITS = ((600, 1, "s"), (36_000, 60, "min"), (172_800, 3_600, "h"))


def span_text(seconds: float) -> str:
    """At most three digits that count, the unit after them, nothing below a tenth of a millisecond."""
    shown_s = max(round(seconds, 4), 0.0)
    for most, unit_s, unit in _UNITS:
        if shown_s < most:
            return f"{shown_s / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:.0f} d"


def cause_text(error: BaseException | None) -> str:
    """The repr of a user's exception: bounded, and never a failure of its own."""
    try:
        text = repr(error)
    except Exception:  # It is the user's, and may raise anything; our sentence must not fail with it.
        return f"<{type(error).__qualname__}, whose repr raised>"
    if len(text) <= CAUSE_CHARS_MAX:
        return text
    return f"{text[:CAUSE_CHARS_MAX]} and {len(text) - CAUSE_CHARS_MAX} more characters"
