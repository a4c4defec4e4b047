"""The values that the cells of one session store for each other: how much they take, and what changed since."""

import json as json_text
from typing import Final

STORED_BYTES_MAX: Final = 64 * 1024 * 1024
STORED_OF_HEAP: Final = 8
"""A process holds the values thrice while it takes them, beside what its cells need: they may be so small a part."""

_Change = tuple[int, str, int]


class StoredValues:
    """Values by key, as JSON, of which at most so many bytes are kept; what does not fit changes nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._values: dict[str, _Change] = {}
        self._change = 0
        self.bytes_max: int = bytes_max
        """What keys and values may take together, in UTF-8, both spelled in JSON."""
        self.bytes: int = 0
        """What they take."""
        self.refused: int = 0
        """How many values were not taken because there was no room."""

    def since(self, change: int, /) -> tuple[int, list[tuple[str, str]]]:
        """Return the latest change and the values changed since an earlier one."""
        if change == self._change:
            return change, []
        return self._change, [(key, value) for key, (at, value, _) in self._values.items() if at > change]

    def commit(self, writes: dict[str, str], /) -> str | None:
        """Take the values of a cell, all or none; return why none were taken."""
        if not writes:
            return None
        sizes = {key: size_of(key, value) for key, value in writes.items()}
        held = self.bytes - sum(self._values[key][2] for key in writes if key in self._values)
        needed = sum(sizes.values())
        if held + needed > self.bytes_max:
            self.refused += len(writes)
            return (
                f"exec cell's stored values were not kept: they take {needed} bytes, and its session stores {held}"
                f" bytes beside them, of at most {self.bytes_max}"
            )
        self.bytes = held + needed
        self._change += 1
        for key, value in writes.items():
            self._values[key] = (self._change, value, sizes[key])
        return None


def size_of(key: str, value: str) -> int:
    """Return what one value takes."""
    return len(json_text.dumps(key, ensure_ascii=False).encode()) + len(value.encode())
