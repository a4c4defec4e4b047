"""Spans of time as texts show them."""

_UNITS = ((600, 1, "s"), (36_000, 60, "min"), (172_800, 3_600, "h"))


def span_text(seconds: float) -> str:
    """At most three digits that count, the unit after them, nothing below a tenth of a millisecond."""
    shown_s = max(round(seconds, 4), 0.0)
    for most, unit_s, unit in _UNITS:
        if shown_s < most:
            return f"{shown_s / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:.0f} d"
