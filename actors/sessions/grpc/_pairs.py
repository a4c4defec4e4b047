"""Metadata as a value: what travels beside the messages of a call."""

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

MetadataLike = Iterable[tuple[str, str | bytes]]


@attrs.frozen(repr=False)
class Metadata:
    """Pairs in the order they came; a key may come more than once.

    Attributes:
        pairs: Lower-case keys; bytes under keys that end in `-bin`, text under all others.
    """

    pairs: tuple[tuple[str, str | bytes], ...] = ()

    def __repr__(self) -> str:
        # Values stay out: metadata carries credentials.
        return f"Metadata({', '.join(key for key, _ in self.pairs)})"

    def __iter__(self) -> Iterator[tuple[str, str | bytes]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def get(self, key: str) -> str | bytes | None:
        """Return the first value of a key, or None."""
        return next((value for name, value in self.pairs if name == key), None)

    def text(self, key: str) -> str | None:
        """Return the first value of a text key, or None."""
        value = self.get(key)
        return value if isinstance(value, str) else None

    def get_all(self, key: str) -> list[str | bytes]:
        """Return every value of a key, in order."""
        return [value for name, value in self.pairs if name == key]


NO_METADATA: Final = Metadata()
