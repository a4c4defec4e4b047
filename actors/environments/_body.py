"""What stands behind one generation of an environment: its actor's reference, its provider, its client, its waiters.

Handles hold a body; a body never holds a handle. So the last holder's end shows in the handle's own finaliser, and that
is how an environment which nobody can reach any more comes to be closed.
"""

import contextlib
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import trio

from actors import ActorGone, MachineReference, WaitsForItself
from actors.environments._connection import ConnectionState
from actors.environments._connection_events import BundleLookedUp, Closed, News, OperationAsked
from actors.environments._errors import EnvironmentClosed, WillNotStop
from actors.environments._gate import PENDING, DeadlinePassed
from actors.environments._lifecycle import (
    BeginAttempt,
    EndActor,
    EndLink,
    Event,
    Lifecycle,
)
from actors.environments._outcomes import ASK_AGAIN, WAIT, joined_attempt, refusal, start_outcome, use_outcome
from actors.environments._printable import time_text
from actors.environments._provider import ConnectBundle, ConnectProvider
from actors.environments._seams import Client, HarnessIdentity
from actors.environments._waiters import Decide, Waiters
from actors.environments._watch import Change, WatchSource

if TYPE_CHECKING:
    from actors.environments._backstage import Backstage


STOP_S = 10.0
"""How long an end is waited for: an actor is killed after 5 s, and given as long again."""


class Stoppable(Protocol):
    """What can be told to end now."""

    attempt: int
    """Which attempt it is."""

    def stop(self, reason: str | None = None) -> None:
        """End; whoever used it hears the reason, if there is one."""
        ...


class Body:
    """One generation of one environment, behind its handles."""

    __slots__ = (
        "backstage",
        "bundle_environment_id",
        "client",
        "fetched",
        "final",
        "holder",
        "identity",
        "life",
        "link",
        "look_ups",
        "looking",
        "provider",
        "reference",
        "released",
        "tries",
        "waiters",
        "watch_source",
    )

    reference: MachineReference[Event, Lifecycle]

    def __init__(
        self, backstage: "Backstage", life: Lifecycle, provider: ConnectProvider | None, bundle_environment_id: str
    ) -> None:
        self.backstage: Backstage = backstage
        # The present value of this life; it stays after the end. Only `step` and `close` change it.
        self.life: Lifecycle = life
        self.provider = provider
        self.bundle_environment_id: str = bundle_environment_id
        # Whether the last handle is gone. Set by a finaliser on any thread, read in the run.
        self.released: bool = False
        # Who may complete a deferred one. Weak: a registration that is lost shows at once, before the run is told.
        self.holder: weakref.ref[object] | None = None
        self.final: Lifecycle | None = None
        self.client: Client | None = None
        # What the actor holds now.
        self.link: Stoppable | None = None
        self.tries: int = 0
        # How many look-ups were begun, those that are under way, and the bundle that the next attempt takes.
        self.look_ups: int = 0
        self.looking: set[trio.CancelScope] | None = None
        self.fetched: tuple[int, ConnectBundle] | None = None
        # Made at first use: most environments of a large fleet are never waited for at once.
        self.identity: HarnessIdentity | None = None
        self.waiters: Waiters | None = None
        self.watch_source: WatchSource[ConnectionState] | None = None

    @property
    def nobody_completes(self) -> bool:
        """Whether its registration is lost; where the gate is still pending, the run is about to hear of it."""
        return self.holder is not None and self.holder() is None

    def now_s(self, operation: str) -> float:
        """What the run's clock says, if this is the run that owns the environment."""
        return self.backstage.now_s(operation)

    def step(self, event: Event, now_s: float) -> Lifecycle:
        """Let the life take an event at once; what is to be done follows in the actor's own task.

        Raises:
            EnvironmentClosed: The environment has ended.
            OutOfPlace: The event has no place now; nothing was changed.
        """
        if self.final is not None:
            self.life = self.final = self.final.handle(event)[0]
            return self.final
        before = self.life
        try:
            self.reference.deliver(event)
        except ActorGone as gone:
            self.close("its actor has ended", now_s)
            raise EnvironmentClosed(before.environment_id, before.generation, "its actor has ended") from gone
        self.life = after = self.reference.machine
        if after is not before:
            if after.deadline_s is not None and before.gate is PENDING and after.gate is not PENDING:
                self.backstage.deadlines.call_off(self)
            self._tell(before, after, now_s)
        return after

    def close(self, reason: str, now_s: float) -> None:
        """End this life; to end it twice is quiet.

        What is to be done about an end is done in this same breath and not by the actor, which may be gone already.
        """
        if self.final is not None:
            return
        before = self.life
        self.final, effects = before.handle(Closed(reason, now_s))
        self.life = self.final
        with contextlib.suppress(ActorGone):
            # Its last life keeps the error of a failed attempt, whose frames lead back here: a ring, if it stayed.
            self.reference.replace_machine(self._last)
        self.backstage.forget(self)
        for effect in effects:
            assert not isinstance(effect, BeginAttempt), "nothing begins at the end"
            self.end(effect)
        for scope in self.looking or ():
            scope.cancel()
        self.client = self.provider = self.identity = self.fetched = None
        self._tell(before, self.final, now_s)

    def _last(self, life: Lifecycle) -> Lifecycle:
        return self.final or life

    def end(self, effect: EndLink | EndActor) -> None:
        """Do what the life decided about an end; to do it twice is quiet."""
        match effect:
            case EndLink(attempt, reason):
                # An older one is being stopped already, a newer one is none of this effect's business.
                if self.link is not None and self.link.attempt == attempt:
                    self.link.stop(reason)
            case EndActor():
                self.reference.stop()

    def turn_to(self, look_up: BundleLookedUp, bundle: ConnectBundle) -> None:
        """Let the life take what a look-up found; what ends by that ends in this same breath.

        Raises:
            EnvironmentClosed: The environment has ended.
            MailboxFull: Too many attempts wait for an old link to end; nothing was changed.
        """
        before = self.life
        _, effects = before.handle(look_up)
        after = self.step(look_up, look_up.now_s)
        for effect in effects:
            if isinstance(effect, BeginAttempt):
                self.fetched = (look_up.ticket, bundle)
            else:
                self.end(effect)
        self.backstage.note_look_up(before, after)

    def take_fetched(self, ticket: int) -> ConnectBundle | None:
        """Give the bundle of a look-up, once."""
        fetched, self.fetched = self.fetched, None
        return fetched[1] if fetched is not None and fetched[0] == ticket else None

    def hear(self, make: Callable[[float], News], client: Client | None = None) -> bool:
        """Take news of the link.

        Returns:
            Whether it concerned the attempt that counts.
        """
        now_s = trio.current_time()
        news = make(now_s)
        if self.life.connection.is_stale(news):
            return False
        self.step(news, now_s)
        self.client = client or self.client
        return True

    def expire(self, now_s: float) -> None:
        """Fail the gate if it is still pending at its deadline."""
        life = self.life
        if life.gate is PENDING and not life.is_closed:
            given_s = (life.deadline_s or now_s) - life.born_s
            self.step(DeadlinePassed(f"provisioning did not finish within {time_text(given_s)}", now_s), now_s)

    def release(self) -> None:
        """Close an environment whose last holder is gone."""
        self.close("nobody holds it any more", trio.current_time())

    def _tell(self, before: Lifecycle, after: Lifecycle, now_s: float) -> None:
        """Tell those who wait, those who watch and those who listen, in the same breath."""
        if self.watch_source is not None and after.connection.position != before.connection.position:
            self.watch_source.show(shown(after))
        if self.watch_source is not None and after.is_closed:
            self._end_watches()
        # Nobody waits for less than another phase or the end of an attempt: information wakes nobody in vain.
        if self.waiters is not None and (
            after.connection.phase is not before.connection.phase
            or after.connection.error is not before.connection.error
        ):
            self.waiters.tell(after)
        self.backstage.note_step(before, after, now_s)

    def _end_watches(self) -> None:
        if self.watch_source is not None and (why := refusal(self.life)) is not None:
            self.watch_source.end(why)

    def source_of_watches(self) -> WatchSource[ConnectionState]:
        """The one source for all who watch the connection."""
        if self.watch_source is None:
            life = self.life
            self.watch_source = WatchSource(shown(life))
            if life.is_closed:
                self._end_watches()
        return self.watch_source

    # What callers wait for.

    def ask(self, operation: str) -> int:
        """Have the link opened if that can be done; nobody is waited for.

        Returns:
            The number of the attempt that counts for the caller.
        """
        now_s = self.now_s(operation)
        if self.final is None:
            self.step(OperationAsked(now_s), now_s)
        return joined_attempt(self.life)

    async def wait_stopped(self) -> None:
        """Wait until its task has ended; it is killed when it does not stop in time.

        Raises:
            WillNotStop: It goes on after it was killed.

        Cancelled:
            It goes on ending.
        """
        with trio.move_on_after(STOP_S) as waiting:
            try:
                await self.reference.wait_stopped()
            except WaitsForItself:  # Its own provider or connector closes it, and has been stopped by that.
                await trio.lowlevel.checkpoint()
        if waiting.cancelled_caught:
            raise WillNotStop(self.life.environment_id, self.life.generation, STOP_S)

    async def wait_started(self) -> None:
        """Wait until the start is over, well or badly."""
        joined = 1 if self.life.connection.was_connected else self.ask("wait_until_ready")
        await self._wait_until_decided(start_outcome, joined, "wait_until_ready")

    async def use(self, operation: str) -> Client:
        """Wait until there is a link, opening one if need be, and give its client."""
        await self._wait_until_decided(use_outcome, self.ask(operation), operation)
        assert self.client is not None, "a connected environment has a client"
        return self.client

    async def _wait_until_decided(self, decide: Decide, joined: int, operation: str) -> None:
        """Wait until all is well for one who joined this attempt, or raise what was decided first."""
        outcome = decide(self.life, joined)
        if outcome is not WAIT:
            await trio.lowlevel.checkpoint()
            outcome = outcome or decide(self.life, joined)
        try:
            while outcome is not None:
                if outcome is WAIT:
                    self.waiters = self.waiters or Waiters()
                    await self.waiters.wait(decide, joined)
                elif outcome is ASK_AGAIN:
                    joined = self.ask(operation)
                else:
                    raise outcome
                outcome = decide(self.life, joined)
        finally:
            # An error that a frame of its own traceback holds would keep the environment until the next collection.
            del outcome


def shown(life: Lifecycle) -> Change[ConnectionState]:
    """What those who watch the connection see of a life."""
    connection = life.connection
    unspoken = "the executor answers" if connection.state is ConnectionState.CONNECTED else "not connected yet"
    return Change(
        value=connection.state,
        reason=connection.reason or unspoken,
        generation=life.generation,
        position=connection.position,
    )
