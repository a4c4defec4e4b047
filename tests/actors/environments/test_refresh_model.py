"""Refreshes against a plain model: executors that are replaced, look-ups that answer late, attempts that open late.

Mutants planted one at a time in the library, each seen killed by this test:

 1. `Connection._look_at` never keeps anybody, or keeps whom it holds without looking at the registration;
 2. `Connection._look_at` does not compare tickets, or forgets the ticket of one that was kept;
 3. `Connection._look_at` keeps whom a lost link led to;
 4. `Connection.begin` keeps whom the attempt before was for;
 5. `Lifecycle._look_at` gives no `EndLink`;
 6. `Body.turn_to` keeps no bundle;
 7. `Connection._peer_after` forgets whom a fresh bundle of a recovery led to;
 8. `Body._tell` wakes only for another phase;
 9. `refresh` waits for nobody: it asks the client it had.
"""

from dataclasses import dataclass, field
from typing import Any

import trio
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.environments import (
    ConnectFailed,
    ConnectionState,
    Environment,
    EnvironmentClosed,
    EnvironmentManager,
    ReadyInfo,
)
from actors.environments.testing import LinkCut, MemoryConnector, open_manager_in_memory
from tests.actors.environments.executors import PLACES, Registry
from tests.actors.environments.waiting import Wait

PICK = st.integers(0, 9)
STEP = st.one_of(
    st.tuples(st.just("replace"), st.integers(1, 3)),
    st.tuples(st.just("replace"), st.integers(1, 3)),
    st.tuples(st.just("refresh"), st.booleans()),
    st.tuples(st.just("refresh"), st.booleans()),
    st.tuples(st.just("refresh"), st.booleans()),
    st.tuples(st.just("answer"), PICK),
    st.tuples(st.just("answer"), PICK),
    st.tuples(st.just("open"), st.just(True)),
    st.tuples(st.just("open"), st.just(True)),
    st.tuples(st.just("open"), st.just(False)),
    st.tuples(st.just("use")),
    st.tuples(st.just("interrupt")),
    st.tuples(st.just("resume"), st.booleans()),
    st.tuples(st.just("cut")),
    st.tuples(st.just("cancel"), PICK),
    st.tuples(st.just("close"), st.sampled_from([False] * 9 + [True])),
)
STEPS = st.lists(STEP, min_size=8, max_size=40)


@dataclass(eq=False)
class PlainWait:
    """Somebody waits: for a look-up (with what it will say), or for an attempt."""

    ticket: int = 0
    place: int = 0
    joined: int = 0
    outcome: str | None = None

    @property
    def is_looking(self) -> bool:
        return self.outcome is None and not self.joined


@dataclass
class PlainLink:
    """What a connection with refreshes must do, without tasks."""

    place: int = 0
    phase: str = "none"
    attempt: int = 0
    to: int | None = None
    by_refresh: bool = False
    last_ticket: int = 0
    tickets: int = 0
    asked: int = 0
    replaced: int = 0
    superseded: int = 0
    waits: list[PlainWait] = field(default_factory=list)

    def begin(self, place: int, *, by_refresh: bool) -> None:
        self.attempt, self.phase, self.to, self.by_refresh = self.attempt + 1, "opening", place, by_refresh

    def ask(self, wait: PlainWait) -> None:
        if self.phase == "none":
            self.asked += 1
            self.begin(self.place, by_refresh=False)
        wait.joined = self.attempt
        wait.outcome = "ok" if self.phase == "up" else None

    def end_waits(self, outcome: str) -> None:
        for wait in self.waits:
            if wait.outcome is None and wait.joined:
                wait.outcome = outcome

    def look_up(self, wait: PlainWait) -> None:
        """What a look-up said has come."""
        is_held = self.phase in ("up", "cut") or (self.phase == "opening" and self.by_refresh)
        if wait.ticket > self.last_ticket:
            self.last_ticket = wait.ticket
            if not (is_held and self.to == wait.place):
                self.replaced += self.phase in ("up", "cut")
                if self.phase == "opening":
                    self.superseded += 1
                    self.end_waits("superseded")
                self.begin(wait.place, by_refresh=True)
        self.ask(wait)

    def opened(self, well: bool) -> None:
        self.phase = "up" if well else "none"
        self.end_waits("ok" if well else "failed")

    def ended(self) -> None:
        self.phase = "none"
        for wait in self.waits:
            if wait.outcome is None and wait.joined:
                self.ask(wait)

    def close(self) -> None:
        self.phase = "closed"
        for wait in self.waits:
            wait.outcome = wait.outcome or "closed"


class HeldConnector(MemoryConnector):
    """Opens each link when it is told to, or fails."""

    def __init__(self) -> None:
        super().__init__()
        self.opening: list[tuple[trio.Event, list[Exception]]] = []

    async def hold(self, request: Any, report: Any, /) -> None:
        opening: tuple[trio.Event, list[Exception]] = (trio.Event(), [])
        self.opening.append(opening)
        try:
            await opening[0].wait()
        finally:
            self.opening.remove(opening)
        if opening[1]:
            raise opening[1][0]
        await super().hold(request, report)


class World:
    """A manager with one environment, and its model, moved in step."""

    def __init__(self, manager: EnvironmentManager, nursery: trio.Nursery, connector: HeldConnector) -> None:
        self.manager, self.nursery, self.connector = manager, nursery, connector
        self.registry, self.model = Registry(), PlainLink()
        provisioned = manager.materialize("tools", self.registry)
        self.environment: Environment = provisioned
        manager.report_provisioning("tools", ReadyInfo(), self.registry)
        self.watch = provisioned.subscribe_connection_state()
        self.waits: list[tuple[Wait, PlainWait]] = []

    async def play(self, step: tuple[Any, ...]) -> None:
        name, *args = step
        if self.model.phase == "closed":
            return
        event(name)
        await getattr(self, name)(*args)
        await wait_all_tasks_blocked()
        self.check()

    async def replace(self, by: int) -> None:
        self.registry.place += by
        self.model.place = self.registry.place % len(PLACES)

    async def start(self, call: Any, plain: PlainWait) -> None:
        wait = Wait()
        self.nursery.start_soon(wait.run, call)
        self.waits.append((wait, plain))
        self.model.waits.append(plain)
        await wait_all_tasks_blocked()

    async def refresh(self, late: bool) -> None:
        self.model.tickets += 1
        self.model.asked += 1
        plain = PlainWait(ticket=self.model.tickets, place=self.model.place)
        self.registry.holds = late
        await self.start(self.environment.refresh_connection, plain)
        self.registry.holds = False
        if not late:
            self.model.look_up(plain)

    async def answer(self, pick: int) -> None:
        looking = [plain for plain in self.model.waits if plain.is_looking]
        if looking:
            self.registry.release(pick % len(looking))
            self.model.look_up(looking[pick % len(looking)])

    async def open(self, well: bool) -> None:
        if self.model.phase != "opening":
            assert self.connector.opening == []
            return
        ((opened, failures),) = self.connector.opening
        failures += [] if well else [LinkCut("no")]
        opened.set()
        self.model.opened(well)

    async def use(self) -> None:
        plain = PlainWait()
        await self.start(self.environment.info, plain)
        self.model.ask(plain)

    async def interrupt(self) -> None:
        if self.model.phase == "up":
            self.connector.open_links[0].interrupt()
            self.model.phase = "cut"

    async def resume(self, by_fresh_bundle: bool) -> None:
        if self.model.phase != "cut":
            return
        link = self.connector.open_links[0]
        if by_fresh_bundle and link.request.renew is not None:
            await link.request.renew()
            self.model.asked += 1
            self.model.to = self.model.place
        link.resume()
        self.model.phase = "up"
        self.model.end_waits("ok")

    async def cut(self) -> None:
        if self.model.phase in ("up", "cut"):
            self.connector.open_links[0].cut()
            self.model.ended()

    async def cancel(self, pick: int) -> None:
        pending = [both for both in self.waits if both[1].outcome is None]
        if pending:
            real, plain = pending[pick % len(pending)]
            if plain.is_looking:
                looking = [other for other in self.model.waits if other.is_looking]
                self.registry.held.pop(looking.index(plain))
            real.scope.cancel()
            plain.outcome = "cancelled"

    async def close(self, really: bool) -> None:
        if really:
            await self.environment.aclose()
            self.model.close()

    def check(self) -> None:
        model = self.model
        assert [outcome_of(real) for real, _ in self.waits] == [plain.outcome for _, plain in self.waits]
        assert self.registry.asked == model.asked
        assert len(self.connector.open_links) == (model.phase in ("up", "cut"))
        assert len(self.connector.opening) == (model.phase == "opening")
        assert self.watch is not None
        assert (self.watch.current is ConnectionState.CONNECTED) is (model.phase == "up")
        counted = self.manager.statistics()
        assert (counted.attempts, counted.replaced, counted.superseded_attempts) == (
            model.attempt,
            model.replaced,
            model.superseded,
        )
        retired = [link.client.retired for link in self.connector.links if link.client.retired is not None]
        assert retired == ["exec-server executor was replaced"] * model.replaced
        answers = [link.request.answer for link in self.connector.links]
        assert len({id(answer) for answer in answers}) == len(answers), "a bundle is used once"
        assert all(link.client.commands == [] for link in self.connector.links)


def outcome_of(wait: Wait) -> str | None:
    if wait.is_pending:
        return None
    match wait.raised:
        case None:
            return "cancelled" if wait.scope.cancelled_caught else "ok"
        case ConnectFailed(inner="connection attempt was superseded"):
            return "superseded"
        case ConnectFailed(inner="no"):
            return "failed"
        case EnvironmentClosed():
            return "closed"
        case other:
            raise AssertionError(repr(other))


async def play(steps: list[tuple[Any, ...]]) -> None:
    connector = HeldConnector()
    async with (
        open_manager_in_memory(connector=connector, noise=connector) as manager,
        trio.open_nursery() as nursery,
    ):
        world = World(manager, nursery, connector)
        for step in steps:
            await world.play(step)
        await manager.aclose()
        world.model.close()
        await wait_all_tasks_blocked()
        assert [outcome_of(real) for real, _ in world.waits] == [plain.outcome for _, plain in world.waits]


# What chance seldom makes: a late look-up behind one that kept the session; an executor that a recovery found
# elsewhere; an attempt of its own to whom a lost link led to.
@example([("refresh", False), ("open", True), ("replace", 1), ("refresh", True), ("replace", 3), ("refresh", False),
          ("answer", 0)])  # fmt: skip
@example([("refresh", False), ("open", True), ("interrupt",), ("replace", 1), ("resume", True), ("refresh", False)])
@example([("refresh", False), ("open", True), ("cut",), ("use",), ("refresh", False), ("open", True)])
@given(STEPS)
@settings(max_examples=50)
def test_refreshes_do_what_the_plain_model_says(steps: list[tuple[Any, ...]]) -> None:
    trio.run(play, steps, clock=MockClock())
