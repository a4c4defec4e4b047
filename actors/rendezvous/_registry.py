"""Know which executor serves an environment, and who may meet it once. Bookkeeping: no clock, no entropy, no socket.

Everything here can be rebuilt: after a restart executors are told that their address is unknown, register again, and
harnesses ask again. So nothing is stored, and an environment that is not known is *offline*, not absent.
"""

import enum
import hashlib
import hmac
from collections.abc import Callable

import attrs

from actors.noise import PublicKey
from actors.rendezvous._limits import RendezvousLimits
from actors.rendezvous._tokens import Grant, digest

__all__ = ["Authorization", "Meeting", "Refused", "Registration", "Registry", "Trouble"]

MAX_ENVIRONMENT_ID = 256


class Trouble(enum.Enum):
    """Why a request is refused: HTTP status, code and sentence."""

    BAD_REQUEST = (400, "invalid_request", "the request is not one that this endpoint understands")
    UNAUTHORIZED = (401, "unauthorized", "a known bearer token is needed")
    FORBIDDEN = (403, "forbidden", "this token may not do that with this environment")
    NOT_FOUND = (404, "not_found", "there is nothing here")
    OFFLINE = (409, "environment_offline", "no executor of this environment is connected")
    STALE_REGISTRATION = (404, "registration_not_found", "this registration is not the environment's current one")
    TOO_MANY = (429, "rate_limited", "too many requests; try again later")
    # An executor in the field ends for good on 409 and 429, and retries this status with this code without limit.
    CONFLICT = (503, "registration_conflict", "another executor of this environment is connected; try again")
    BUSY = (503, "registration_conflict", "too many registrations; try again later")
    DRAINING = (503, "registration_conflict", "this rendezvous is about to stop; try again")

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value[0]


class Refused(Exception):
    """A request that is not served. Holds nothing of what was asked."""

    def __init__(self, trouble: Trouble, *, retry_after_s: float | None = None) -> None:
        super().__init__(trouble.value[2])
        self.trouble, self.retry_after_s = trouble, retry_after_s


@attrs.define(eq=False)
class Registration:
    """One executor's place. It lives until another takes it or its executor has been away for too long."""

    tenant: str
    """Whose it is."""
    environment_id: str
    """What it serves."""
    registration_id: str
    """Names it; no secret."""
    key_digest: bytes = attrs.field(repr=False)
    """The executor's key, to compare with."""
    key_fields: dict[str, str] = attrs.field(repr=False)
    """The executor's key, to give to harnesses."""
    ticket_digest: bytes = attrs.field(repr=False)
    """What the executor dials with."""
    is_connected: bool = False
    """Whether its executor is here."""
    away_since_s: float = 0.0
    """When its executor left, or registered and has not come yet."""


@attrs.define(eq=False)
class Authorization:
    """The right of one harness key to meet one executor once, on one stream."""

    registration: Registration
    """Whom it may meet."""
    key_digest: bytes = attrs.field(repr=False)
    """Who may. A key itself takes 10 KB, and there is one of these for each stream."""
    grant: Grant
    """On whose behalf."""
    expires_s: float
    """Until when."""
    secret_digest: bytes = attrs.field(repr=False)
    """What the executor shows to have it checked."""
    ticket_digest: bytes = attrs.field(repr=False)
    """What the harness dials with."""
    stream_id: str | None = None
    """The one stream it is good for; None until the harness has named it."""


@attrs.frozen
class Meeting:
    """What a harness is told: secrets in clear, for the answer and nowhere else."""

    registration: Registration
    """Whom it meets."""
    ticket: str = attrs.field(repr=False)
    """Goes into the address to dial."""
    secret: str = attrs.field(repr=False)
    """Goes to the executor, inside the handshake."""


class Registry:
    """All registrations and all authorizations that are not used up."""

    def __init__(self, limits: RendezvousLimits, fresh: Callable[[], str]) -> None:
        self._limits = limits
        self._fresh = fresh
        # Both name the same registrations.
        self._by_environment: dict[tuple[str, str], Registration] = {}
        self._by_ticket: dict[bytes, Registration] = {}
        # Both name the same authorizations, except that the ticket goes when the harness has dialled.
        self._by_secret: dict[bytes, Authorization] = {}
        self._by_harness_ticket: dict[bytes, Authorization] = {}
        self._outstanding: dict[str, int] = {}
        self.expired = 0

    @property
    def registrations(self) -> int:
        """How many registrations are kept."""
        return len(self._by_environment)

    @property
    def authorizations(self) -> int:
        """How many authorizations are not used up."""
        return len(self._by_secret)

    def register(self, grant: Grant, environment_id: str, key: PublicKey, now_s: float) -> tuple[Registration, str]:
        """Give an executor its place and the ticket to dial with.

        The same key gets the same registration again, so that its streams' bindings stay true. Another key takes the
        place of an executor that is away, and has to wait for one that is here.
        """
        place = (grant.tenant, environment_id)
        ticket = self._fresh()
        known = self._by_environment.get(place)
        if known is not None and hmac.compare_digest(known.key_digest, _digest_of(key)):
            del self._by_ticket[known.ticket_digest]
            known.ticket_digest = digest(ticket)
            self._by_ticket[known.ticket_digest] = known
            return known, ticket
        if known is not None and known.is_connected:
            raise Refused(Trouble.CONFLICT, retry_after_s=1.0)
        if known is None and len(self._by_environment) >= self._limits.max_environments:
            raise Refused(Trouble.BUSY, retry_after_s=5.0)
        if known is not None:
            self._forget(known)
        registration = Registration(
            grant.tenant,
            environment_id,
            f"reg_{self._fresh()}",
            _digest_of(key),
            key.to_fields(),
            digest(ticket),
            away_since_s=now_s,
        )
        self._by_environment[place] = self._by_ticket[registration.ticket_digest] = registration
        return registration, ticket

    def connect(self, grant: Grant, environment_id: str, key: PublicKey, now_s: float) -> Meeting:
        """Authorize one harness key to meet the environment's executor once."""
        registration = self._by_environment.get((grant.tenant, environment_id))
        if registration is None or not registration.is_connected:
            raise Refused(Trouble.OFFLINE)
        if self._outstanding.get(grant.name, 0) >= self._limits.max_authorizations_per_token:
            raise Refused(Trouble.TOO_MANY, retry_after_s=self._limits.authorization_s)
        meeting = Meeting(registration, self._fresh(), self._fresh())
        authorization = Authorization(
            registration,
            _digest_of(key),
            grant,
            now_s + self._limits.authorization_s,
            digest(meeting.secret),
            digest(meeting.ticket),
        )
        self._by_secret[authorization.secret_digest] = authorization
        self._by_harness_ticket[authorization.ticket_digest] = authorization
        self._outstanding[grant.name] = self._outstanding.get(grant.name, 0) + 1
        return meeting

    def validate(
        self, grant: Grant, environment_id: str, registration_id: str, key: PublicKey, secret: str, now_s: float
    ) -> bool:
        """Say whether this harness key may have its stream now. The authorization is used up by being asked about."""
        registration = self._by_environment.get((grant.tenant, environment_id))
        if registration is None or registration.registration_id != registration_id:
            raise Refused(Trouble.STALE_REGISTRATION)
        authorization = self._by_secret.get(digest(secret))
        if authorization is None or authorization.registration is not registration:
            return False
        self._use_up(authorization)
        return (
            hmac.compare_digest(authorization.key_digest, _digest_of(key))
            and authorization.stream_id is not None
            and now_s < authorization.expires_s
        )

    def executor_dials(self, ticket: str) -> Registration | None:
        """Find whose ticket it is. An executor may dial with it as often as it likes."""
        return self._by_ticket.get(digest(ticket))

    def executor_came(self, registration: Registration) -> None:
        """Note that an executor is connected."""
        registration.is_connected = True

    def executor_left(self, registration: Registration, now_s: float) -> None:
        """Note that an executor is gone; who was about to meet it asks again."""
        registration.is_connected, registration.away_since_s = False, now_s

    def harness_dials(self, ticket: str, now_s: float) -> Authorization | None:
        """Find whose ticket it is. It is good for one dial."""
        authorization = self._by_harness_ticket.pop(digest(ticket), None)
        if authorization is None or now_s >= authorization.expires_s or not authorization.registration.is_connected:
            return None
        return authorization

    def harness_left(self, authorization: Authorization) -> None:
        """Void what a harness has not used: its stream is gone."""
        self._use_up(authorization)

    def expire(self, now_s: float) -> None:
        """Drop what is over time."""
        for authorization in [a for a in self._by_secret.values() if now_s >= a.expires_s]:
            self._use_up(authorization)
            self.expired += 1
        idle = self._limits.registration_idle_s
        for registration in list(self._by_environment.values()):
            if not registration.is_connected and now_s - registration.away_since_s >= idle:
                self._forget(registration)
                self.expired += 1

    def _use_up(self, authorization: Authorization) -> None:
        if self._by_secret.pop(authorization.secret_digest, None) is None:
            return
        self._by_harness_ticket.pop(authorization.ticket_digest, None)
        left = self._outstanding[authorization.grant.name] - 1
        if left:
            self._outstanding[authorization.grant.name] = left
        else:
            del self._outstanding[authorization.grant.name]

    def _forget(self, registration: Registration) -> None:
        del self._by_environment[registration.tenant, registration.environment_id]
        del self._by_ticket[registration.ticket_digest]
        for authorization in [a for a in self._by_secret.values() if a.registration is registration]:
            self._use_up(authorization)


def _digest_of(key: PublicKey) -> bytes:
    """Both halves together: neither may be exchanged alone."""
    return hashlib.sha256(key.x25519 + key.mlkem768).digest()
