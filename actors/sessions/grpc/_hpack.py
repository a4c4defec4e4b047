"""hpack's encoder and decoder, remembering the header blocks that leave their tables as they are.

The second call to a method has the same headers as the first, written as a dozen bytes that point into the
table. As long as the table has not changed, the same headers are the same bytes and the reverse, so both are
looked up at once: a third of a small call's cost went here before (benchmarks/grpc.py).
"""

from collections.abc import Iterable
from typing import Any, Final

from hpack.hpack import Decoder, Encoder
from hpack.struct import HeaderTuple
from hpack.table import HeaderTable

_REMEMBERED_MAX: Final = 64


def _look(table: HeaderTable) -> tuple[object, int, int]:
    """Return what is another value after every change of a table: its newest entry, length and bound."""
    entries = table.dynamic_entries
    return (entries[0] if entries else None, len(entries), table.maxsize)


def _changed(before: tuple[object, int, int], after: tuple[object, int, int]) -> bool:
    return before[0] is not after[0] or before[1:] != after[1:]


class RememberingEncoder(Encoder):
    """Writes header blocks."""

    def __init__(self) -> None:
        super().__init__()
        # Valid for the table as it looked after the last block; emptied whenever it looks otherwise.
        self._blocks: dict[tuple[tuple[Any, ...], tuple[type, ...]], bytes] = {}
        self._looked = _look(self.header_table)
        # The same for blocks whose fields may all enter the table: their types need no look.
        self._again: dict[tuple[tuple[bytes, bytes], ...], bytes] = {}

    @property
    def header_table_size(self) -> int:
        """The size of the table that the peer allows."""
        return self.header_table.maxsize

    @header_table_size.setter
    def header_table_size(self, value: int) -> None:
        # Set twice to the same size, hpack forgets to tell of it, and the peer can read no further block.
        if value != self.header_table.maxsize:
            self.header_table.maxsize = value
            self.table_size_changes.append(value)

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        """Write a block."""
        fields = tuple(headers)
        # A field that must never enter the table equals one that may: only their types differ.
        key = (fields, tuple(map(type, fields)))
        before = _look(self.header_table)
        # A resized table must be told of once, and hpack forgets that it was resized when it is resized
        # twice.
        resized = self.header_table.resized or _changed(self._looked, before)
        if not resized and (known := self._blocks.get(key)) is not None:
            return known
        block = super().encode(fields, huffman)
        self._looked = _look(self.header_table)
        if resized or _changed(before, self._looked) or len(self._blocks) >= _REMEMBERED_MAX:
            self._blocks.clear()
            self._again.clear()
        else:
            self._blocks[key] = block
        return block

    def encode_again(self, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
        """Write a block of plain pairs that is written often."""
        table = self.header_table
        entries, (newest, length, bound) = table.dynamic_entries, self._looked
        same = len(entries) == length and (not length or entries[0] is newest) and table.maxsize == bound
        if same and not table.resized and (known := self._again.get(headers)) is not None:
            return known
        block = self.encode(headers)
        if block in self._blocks.values():
            self._again[headers] = block
        return block


class RememberingDecoder(Decoder):
    """Reads header blocks, always as bytes. A block read again is the same list again: do not change it."""

    def __init__(self, max_header_list_size: int) -> None:
        super().__init__(max_header_list_size)
        self._lists: dict[bytes, list[HeaderTuple]] = {}
        self.notes: dict[bytes, object] = {}
        """What somebody made of remembered blocks; forgotten with them."""

    def remembered(self, data: bytes) -> list[HeaderTuple] | None:
        """Look a block up; None when it has to be read."""
        return self._lists.get(data)

    def decode(self, data: bytes, raw: bool = False) -> list[HeaderTuple]:
        """Read a block."""
        known = self._lists.get(data)
        if known is not None:
            return known
        before = _look(self.header_table)
        headers = list(super().decode(data, raw=True))
        # A block that resizes the table must be read each time, even when the size stays the same.
        resizes = data[:1] and (data[0] & 0xE0) == 0x20
        if _changed(before, _look(self.header_table)) or len(self._lists) >= _REMEMBERED_MAX:
            self._lists.clear()
            self.notes.clear()
        elif not resizes:
            self._lists[data] = headers
        return headers
