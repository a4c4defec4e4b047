"""Handles are given, not made: a class of this metaclass has no public constructor."""

from typing import Any, TypeVar

T = TypeVar("T")


class Given(type):
    """Metaclass of handles that only their owner can make."""

    def __call__(cls, *_: object, **__: object) -> Any:
        """Refuse to make one by hand."""
        raise TypeError(f"{cls.__name__} has no public constructor: it is given by an EnvironmentManager")

    def give(cls: type[T], *args: Any) -> T:
        """Make one; for the owner alone."""
        return type.__call__(cls, *args)  # type: ignore[no-any-return]  # What a type's call makes is of that type.
