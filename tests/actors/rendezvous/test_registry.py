"""Who serves an environment and who may meet it: single use, bound to everything, and bounded."""

import itertools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from actors.noise import Identity, PublicKey
from actors.rendezvous import Grant, RendezvousLimits
from actors.rendezvous._registry import Authorization, Meeting, Refused, Registration, Registry, Trouble

KEYS = [Identity.generate().public_key for _ in range(3)]
# The same X25519 half with another ML-KEM half: neither may be exchanged alone.
HALF = PublicKey(x25519=KEYS[0].x25519, mlkem768=KEYS[1].mlkem768)
GRANT = Grant(token="a-token-of-one-tenant", name="one")
OTHER = Grant(token="a-token-of-another-one", name="other", tenant="other")


def new(**limits: float) -> Registry:
    numbers = itertools.count()
    return Registry(RendezvousLimits(**limits), lambda: f"secret-{next(numbers)}")  # type: ignore[arg-type]


def online(registry: Registry, key: PublicKey = KEYS[0], environment_id: str = "env") -> Registration:
    registration, ticket = registry.register(GRANT, environment_id, key, 0.0)
    assert registry.executor_dials(ticket) is registration
    registry.executor_came(registration)
    return registration


def met(registry: Registry, now_s: float = 0.0, stream_id: str | None = "stream") -> tuple[Meeting, Authorization]:
    meeting = registry.connect(GRANT, "env", KEYS[1], now_s)
    authorization = registry.harness_dials(meeting.ticket, now_s)
    assert authorization is not None
    authorization.stream_id = stream_id
    return meeting, authorization


def valid(registry: Registry, meeting: Meeting, **other: object) -> bool:
    asked = {
        "grant": GRANT,
        "environment_id": "env",
        "registration_id": meeting.registration.registration_id,
        "key": KEYS[1],
        "secret": meeting.secret,
        "now_s": 1.0,
    }
    return registry.validate(**{**asked, **other})  # type: ignore[arg-type]


def test_an_authorization_is_good_once() -> None:
    registry = new()
    online(registry)
    meeting, _ = met(registry)

    assert valid(registry, meeting)
    assert not valid(registry, meeting)


@pytest.mark.parametrize(
    "other",
    [{"key": KEYS[2]}, {"key": HALF}, {"secret": "a guess"}, {"now_s": 60.0}],
    ids=["another key", "half of another key", "a guess", "too late"],
)
def test_an_authorization_is_bound_to_both_halves_of_the_key_its_secret_and_its_time(other: dict[str, object]) -> None:
    registry = new()
    online(registry)
    meeting, _ = met(registry)

    assert not valid(registry, meeting, **other)


def test_asking_with_the_wrong_key_uses_the_authorization_up() -> None:
    registry = new()
    online(registry)
    meeting, _ = met(registry)
    assert not valid(registry, meeting, key=KEYS[2])

    assert not valid(registry, meeting)


def test_an_authorization_is_bound_to_a_stream_that_its_harness_has_named_and_not_left() -> None:
    registry = new()
    online(registry)
    unnamed, _ = met(registry, stream_id=None)
    left, authorization = met(registry)
    registry.harness_left(authorization)
    undialled = registry.connect(GRANT, "env", KEYS[1], 0.0)

    assert not valid(registry, unnamed)
    assert not valid(registry, left)
    assert not valid(registry, undialled)


def test_an_authorization_is_bound_to_its_registration_and_environment() -> None:
    registry = new()
    online(registry)
    elsewhere = online(registry, KEYS[2], "elsewhere")
    meeting, _ = met(registry)

    assert not valid(registry, meeting, environment_id="elsewhere", registration_id=elsewhere.registration_id)
    with pytest.raises(Refused) as caught:
        valid(registry, meeting, registration_id=elsewhere.registration_id)
    assert caught.value.trouble is Trouble.STALE_REGISTRATION
    with pytest.raises(Refused):
        valid(registry, meeting, grant=OTHER)


def test_a_harness_ticket_is_good_for_one_dial_in_time_while_the_executor_is_here() -> None:
    registry = new()
    registration = online(registry)
    meetings = [registry.connect(GRANT, "env", KEYS[1], 0.0) for _ in range(3)]

    assert registry.harness_dials(meetings[0].ticket, 1.0) is not None
    assert registry.harness_dials(meetings[0].ticket, 1.0) is None
    assert registry.harness_dials(meetings[1].ticket, 60.0) is None
    registry.executor_left(registration, 2.0)
    assert registry.harness_dials(meetings[2].ticket, 3.0) is None


def test_an_environment_without_an_executor_is_offline_known_or_not() -> None:
    registry = new()
    registration = online(registry)
    registry.executor_left(registration, 1.0)

    for environment_id in ("env", "never seen"):
        with pytest.raises(Refused) as caught:
            registry.connect(GRANT, environment_id, KEYS[1], 2.0)
        assert caught.value.trouble is Trouble.OFFLINE


def test_tenants_do_not_see_each_other() -> None:
    registry = new()
    online(registry)

    with pytest.raises(Refused):
        registry.connect(OTHER, "env", KEYS[1], 0.0)
    mine, _ = registry.register(OTHER, "env", KEYS[2], 0.0)
    assert mine.tenant == "other"


def test_the_same_key_gets_the_same_registration_and_a_new_ticket() -> None:
    registry = new()
    first, ticket = registry.register(GRANT, "env", KEYS[0], 0.0)
    second, renewed = registry.register(GRANT, "env", KEYS[0], 0.0)

    assert first is second
    assert registry.executor_dials(ticket) is None
    assert registry.executor_dials(renewed) is first


def test_another_key_waits_for_an_executor_that_is_here_and_replaces_one_that_is_away() -> None:
    registry = new()
    registration = online(registry)
    meeting, _ = met(registry)
    with pytest.raises(Refused) as caught:
        registry.register(GRANT, "env", KEYS[2], 0.0)
    assert (caught.value.trouble.value[:2], caught.value.retry_after_s) == ((503, "registration_conflict"), 1.0)
    registry.executor_left(registration, 1.0)

    replaced, _ = registry.register(GRANT, "env", KEYS[2], 2.0)
    assert replaced.registration_id != registration.registration_id
    with pytest.raises(Refused):
        valid(registry, meeting)
    assert registry.authorizations == 0


def test_everything_is_bounded_and_what_is_over_time_goes() -> None:
    registry = new(max_environments=2, max_authorizations_per_token=3, registration_idle_s=100)
    registration = online(registry)
    online(registry, KEYS[2], "second")
    with pytest.raises(Refused) as caught:
        registry.register(GRANT, "third", KEYS[2], 0.0)
    assert caught.value.trouble is Trouble.BUSY
    for _ in range(3):
        registry.connect(GRANT, "env", KEYS[1], 0.0)
    with pytest.raises(Refused) as caught:
        registry.connect(GRANT, "env", KEYS[1], 0.0)
    assert caught.value.trouble is Trouble.TOO_MANY

    registry.executor_left(registration, 10.0)
    registry.expire(60.0)
    assert (registry.authorizations, registry.registrations) == (0, 2)
    registry.expire(110.0)
    assert (registry.registrations, registry.expired) == (1, 4)


def test_no_secret_is_in_any_repr() -> None:
    registry = new()
    registration = online(registry)
    meeting, authorization = met(registry)
    shown = "".join(map(repr, (registration, meeting, authorization, GRANT)))

    assert "secret" not in shown.replace("reg_secret", "")
    assert "a-token" not in shown


class Registering(RuleBasedStateMachine):
    """Any mixture of executors coming and going, harnesses and time: nothing is good twice, nothing is left over."""

    @initialize()
    def begin(self) -> None:
        self.registry = new(max_authorizations_per_token=5)
        self.now_s = 0.0
        self.here: Registration | None = None
        self.tickets: dict[str, Registration] = {}
        self.meetings: list[tuple[Meeting, float, Registration]] = []
        self.dialled: dict[str, Authorization] = {}
        self.used: set[str] = set()
        self.register(KEYS[0])
        self.come_back()

    @rule(gap_s=st.sampled_from([0.5, 0.5, 0.5, 20, 61, 4000]))
    def wait(self, gap_s: float) -> None:
        self.now_s += gap_s
        self.registry.expire(self.now_s)

    @rule(key=st.sampled_from(KEYS[:2]))
    def register(self, key: PublicKey) -> None:
        try:
            registration, ticket = self.registry.register(GRANT, "env", key, self.now_s)
        except Refused as refused:
            trouble = refused.trouble
            assert trouble is Trouble.CONFLICT
            assert self.here is not None
        else:
            assert self.here in (None, registration), "nobody takes the place of an executor that is here"
            self.tickets = {t: r for t, r in self.tickets.items() if r is not registration}
            self.tickets[ticket] = registration

    @precondition(lambda self: self.tickets and self.here is None)
    @rule(data=st.data())
    def come(self, data: st.DataObject) -> None:
        self.come_back(data.draw(st.sampled_from(sorted(self.tickets))))

    def come_back(self, ticket: str = "secret-0") -> None:
        registration = self.registry.executor_dials(ticket)
        if registration is not None:
            self.here = registration
            self.registry.executor_came(registration)

    @precondition(lambda self: self.here is not None)
    @rule(sure=st.integers(0, 3))
    def leave(self, sure: int) -> None:
        assert self.here is not None
        if sure < 3:
            return
        self.registry.executor_left(self.here, self.now_s)
        self.here = None

    @rule()
    def connect(self) -> None:
        try:
            meeting = self.registry.connect(GRANT, "env", KEYS[2], self.now_s)
        except Refused as refused:
            trouble = refused.trouble
            assert (trouble is Trouble.OFFLINE) == (self.here is None)
        else:
            assert meeting.registration is self.here
            self.meetings.append((meeting, self.now_s, meeting.registration))

    @precondition(lambda self: self.meetings)
    @rule(data=st.data())
    def dial(self, data: st.DataObject) -> None:
        meeting, made_s, registration = data.draw(st.sampled_from(self.meetings))
        authorization = self.registry.harness_dials(meeting.ticket, self.now_s)
        if authorization is not None:
            assert meeting.ticket not in self.dialled, "a ticket was good twice"
            assert self.now_s < made_s + 60
            assert registration is self.here
            authorization.stream_id = "stream"
            self.dialled[meeting.ticket] = authorization

    @precondition(lambda self: self.dialled)
    @rule(data=st.data())
    def dial_again(self, data: st.DataObject) -> None:
        assert self.registry.harness_dials(data.draw(st.sampled_from(sorted(self.dialled))), self.now_s) is None

    @precondition(lambda self: self.dialled)
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.dialled)))
        self.registry.harness_left(self.dialled[ticket])
        self.used.add(ticket)

    @precondition(lambda self: self.meetings)
    @rule(data=st.data(), key=st.sampled_from(KEYS))
    def validate(self, data: st.DataObject, key: PublicKey) -> None:
        meeting, made_s, registration = data.draw(st.sampled_from(self.meetings))
        try:
            good = self.registry.validate(GRANT, "env", registration.registration_id, key, meeting.secret, self.now_s)
        except Refused as refused:
            trouble = refused.trouble
            assert trouble is Trouble.STALE_REGISTRATION
            return
        expected = key == KEYS[2] and meeting.ticket in self.dialled
        assert not good or (expected and meeting.ticket not in self.used and self.now_s < made_s + 60)
        self.used.add(meeting.ticket)
        again = self.registry.validate(GRANT, "env", registration.registration_id, KEYS[2], meeting.secret, self.now_s)
        assert not again, "an authorization was good twice"

    @invariant()
    def it_is_bounded(self) -> None:
        assert self.registry.authorizations <= 5
        assert self.registry.registrations <= 1
        assert len(self.registry._by_harness_ticket) <= self.registry.authorizations
        assert sum(self.registry._outstanding.values()) == self.registry.authorizations


class TestRegistering(Registering.TestCase):
    """Mutants: `validate` forgets `_use_up`; `harness_dials` gets the ticket without popping; `_forget` keeps them."""

    settings = settings(stateful_step_count=40)
