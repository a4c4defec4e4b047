"""Who may ask for what. Tokens are kept as digests only: what is looked up is no secret any more."""

import hashlib
from collections.abc import Iterable

import attrs

__all__ = ["Grant", "TokenBook", "digest"]


def digest(secret: str) -> bytes:
    """Give what a secret is looked up by. Its secrets are random and long, so one round is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _checked_token(instance: "Grant", attribute: object, value: str) -> None:
    if len(value) < 16 or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("a token is at least 16 printable ASCII characters without a space")


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
    """

    token: str = attrs.field(repr=False, validator=_checked_token)
    name: str
    tenant: str = "default"
    may_register: bool = True
    may_connect: bool = True
    environments: frozenset[str] | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(frozenset))
    )

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
