"""Say which environment ids are accepted, and why one is not.

An accepted id is kept exactly as given and compared exactly: nothing is folded, trimmed or shortened, so two accepted
ids that differ are two environments everywhere. What could look like another id, forge a log line or steer a terminal
is refused, and shown escaped.
"""

import unicodedata
from typing import Final

from actors.environments._errors import InvalidEnvironmentId

MAX_ENVIRONMENT_ID_BYTES: Final = 256
"""The longest accepted id, in bytes of UTF-8."""

LOCAL_ENVIRONMENT_ID: Final = "local"
"""The id of the environment on this machine; only a manager itself gives it away."""

REMOTE_ENVIRONMENT_ID: Final = "remote"
"""The id of the one environment that a configuration by URL or by variables makes."""


def check_environment_id(environment_id: str) -> None:
    """Refuse an id that may not name an environment.

    Raises:
        InvalidEnvironmentId: It is empty, reserved, too long, or could be mistaken for another one.
    """
    if environment_id == "":
        raise InvalidEnvironmentId("environment id cannot be empty", environment_id)
    if environment_id == LOCAL_ENVIRONMENT_ID:
        sentence = f"environment id `{environment_id}` is reserved for EnvironmentManager"
        raise InvalidEnvironmentId(sentence, environment_id)
    if fault := _fault_of(environment_id):
        sentence = f"environment id {shown(environment_id)} is refused: {fault}"
        raise InvalidEnvironmentId(sentence, environment_id)


def shown(text: str, longest: int = 64) -> str:
    """A foreign text as one line of printable ASCII in quotes, cut in the middle of nowhere but said to be cut."""
    cut = ascii(text[:longest])
    return cut if len(text) <= longest else f"{cut} and {len(text) - longest} more characters"


def printable(text: str) -> str:
    """A foreign text in which nothing but printable characters is left as it was, so that it stays one line."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _fault_of(environment_id: str) -> str | None:
    if len(environment_id) > MAX_ENVIRONMENT_ID_BYTES:
        return f"it is longer than {MAX_ENVIRONMENT_ID_BYTES} bytes"
    if not environment_id.isprintable():
        position, character = next(both for both in enumerate(environment_id) if not both[1].isprintable())
        return f"character {character!a} at position {position} cannot be printed as itself"
    if environment_id.startswith(" ") or environment_id.endswith(" "):
        return "it begins or ends with ' '"
    if environment_id in {".", ".."}:
        return "it names a directory"
    if not unicodedata.is_normalized("NFC", environment_id):
        return f"it is not in normal form C; {shown(unicodedata.normalize('NFC', environment_id))} is"
    if len(environment_id.encode()) > MAX_ENVIRONMENT_ID_BYTES:
        return f"it is longer than {MAX_ENVIRONMENT_ID_BYTES} bytes"
    return None
