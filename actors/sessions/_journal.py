"""Remember what scripts stored, to put it back after a host was lost.

Hosts tell nobody what a script stores. So each script gets more before its first line, which reports every write as a
notification of a secret shape; those never reach a delegate. A write counts once its cell ended by itself and its
holder saw that: what a terminated cell wrote is dropped here as the host drops it.

Bounded: one value, and all values together. What is over a bound is not kept, and its key is named as such.
"""

import json
from typing import Final

from actors.sessions._cutting import byte_count

VALUE_BYTES_MAX: Final = 1024 * 1024
ALL_BYTES_MAX: Final = 8 * 1024 * 1024

# Reads back what was stored, so that the value's own code runs once. One line: the script's lines keep their numbers.
_PRELUDE: Final = (
    "{const s=store,l=load,n=notify,j=JSON.stringify,z=String;globalThis.store=(0,function(){"
    "let k=arguments[0];const v=arguments[1];if(typeof k!=='symbol'){try{k=z(k)}catch{}}s(k,v);const t=j(l(k));"
    "n(%s+j([k,t.length>%d?null:t]))})}"
)


class Journal:
    """The stored values of one session, over its generations."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._writes: dict[str, _Values] = {}
        self._values = _Values()

    @property
    def keys(self) -> tuple[str, ...]:
        """Everything known to be stored."""
        return tuple(self._values.by_key)

    @property
    def kept_keys(self) -> tuple[str, ...]:
        """What can be put back."""
        return tuple(key for key, value in self._values.by_key.items() if value is not None)

    def watched(self, source: str) -> str:
        """Return a script that reports what it stores."""
        watch = _PRELUDE % (json.dumps(self._mark), VALUE_BYTES_MAX)
        if not source.startswith("#!"):
            return watch + source
        # Such a line is none of the script's code only where it stands first.
        first, end, rest = source.partition("\n")
        return first + end + (watch if end else "") + rest

    def take(self, cell_id: str, text: str) -> bool:
        """Take a notification if it is a report. Returns whether it was."""
        if not text.startswith(self._mark):
            return False
        try:
            key, value = json.loads(text[len(self._mark) :])
        except (ValueError, RecursionError):
            return True  # Of our mark but not of our making: a script that read its own first line.
        if isinstance(key, str) and (value is None or isinstance(value, str)):
            self._writes.setdefault(cell_id, _Values()).write(key, value)
        return True

    def commit(self, cell_id: str) -> None:
        """Note that a cell ended by itself: what it wrote stands."""
        for key, value in self._writes.pop(cell_id, _Values()).by_key.items():
            self._values.write(key, value)

    def drop(self, cell_id: str) -> None:
        """Note that a cell was terminated: what it wrote never was."""
        self._writes.pop(cell_id, None)

    def restoring(self) -> str | None:
        """Return a script that stores everything again; None when there is nothing."""
        pairs = [[key, value] for key, value in self._values.by_key.items() if value is not None]
        if not pairs:
            return None
        return f"for(const [key,value] of {json.dumps(pairs)})store(key,JSON.parse(value))"

    def host_lost(self) -> None:
        """Note that every cell is gone: what running ones wrote never was."""
        self._writes.clear()

    def restored(self, keys: tuple[str, ...]) -> None:
        """Note that the new host knows these and no others."""
        known, self._values = self._values.by_key, _Values()
        for key in keys:
            self._values.write(key, known[key])


class _Values:
    """Values by key, in the order in which they were last written, within the bound for all of them."""

    def __init__(self) -> None:
        self.by_key: dict[str, str | None] = {}
        self._bytes = 0

    def write(self, key: str, value: str | None) -> None:
        """Keep a value, or only its key, as far as there is room."""
        if key in self.by_key:
            self._bytes -= byte_count(key) + byte_count(self.by_key.pop(key) or "")
        size = self._bytes + byte_count(key)
        if size > ALL_BYTES_MAX:
            return  # Not even its name has room: a script that stores this many names is not restored whole.
        kept = value if value is not None and size + byte_count(value) <= ALL_BYTES_MAX else None
        self.by_key[key] = kept
        self._bytes = size + byte_count(kept or "")
