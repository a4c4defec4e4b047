"""Who may ask for what. Tokens are kept as digests only: what is looked up is no secret any more."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from actors.rendezvous._settings import check_kind

__all__ = ["Grant", "TokenBook", "digest"]


def digest(secret: str) -> bytes:
    """Give what a secret is looked up by. Its secrets are random and long, so one round is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _checked_token(instance: "Grant", attribute: object, value: str) -> None:
    check_kind("token", value, str)
    if len(value) < 16 or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("a token is at least 16 printable ASCII characters without a space")


def _of(kind: type, *, hint: str = "") -> Callable[[Any, Any, Any], None]:
    """A validator of attrs: of this kind."""
    return lambda instance, attribute, value: check_kind(attribute.name, value, kind, hint=hint)


def _checked_ids(instance: "Grant", attribute: object, value: frozenset[str] | None) -> None:
    if value is None:
        return
    check_kind("environments", value, frozenset, hint="; write frozenset({...}), or leave it out for every id")
    for each in value:
        check_kind("each of environments", each, str)


@attrs.frozen(kw_only=True)
class Grant:
    """What the holder of one bearer token may do. Tenants do not see each other.

    Attributes:
        token: The bearer token, random and at least 16 characters long.
        name: Names the holder in statistics. No secret.
        tenant: Whose environments these are. The same id under two tenants is two environments.
        may_register: Whether it may register executors and validate harness keys.
        may_connect: Whether it may connect to executors.
        environments: The only environment ids it may name; every id when None.

    Raises:
        RendezvousSettingInvalid: A field is of another kind.
        ValueError: The token is too short, or no header can carry it.
    """

    token: str = attrs.field(repr=False, validator=_checked_token)
    name: str = attrs.field(validator=_of(str))
    tenant: str = attrs.field(default="default", validator=_of(str))
    may_register: bool = attrs.field(default=True, validator=_of(bool))
    may_connect: bool = attrs.field(default=True, validator=_of(bool))
    environments: frozenset[str] | None = attrs.field(default=None, validator=_checked_ids)

    def may_name(self, environment_id: str) -> bool:
        """Whether the holder may use this id at all."""
        return self.environments is None or environment_id in self.environments


class TokenBook:
    """All grants, found by token."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._by_digest: dict[bytes, Grant] = {}
        for grant in grants:
            if self._by_digest.setdefault(digest(grant.token), grant) is not grant:
                raise ValueError(f"the token of {grant.name!r} is given to somebody else as well")

    def find(self, authorization: str | None) -> Grant | None:
        """Read an `Authorization` header; the comparison is of digests, so its time tells nothing of the token."""
        scheme, _, token = (authorization or "").partition(" ")
        return self._by_digest.get(digest(token.strip())) if scheme.lower() == "bearer" else None

    def __repr__(self) -> str:
        """Show how many, and nothing else."""
        return f"<TokenBook of {len(self._by_digest)}>"
