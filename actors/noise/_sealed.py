"""Objects that hold keys: one of each, never two, and nothing of them in any text.

A copied channel would seal two records under one nonce; a pickled identity would leave the process.
"""

from typing import Any, NoReturn


class Sealed:
    """Refuse copying, pickling and state export; show no field in `repr`."""

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} (redacted)>"

    def __copy__(self) -> NoReturn:
        raise self._refusal("copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise self._refusal("copied")

    def __replace__(self, /, **changes: Any) -> NoReturn:
        raise self._refusal("copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self._refusal("pickled")

    def __reduce__(self) -> NoReturn:
        raise self._refusal("pickled")

    def __getstate__(self) -> NoReturn:
        raise self._refusal("pickled")

    def _refusal(self, done: str) -> TypeError:
        return TypeError(f"a {type(self).__name__} cannot be {done}: it holds keys that must exist once")
