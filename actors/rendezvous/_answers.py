"""Judge what a registry answered: which answers are good, which errors come again, and what may be told of them.

Sentences are compared by tests and by peers: they stay word for word. A body is shown only where the spec shows it,
and that of a failed validation never: it could echo the authorization.
"""

import json
from typing import Any, cast

import attrs

from actors.noise import NoiseError, PublicKey
from actors.relay import RegistrarFailed, cut_url

__all__ = [
    "PROFILE",
    "HarnessConnection",
    "RegistryAnswerInvalid",
    "RegistryAuthFailed",
    "RegistryConfigInvalid",
    "RegistryError",
    "RegistryHttpFailed",
    "RegistryRequestFailed",
    "RemoteRegistration",
    "connection_of",
    "error_of",
    "is_retryable",
    "registration_of",
    "validation_error_of",
    "validity_of",
]

PROFILE = "noise_hybrid_ik_v1"
_BODY_CHARACTERS = 4096


class RegistryError(RegistrarFailed):
    """Root of what a registry client raises. `retryable` and `retry_after_s` tell whether and when to ask again."""


class RegistryConfigInvalid(RegistryError):
    """The client was set up with something that cannot work."""

    def __init__(self, text: str) -> None:
        super().__init__(f"environment registry configuration error: {text}", retryable=False)


class RegistryAuthFailed(RegistryError):
    """The registry does not accept our credentials."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text, retryable=False)
        self.status = status


class RegistryHttpFailed(RegistryError):
    """The registry answered with an error."""

    def __init__(
        self, text: str, status: int, code: str | None, *, retryable: bool, retry_after_s: float | None
    ) -> None:
        super().__init__(text, retryable=retryable, retry_after_s=retry_after_s)
        self.status: int = status
        self.code: str | None = code


class RegistryRequestFailed(RegistryError):
    """No answer came: where from, why, and what to look at. Whether the request was done is not known."""

    def __init__(self, what: str) -> None:
        super().__init__(f"environment registry request failed: {what}", retryable=True)


class RegistryAnswerInvalid(RegistryError):
    """The registry answered with something that is none of the answers there are."""

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text, retryable=retryable)


@attrs.frozen(kw_only=True)
class RemoteRegistration:
    """What `register` gives an executor.

    Attributes:
        environment_id: What is served.
        url: Where to dial; a secret from its first `?` on.
        executor_registration_id: Names the registration.
    """

    environment_id: str
    url: str = attrs.field(repr=cut_url)
    executor_registration_id: str


@attrs.frozen(kw_only=True)
class HarnessConnection:
    """What `connect` gives a harness: everything for one physical connection attempt.

    Attributes:
        websocket_url: Where to dial.
        environment_id: What the stream is bound to.
        executor_registration_id: What the stream is bound to.
        executor_public_key: Who must answer.
        harness_key_authorization: What the executor has checked.
    """

    websocket_url: str = attrs.field(repr=lambda url: "<redacted>")
    environment_id: str
    executor_registration_id: str
    executor_public_key: PublicKey
    harness_key_authorization: str = attrs.field(repr=lambda secret: "<redacted>")


def is_retryable(status: int, code: str | None) -> bool:
    """Whether an HTTP error may be gone the next time."""
    return status >= 500 or status in (408, 429) or (status == 409 and code == "environment_offline")


def _detail_of(body: bytes) -> tuple[str | None, str]:
    """Give the code and message of an error body."""
    text = body.decode("utf-8", "replace")
    try:
        error: Any = json.loads(text)["error"]
        code, message = error.get("code"), error.get("message")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        code, message = None, None
    if isinstance(message, str) and message:
        return (code if isinstance(code, str) else None), message
    return None, text.strip()[:_BODY_CHARACTERS] or "empty or malformed error body"


def error_of(status: int, body: bytes, retry_after_s: float | None) -> RegistryError:
    """Make the error of a refused `register` or `connect`."""
    code, message = _detail_of(body)
    if status in (401, 403):
        return RegistryAuthFailed(f"environment registry authentication failed ({status}): {message}", status)
    shown = f"{status}, {code}" if code is not None else str(status)
    return RegistryHttpFailed(
        f"environment registry request failed ({shown}): {message}",
        status,
        code,
        retryable=is_retryable(status, code),
        retry_after_s=retry_after_s,
    )


def validation_error_of(status: int, retry_after_s: float | None) -> RegistryError:
    """Make the error of a refused `validate`, which shows nothing of the body."""
    if status in (401, 403):
        text = f"environment registry harness key validation authentication failed ({status})"
        return RegistryAuthFailed(text, status)
    return RegistryHttpFailed(
        "environment registry harness key validation failed",
        status,
        None,
        retryable=is_retryable(status, None),
        retry_after_s=retry_after_s,
    )


def _members_of(body: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise RegistryAnswerInvalid("failed to serialize or deserialize exec-server JSON: not a JSON object")
    members = cast("dict[str, Any]", fields)
    for name in names:
        if name not in members:
            raise RegistryAnswerInvalid(f"failed to serialize or deserialize exec-server JSON: missing field `{name}`")
        if not isinstance(members[name], str):
            raise RegistryAnswerInvalid(f"failed to serialize or deserialize exec-server JSON: `{name}` is no string")
    return members


def _check_binding(fields: dict[str, Any], environment_id: str) -> None:
    if fields["environment_id"] != environment_id:
        raise RegistryAnswerInvalid("environment registry returned a different environment id")
    if fields["security_profile"] != PROFILE:
        # A profile is a word; whatever else stands there is not repeated at length.
        profile = fields["security_profile"][:64]
        raise RegistryAnswerInvalid(f"environment registry returned unsupported security profile `{profile}`")


def registration_of(body: bytes, environment_id: str) -> RemoteRegistration:
    """Read the answer to `register`."""
    fields = _members_of(body, ("environment_id", "url", "security_profile", "executor_registration_id"))
    _check_binding(fields, environment_id)
    if not fields["url"].strip() or not fields["executor_registration_id"].strip():
        # Executors in the field keep such a registration and redial it for ever.
        raise RegistryAnswerInvalid("environment registry returned incomplete registration data", retryable=True)
    return RemoteRegistration(
        environment_id=environment_id,
        url=fields["url"],
        executor_registration_id=fields["executor_registration_id"],
    )


def connection_of(body: bytes, environment_id: str) -> HarnessConnection:
    """Read the answer to `connect`."""
    fields = _members_of(
        body,
        ("environment_id", "url", "security_profile", "executor_registration_id", "harness_key_authorization"),
    )
    _check_binding(fields, environment_id)
    needed = ("url", "executor_registration_id", "harness_key_authorization")
    if not all(fields[name].strip() for name in needed):
        raise RegistryAnswerInvalid("environment registry returned incomplete Noise connection data")
    try:
        key = PublicKey.from_fields(fields.get("executor_public_key"))
    except NoiseError as error:
        raise RegistryAnswerInvalid(str(error)) from error
    return HarnessConnection(
        websocket_url=fields["url"],
        environment_id=environment_id,
        executor_registration_id=fields["executor_registration_id"],
        executor_public_key=key,
        harness_key_authorization=fields["harness_key_authorization"],
    )


def validity_of(body: bytes) -> bool:
    """Read the answer to `validate`."""
    fields = _members_of(body, ())
    if not isinstance(valid := fields.get("valid"), bool):
        raise RegistryAnswerInvalid("failed to serialize or deserialize exec-server JSON: missing field `valid`")
    return valid
