"""The whole manager against a plain model: any steps in any order, several ids, several generations.

Mutants planted one at a time in the library, each seen killed by this test:

 1. `Roster.free` forgets the generation (generations restart at 1);
 2. `Lifecycle._lose_id` never abandons a provisioned environment whose id went away;
 3. `Provisioning.handle` lets a second failure replace the first message;
 4. `Lifecycle._move_gate` begins no attempt when the gate opens after the start was asked for;
 5. `Lifecycle._begin_if_due` ignores the gate (the provider is called while pending);
 6. `Registration._claim` lets a completion through after a failure or a deadline;
 7. `_take_readiness` accepts readiness after a failure without `recover`;
 8. `Registration.complete` does not fail the gate on invalid information;
 9. `Environment.__del__` never posts (what nobody holds stays alive);
10. `Lifecycle._close` leaves a pending gate pending;
11. `vacate` in `_manager_of` frees the id also of a successor;
12. `Provisioning.handle` opens the gate when information is published;
13. `admit` does not tell the one it replaces;
14. `Body._tell` wakes nobody;
15. `Registration.__del__` posts nothing;
16. `keep_deadlines` expires nobody.
"""

import gc
import warnings
from typing import Any

import trio
from hypothesis import event, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import ActorsError
from actors.environments import (
    AlreadyFailed,
    AlreadyReady,
    ConnectFailed,
    ConnectProvider,
    Environment,
    EnvironmentClosed,
    EnvironmentManager,
    EnvironmentUnavailable,
    GateMoved,
    InvalidReadyInfo,
    ProvisioningConflict,
    ReadyInfo,
    Registration,
    RegistrationInactive,
    RegistrationUsed,
    SelectedCapabilityRoot,
    UnknownEnvironment,
)
from actors.environments.testing import FailingProvider, ScriptedProvider, open_manager_in_memory
from tests.actors.environments.plain_model import PlainEnvironment, PlainManager, PlainWait
from tests.actors.environments.waiting import Wait

KEYS = st.sampled_from(["a", "b"])
WORKS = st.booleans()
VALID = st.sampled_from([True, True, True, False])
ROOTS = st.sampled_from([(), ("r",), ("r", "s")])
PICK = st.integers(0, 50)
STEP = st.one_of(
    st.tuples(st.just("register"), KEYS, WORKS, st.sampled_from([None, None, 10.0, 20.0])),
    st.tuples(st.just("upsert"), KEYS, WORKS),
    st.tuples(st.just("materialize"), KEYS, WORKS),
    st.tuples(st.just("report"), KEYS, WORKS, st.one_of(st.none(), ROOTS), VALID, st.booleans()),
    st.tuples(st.just("report"), KEYS, WORKS, st.one_of(st.none(), ROOTS), VALID, st.booleans()),
    st.tuples(st.just("report"), KEYS, WORKS, st.one_of(st.none(), ROOTS), VALID, st.booleans()),
    st.tuples(st.just("publish"), KEYS, ROOTS, VALID),
    st.tuples(st.just("register"), KEYS, WORKS, st.just(10.0)),
    st.tuples(st.just("complete"), PICK, ROOTS, VALID),
    st.tuples(st.just("complete"), PICK, ROOTS, VALID),
    st.tuples(st.just("fail"), PICK),
    st.tuples(st.just("abandon"), PICK),
    st.tuples(st.just("lose"), PICK, st.booleans()),
    st.tuples(st.just("wait"), PICK),
    st.tuples(st.just("wait"), PICK),
    st.tuples(st.just("cancel"), PICK),
    st.tuples(st.just("remove"), KEYS),
    st.tuples(st.just("let_go"), PICK),
    st.tuples(st.just("aclose"), PICK),
    st.tuples(st.just("sleep"), st.sampled_from([5.0, 10.0])),
)
STEPS = st.lists(st.tuples(STEP, st.booleans()), min_size=12, max_size=40)
KINDS_OF_ERRORS: list[tuple[type[Exception], str]] = [
    (InvalidReadyInfo, "invalid"),
    (UnknownEnvironment, "unknown"),
    (RegistrationUsed, "used"),
    (RegistrationInactive, "inactive"),
    (ProvisioningConflict, "conflict"),
    (AlreadyReady, "already ready"),
    (AlreadyFailed, "already failed"),
]


def info_of(key: str, roots: tuple[str, ...], *, valid: bool) -> ReadyInfo:
    ids = roots if valid else (*roots, "")
    return ReadyInfo(
        selected_capability_roots=[
            SelectedCapabilityRoot(id=root, environment_id=key, path="file:///r") for root in ids
        ]
    )


class Pair:
    """One environment: the real handle while it is held, and what the model says of it."""

    def __init__(self, plain: PlainEnvironment, provider: Any, environment: Environment | None) -> None:
        self.plain, self.provider, self.environment = plain, provider, environment
        self.registration: Registration | None = None
        self.waits: list[tuple[Wait, PlainWait]] = []


class World:
    """A manager and its model, moved in step."""

    def __init__(self, manager: EnvironmentManager, nursery: trio.Nursery, clock: MockClock, events: Any) -> None:
        self.manager, self.nursery, self.clock, self.events = manager, nursery, clock, events
        self.model = PlainManager()
        self.pairs: list[Pair] = []
        self.reports = 0
        self.gates: dict[tuple[str, int], list[str]] = {}

    async def play(self, step: tuple[Any, ...], settle: bool) -> None:
        name, *args = step
        event(name)
        await getattr(self, name)(*args)
        self.check_what_is_visible_at_once()
        if settle:
            await self.settle()

    def pair_of(self, pick: int, *, registered: bool = False, held: bool = False) -> Pair | None:
        fitting = [
            pair
            for pair in self.pairs
            if (not registered or pair.registration is not None) and (not held or pair.environment is not None)
        ]
        return fitting[pick % len(fitting)] if fitting else None

    def provider(self, works: bool) -> ConnectProvider:
        return ScriptedProvider() if works else FailingProvider()

    def said(self, call: Any) -> str:
        try:
            result = call()
        except ActorsError as error:
            for kind, word in KINDS_OF_ERRORS:
                if isinstance(error, kind):
                    return word
            raise
        return "none" if result is None else "done"

    # Ways in.

    async def register(self, key: str, works: bool, deadline_s: float | None) -> None:
        await self.settle()
        provider = self.provider(works)
        registration = self.manager.register_deferred(key, provider, deadline_s=deadline_s)
        plain = self.model.insert(key, "deferred", works, now_s=trio.current_time(), deadline_s=deadline_s)
        pair = Pair(plain, provider, self.manager.get(key))
        pair.registration = registration
        self.pairs.append(pair)

    async def upsert(self, key: str, works: bool) -> None:
        await self.settle()
        provider = self.provider(works)
        environment = self.manager.upsert(key, provider)
        self.pairs.append(Pair(self.model.insert(key, "ordinary", works), provider, environment))

    async def materialize(self, key: str, works: bool) -> None:
        provider = self.provider(works)
        before = self.model.current.get(key)
        word = self.said(lambda: self.manager.materialize(key, provider))
        if before is None:
            assert word == "done"
            plain = self.model.insert(key, "provisioned", works)
            self.pairs.append(Pair(plain, provider, self.manager.get(key)))
        else:
            assert word == ("done" if before.kind == "provisioned" else "conflict")

    async def report(self, key: str, works: bool, roots: tuple[str, ...] | None, valid: bool, recover: bool) -> None:
        provider = self.provider(works)
        self.reports += 1
        message = f"failure {self.reports}"
        report = message if roots is None else info_of(key, roots, valid=valid)
        was_absent = key not in self.model.current
        word = self.said(lambda: self.manager.report_provisioning(key, report, provider, recover=recover))
        expected = self.model.report(key, works, roots, message, valid=valid, recover=recover)
        assert word == expected
        if was_absent and expected == "done":
            self.pairs.append(Pair(self.model.current[key], provider, self.manager.get(key)))

    async def publish(self, key: str, roots: tuple[str, ...], valid: bool) -> None:
        info = info_of(key, roots, valid=valid)
        word = self.said(lambda: self.manager.publish_ready_info(key, info))
        assert (word == "none") == (self.model.publish(key, roots, valid) == "done")

    # Registrations.

    async def complete(self, pick: int, roots: tuple[str, ...], valid: bool) -> None:
        pair = self.pair_of(pick, registered=True)
        if pair is None or pair.registration is None:
            return
        registration, key = pair.registration, pair.plain.key
        word = self.said(lambda: registration.complete(info_of(key, roots, valid=valid)))
        expected = pair.plain.use_registration(roots, "invalid", valid)
        assert word == ("none" if expected == "done" else expected)

    async def fail(self, pick: int) -> None:
        pair = self.pair_of(pick, registered=True)
        if pair is None or pair.registration is None:
            return
        registration = pair.registration
        word = self.said(lambda: registration.fail("failed"))
        expected = pair.plain.use_registration(None, "failed", True)
        assert word == ("none" if expected == "done" else expected)

    async def abandon(self, pick: int) -> None:
        pair = self.pair_of(pick, registered=True)
        if pair is not None and pair.registration is not None:
            pair.registration.abandon()
            plain = pair.plain
            if plain.gate == "pending" and not plain.closed and plain.reachable:
                plain.shut("abandoned", "environment registration ended before completion")

    async def lose(self, pick: int, in_a_cycle: bool) -> None:
        pair = self.pair_of(pick, registered=True)
        if pair is None:
            return
        ring: list[Any] = [pair.registration]
        pair.registration, pair.plain.lost = None, True
        if in_a_cycle:
            ring.append(ring)
        del ring
        if in_a_cycle:
            gc.collect()

    # Waiting.

    async def wait(self, pick: int) -> None:
        pair = self.pair_of(pick, held=True)
        if pair is not None and pair.environment is not None:
            real, plain = Wait(), PlainWait()
            self.nursery.start_soon(real.run, pair.environment.wait_until_ready)
            pair.waits.append((real, plain))
            pair.plain.waits.append(plain)

    async def cancel(self, pick: int) -> None:
        waits = [both for pair in self.pairs for both in pair.waits if both[1].outcome is None]
        if waits:
            real, plain = waits[pick % len(waits)]
            real.scope.cancel()
            plain.cancelled = True

    # Ways out.

    async def remove(self, key: str) -> None:
        await self.settle()
        assert await self.manager.remove(key) is self.model.remove(key)
        await self.settle()

    async def let_go(self, pick: int) -> None:
        await self.settle()
        pair = self.pair_of(pick, held=True)
        if pair is not None and all(plain.outcome is not None for _, plain in pair.waits):
            pair.waits.clear()  # Errors that are kept keep frames, and those keep the environment.
            pair.environment, pair.plain.held = None, False

    async def aclose(self, pick: int) -> None:
        await self.settle()
        pair = self.pair_of(pick, held=True)
        if pair is not None and pair.environment is not None:
            await pair.environment.aclose()
            self.model.close(pair.plain)
        await self.settle()

    async def sleep(self, seconds: float) -> None:
        await self.settle()
        self.clock.jump(seconds)
        await wait_all_tasks_blocked()
        self.model.pass_deadlines(trio.current_time())
        await self.settle()

    # Checking.

    def check_what_is_visible_at_once(self) -> None:
        assert set(self.manager.environment_ids) == set(self.model.current)
        for key, plain in self.model.current.items():
            current = self.manager.get(key)
            assert current is not None
            assert current.generation == plain.generation
        for pair in self.pairs:
            if pair.environment is not None:
                self.check_handle(pair.environment, pair.plain)
            if pair.registration is not None:
                assert pair.registration.superseded is pair.plain.superseded

    def check_handle(self, environment: Environment, plain: PlainEnvironment) -> None:
        assert environment.gate.value == plain.gate
        assert tuple(root.id for root in environment.selected_capability_roots) == plain.roots
        accepted = environment.last_ready_info
        assert (accepted is None) is (plain.accepted is None)
        assert environment.superseded is plain.superseded
        assert (self.manager.get(plain.key) is environment) is plain.current
        if plain.message is not None and not plain.closed:
            cause = next(reason.text for reason in environment.why().reasons if reason.code == "cause")
            assert simple(cause.replace("environment unavailable", "unavailable", 1)) == simple(
                f"unavailable: {plain.message}"
            )

    async def settle(self) -> None:
        await wait_all_tasks_blocked()
        self.model.settle()
        for pair in self.pairs:
            assert pair.provider.calls == pair.plain.calls
            for real, plain in pair.waits:
                assert outcome_of(real) == simple(plain.outcome)
        assert self.manager.statistics().alive == sum(not plain.closed for plain in self.model.born)
        self.check_events()

    def check_events(self) -> None:
        while True:
            try:
                told = self.events.receive_nowait()
            except trio.WouldBlock:
                break
            if isinstance(told, GateMoved):
                self.gates.setdefault((told.environment_id, told.generation), []).append(told.gate.value)
                assert (
                    len(self.gates[told.environment_id, told.generation]) == 1
                    or told.recovered
                    or (self.gates[told.environment_id, told.generation][-2] == "ready")
                )
        for plain in self.model.born:
            moved = self.gates.get((plain.key, plain.generation), [])
            if moved:
                assert moved[-1] == plain.gate


def simple(outcome: str | None) -> str | None:
    """What a failure says is told apart only where the model knows it word for word."""
    if outcome is not None and outcome.startswith("unavailable: "):
        exact = ("failed", "failure ", "environment ")
        return outcome if outcome.removeprefix("unavailable: ").startswith(exact) else "unavailable"
    return outcome


def outcome_of(wait: Wait) -> str | None:
    if wait.is_pending:
        return None
    error = wait.raised
    if isinstance(error, EnvironmentUnavailable):
        return simple(f"unavailable: {error.message}")
    if isinstance(error, ConnectFailed):
        assert "test Noise provider called" in str(error)
        return "provider"
    if isinstance(error, EnvironmentClosed):
        return "closed"
    assert error is None, repr(error)
    return "cancelled" if wait.scope.cancelled_caught else "ok"


async def play(steps: list[tuple[tuple[Any, ...], bool]], clock: MockClock) -> None:
    async with (
        open_manager_in_memory() as manager,
        manager.events(capacity=10_000) as events,
        trio.open_nursery() as nursery,
    ):
        world = World(manager, nursery, clock, events)
        for step, settle in steps:
            await world.play(step, settle)
        await world.settle()
        await manager.aclose()
        for environment in world.model.born:
            world.model.close(environment)
        await world.settle()
        assert all(not real.is_pending for pair in world.pairs for real, _ in pair.waits)
        assert all(plain.gate != "pending" for plain in world.model.born)


@given(STEPS)
@settings(max_examples=60)
def test_a_manager_does_what_the_plain_model_says(steps: list[tuple[tuple[Any, ...], bool]]) -> None:
    clock = MockClock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        trio.run(play, steps, clock, clock=clock)
