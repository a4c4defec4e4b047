"""What an environment offers once it is ready, and the rules that such information must meet.

Nothing partial is ever kept: information is accepted whole or refused whole, and the order of roots is theirs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, cast

import attrs

from actors.environments._demands import a_text, all_of
from actors.environments._errors import InvalidReadyInfo, ProtocolError

MAX_SELECTED_CAPABILITY_ROOTS: Final = 256
"""The most roots one ready information may hold; this many are still accepted."""


def _check_file_uri(_root: object, _field: object, path: str) -> None:
    scheme, colon, rest = path.partition(":")
    if not colon or scheme.lower() != "file" or not rest.startswith("/"):
        raise ProtocolError(f"path of a selected capability root must be a file: URI, got {ascii(path)[:120]}")


@attrs.frozen(kw_only=True)
class SelectedCapabilityRoot:
    """One directory of an environment from which capabilities are read.

    Raises:
        ProtocolError: The path is not a ``file:`` URI.

    Attributes:
        id: How the root is called; unique within one ready information.
        environment_id: The environment that holds the directory.
        path: Where it is, as a ``file:`` URI.
    """

    id: str = attrs.field(validator=a_text)
    environment_id: str = attrs.field(validator=a_text)
    path: str = attrs.field(validator=[a_text, _check_file_uri])

    def to_json(self) -> dict[str, Any]:
        """The root as it is written on the wire."""
        location = {"type": "environment", "environmentId": self.environment_id, "path": self.path}
        return {"id": self.id, "location": location}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read a root as it is written on the wire; members it does not know are ignored.

        Raises:
            ProtocolError: A member is missing or has the wrong shape; it is named.
        """
        root = _mapping(value, "selected capability root")
        location = _mapping(root.get("location"), "location")
        if location.get("type") != "environment":
            raise ProtocolError(f"location type {ascii(location.get('type'))[:60]} is unknown, expected 'environment'")
        return cls(
            id=_text(root, "id"),
            environment_id=_text(location, "environmentId"),
            path=_text(location, "path"),
        )


def _as_roots(roots: Iterable[SelectedCapabilityRoot]) -> tuple[SelectedCapabilityRoot, ...]:
    return all_of("selected_capability_roots", roots, _is_root, "it must hold SelectedCapabilityRoots alone")


def _is_root(value: object) -> bool:
    return isinstance(value, SelectedCapabilityRoot)


@attrs.frozen(kw_only=True)
class ReadyInfo:
    """What whoever provisioned an environment tells its users.

    Attributes:
        selected_capability_roots: In the order given; an empty list is valid and differs from never having been told.
    """

    selected_capability_roots: tuple[SelectedCapabilityRoot, ...] = attrs.field(default=(), converter=_as_roots)


def check_ready_info(info: ReadyInfo, environment_id: str) -> None:
    """Refuse information that may not be kept for this environment: first the number of roots, then each in order.

    Raises:
        InvalidReadyInfo: There are too many roots, or one is blank, doubled or of another environment.
    """
    roots = info.selected_capability_roots
    if len(roots) > MAX_SELECTED_CAPABILITY_ROOTS:
        raise InvalidReadyInfo.too_many(environment_id, MAX_SELECTED_CAPABILITY_ROOTS)
    seen: set[str] = set()
    for root in roots:
        # The name is compared as given: " a" and "a" are two names, and only a wholly blank one is none.
        if not root.id.strip() or root.environment_id != environment_id or root.id in seen:
            raise InvalidReadyInfo.bad_root(environment_id, root.id)
        seen.add(root.id)


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProtocolError(f"{what} must be an object, got {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _text(value: Mapping[str, Any], field: str) -> str:
    text = value.get(field)
    if not isinstance(text, str):
        raise ProtocolError(f"`{field}` of a selected capability root must be a string, got {type(text).__name__}")
    return text
