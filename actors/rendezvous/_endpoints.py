"""What each HTTP endpoint asks and answers. Decides nothing about who may meet whom: the registry does."""

import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

import attrs

from actors.noise import NoiseError, PublicKey
from actors.rendezvous._answers import PROFILE
from actors.rendezvous._limits import RendezvousLimits
from actors.rendezvous._rates import RateMeter
from actors.rendezvous._registry import MAX_ENVIRONMENT_ID, Refused, Registry, Trouble
from actors.rendezvous._requests import HttpRequest
from actors.rendezvous._tokens import Grant, TokenBook

__all__ = ["Endpoints"]

_PREFIX = "/cloud/environment/"

Answer = dict[str, Any]


@attrs.define
class Endpoints:
    """The registry's three endpoints."""

    registry: Registry
    """Who serves what."""
    tokens: TokenBook
    """Who may ask."""
    limits: RendezvousLimits
    """How often."""
    dial_url: Callable[[str, str], str]
    """Makes an address from a role and a ticket."""
    meters: dict[str, RateMeter] = attrs.field(factory=dict[str, RateMeter])
    """Requests of each grant, by name."""
    validations: dict[bool, int] = attrs.field(factory=lambda: {True: 0, False: 0})
    """Harness keys found good and bad."""

    def answer(self, request: HttpRequest, now_s: float, *, draining: bool) -> Answer:
        """Answer one request.

        Raises:
            Refused: It is not served.
        """
        environment_id, action = _route(request)
        grant = self._authenticate(request, environment_id, action)
        self._meter(grant, action, now_s)
        if draining and action != "validate":
            raise Refused(Trouble.DRAINING, retry_after_s=1.0)
        fields = _fields_of(request.body)
        match action:
            case "register":
                return self._register(grant, environment_id, fields, now_s)
            case "connect":
                return self._connect(grant, environment_id, fields, now_s)
            case _:
                return self._validate(grant, environment_id, fields, now_s)

    def _authenticate(self, request: HttpRequest, environment_id: str, action: str) -> Grant:
        grant = self.tokens.find(request.header(b"authorization"))
        if grant is None:
            raise Refused(Trouble.UNAUTHORIZED)
        may = grant.may_connect if action == "connect" else grant.may_register
        if not may or not grant.may_name(environment_id):
            raise Refused(Trouble.FORBIDDEN)
        return grant

    def _meter(self, grant: Grant, action: str, now_s: float) -> None:
        meter = self.meters.get(grant.name)
        if meter is None:
            rate = self.limits.requests_per_s
            meter = self.meters[grant.name] = RateMeter(rate, 2 * rate, now_s)
        if not meter.try_take(now_s):
            trouble = Trouble.TOO_MANY if action == "connect" else Trouble.BUSY
            raise Refused(trouble, retry_after_s=max(1.0, meter.wait_s(now_s)))

    def _register(self, grant: Grant, environment_id: str, fields: Answer, now_s: float) -> Answer:
        if fields.get("security_profile") != PROFILE:
            raise Refused(Trouble.BAD_REQUEST)
        key = _key_in(fields, "executor_public_key")
        registration, ticket = self.registry.register(grant, environment_id, key, now_s)
        return {
            "environment_id": environment_id,
            "url": self.dial_url("executor", ticket),
            "security_profile": PROFILE,
            "executor_registration_id": registration.registration_id,
        }

    def _connect(self, grant: Grant, environment_id: str, fields: Answer, now_s: float) -> Answer:
        key = _key_in(fields, "harness_public_key")
        meeting = self.registry.connect(grant, environment_id, key, now_s)
        return {
            "environment_id": environment_id,
            "url": self.dial_url("harness", meeting.ticket),
            "security_profile": PROFILE,
            "executor_registration_id": meeting.registration.registration_id,
            "executor_public_key": meeting.registration.key_fields,
            "harness_key_authorization": meeting.secret,
        }

    def _validate(self, grant: Grant, environment_id: str, fields: Answer, now_s: float) -> Answer:
        registration_id = _text_in(fields, "executor_registration_id")
        secret = _text_in(fields, "harness_key_authorization")
        key = _key_in(fields, "harness_public_key")
        valid = self.registry.validate(grant, environment_id, registration_id, key, secret, now_s)
        self.validations[valid] += 1
        return {"valid": valid}


def _route(request: HttpRequest) -> tuple[str, str]:
    """Give environment id and action of a path."""
    path = request.path
    encoded, _, action = path.removeprefix(_PREFIX).partition("/")
    if not path.startswith(_PREFIX) or action not in ("register", "connect", "validate"):
        raise Refused(Trouble.NOT_FOUND)
    if request.method != "POST":
        raise Refused(Trouble.BAD_REQUEST)
    try:
        environment_id = unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        raise Refused(Trouble.BAD_REQUEST) from None
    # What cannot be printed could forge a line of a log.
    if not 0 < len(environment_id) <= MAX_ENVIRONMENT_ID or not environment_id.isprintable():
        raise Refused(Trouble.BAD_REQUEST)
    return environment_id, action


def _fields_of(body: bytes) -> Answer:
    try:
        fields: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(Trouble.BAD_REQUEST) from None
    if not isinstance(fields, dict):
        raise Refused(Trouble.BAD_REQUEST)
    return cast("Answer", fields)


def _text_in(fields: Answer, name: str) -> str:
    if not isinstance(text := fields.get(name), str):
        raise Refused(Trouble.BAD_REQUEST)
    return text


def _key_in(fields: Answer, name: str) -> PublicKey:
    try:
        return PublicKey.from_fields(fields.get(name))
    except NoiseError:
        raise Refused(Trouble.BAD_REQUEST) from None
