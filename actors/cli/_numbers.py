"""Numbers as they are typed, judged while the command line is read: the refusal names the option."""

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

__all__ = ["above_zero", "not_negative"]

N = TypeVar("N", int, float)


def above_zero(kind: Callable[[str], N], *, may_be_endless: bool = False) -> Callable[[str], N]:
    """Read a number that must be above 0."""
    return lambda text: _judged(text, kind, lambda value: value > 0, "above 0", may_be_endless=may_be_endless)


def not_negative(kind: Callable[[str], N]) -> Callable[[str], N]:
    """Read a number that may be 0 and not less."""
    return lambda text: _judged(text, kind, lambda value: value >= 0, "0 or more")


def _judged(
    text: str, kind: Callable[[str], N], fits: Callable[[N], bool], rule: str, *, may_be_endless: bool = False
) -> N:
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a {'whole ' * (kind is int)}number, not {text!a}") from None
    if math.isnan(value) or not fits(value):
        raise argparse.ArgumentTypeError(f"must be {rule}, not {text}")
    if math.isinf(value) and not may_be_endless:
        raise argparse.ArgumentTypeError(f"must be {rule} and not endless; leave it out where there is no limit")
    return value
