"""Draw results as an SVG, by hand: one bar a number, as a share of what it stands beside, on a logarithmic scale."""

import math
from collections.abc import Sequence
from html import escape

from benchmarks._harness import Result

__all__ = ["plot"]

ROW_PX, LEFT_PX, WIDTH_PX, TOP_PX = 24, 380, 460, 46
DECADES = 2  # To either side of 1.
COLOURS = {True: "#2a7f4f", False: "#b3372f", None: "#5b6b82"}


def plot(results: Sequence[Result]) -> str:
    """Draw every result that has something beside it."""
    drawn = [result for result in results if result.beside_value and result.value]
    height = TOP_PX + ROW_PX * len(drawn) + 20
    marks = "".join(gridline(10.0**decade, height) for decade in range(-DECADES, DECADES + 1))
    bars = "".join(bar(row, result) for row, result in enumerate(drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT_PX + WIDTH_PX + 220}" height="{height}" '
        'font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
        '<text x="10" y="18" font-size="14">each number as a multiple of what stands beside it in the same run '
        "(green: bar met, red: missed)</text>\n"
        f"{marks}{bars}</svg>\n"
    )


def across(ratio: float) -> float:
    """Give the horizontal place of a ratio."""
    decade = max(-DECADES, min(DECADES, math.log10(ratio)))
    return LEFT_PX + WIDTH_PX * (decade + DECADES) / (2 * DECADES)


def gridline(ratio: float, height: int) -> str:
    x = across(ratio)
    return (
        f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="{height - 14}" stroke="#d5d9e0"/>'
        f'<text x="{x:.1f}" y="{height - 2}" text-anchor="middle" fill="#5b6b82">{ratio:g} x</text>\n'
    )


def bar(row: int, result: Result) -> str:
    assert result.beside_value, "only results with something beside them are drawn"
    ratio = result.value / result.beside_value
    y, one, end = TOP_PX + ROW_PX * row, across(1), across(ratio)
    return (
        f'<text x="{LEFT_PX - 8}" y="{y + 12}" text-anchor="end">{escape(result.question)}</text>'
        f'<rect x="{min(one, end):.1f}" y="{y}" width="{abs(end - one):.1f}" height="16" '
        f'fill="{COLOURS[result.met]}"/>'
        f'<text x="{LEFT_PX + WIDTH_PX + 10}" y="{y + 12}" fill="#5b6b82">{ratio:.2f} x '
        f"{escape(result.beside)}</text>\n"
    )
