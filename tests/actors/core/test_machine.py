"""Pure machines on a seat, and the orders they may give. In brackets: the case of the OTP state-machine suite."""

from collections.abc import Sequence
from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
import trio
from hypothesis import example, given
from trio.testing import MockClock, assert_no_checkpoints, wait_all_tasks_blocked

import actors
from actors import (
    ActorGone,
    CancelTimer,
    ChangeTimer,
    Ending,
    InvalidEffect,
    InvalidOption,
    LeftBehind,
    Mailbox,
    MailboxFull,
    NextEvent,
    OnRestart,
    Postpone,
    StateMachineActor,
    StopActor,
    Timer,
    Until,
)
from actors._machine import step
from actors._machine_seat import MachineSeat
from supervision import AlreadyStarted, Restart, StartFailed, Supervisor


class OutOfPlace(Exception):
    pass


@attrs.frozen
class Go:
    """Change the state."""

    to: str


@attrs.frozen
class Note:
    """Stay, and give back what is wanted."""

    text: str
    effects: tuple[Any, ...] = ()


@attrs.frozen
class Later:
    """Has a place only in state `only_in`, and may lead to another."""

    only_in: str
    text: str
    then: str | None = None


@attrs.frozen
class Misplaced:
    pass


@attrs.frozen
class Give:
    """Let `handle` give back just this."""

    what: Any


Happening = Go | Note | Later | Misplaced | Give


@attrs.frozen
class Trail:
    """A machine that remembers what it handled, in which state."""

    state: str = "a"
    seen: tuple[str, ...] = ()

    def handle(self, event: Happening) -> tuple["Trail", Sequence[Any]]:
        match event:
            case Go(to):
                return attrs.evolve(self, state=to, seen=(*self.seen, f"-> {to}")), (f"enter {to}",)
            case Note(text, effects):
                return attrs.evolve(self, seen=(*self.seen, f"{self.state}: {text}")), effects
            case Later(only_in, text, then) if only_in == self.state:
                seen = (*self.seen, f"{self.state}: {text}")
                return attrs.evolve(self, state=then or self.state, seen=seen), ()
            case Later():
                return self, (Postpone(),)
            case Misplaced():
                raise OutOfPlace("no place for this")
            case Give(what):
                return what


class Recorder(StateMachineActor[Happening, Any]):
    def __init__(self, done: list[Any]) -> None:
        self.done = done

    async def carry_out(self, effect: Any) -> None:
        self.done.append(effect)
        if isinstance(effect, trio.Event):
            await effect.wait()
        if isinstance(effect, Exception):
            raise effect


Stage = actors.MachineReference[Happening, Trail]


async def staged(root: Supervisor, done: list[Any], **options: Any) -> Stage:
    return await actors.spawn_machine(root, Recorder, Trail(), done, **options)


# --- delivery -------------------------------------------------------------------------------------------------------


async def test_delivery_steps_the_machine_at_once_and_its_effects_follow_in_order(root: Supervisor) -> None:
    done: list[Any] = []
    ref = await staged(root, done)

    with assert_no_checkpoints():
        ref.deliver(Note("one", ("first", "second")))
        ref.deliver(Go("b"))
    at_once = (ref.machine, [*done])
    await wait_all_tasks_blocked()

    assert at_once == (Trail("b", ("a: one", "-> b")), [])
    assert done == ["first", "second", "enter b"]
    assert ref.statistics().handled == 3


async def test_an_event_without_a_place_raises_in_the_sender_and_changes_nothing(root: Supervisor) -> None:
    done: list[Any] = []
    ref = await staged(root, done)
    before = ref.machine

    with pytest.raises(OutOfPlace):
        ref.deliver(Misplaced())
    with pytest.raises(OutOfPlace):
        ref.deliver(Note("whole or not at all", ("effect", NextEvent(Misplaced()))))
    await wait_all_tasks_blocked()

    assert ref.machine is before
    assert done == []
    assert ref.generation == 1


async def test_events_may_be_delivered_before_the_actor_has_run(root: Supervisor) -> None:
    done: list[Any] = []
    ref = actors.spawn_machine_nowait(root, Recorder, Trail(), done)

    ref.deliver(Go("b"))
    before = (ref.machine.state, [*done])
    await wait_all_tasks_blocked()

    assert before == ("b", [])
    assert done == ["enter b"]


async def test_an_effect_may_deliver_what_it_led_to(root: Supervisor) -> None:
    class Feeder(StateMachineActor[Happening, Any]):
        async def carry_out(self, effect: Any) -> None:
            if effect == "feed":
                self.reference.deliver(Go("fed"))

    ref = await actors.spawn_machine(root, Feeder, Trail())

    ref.deliver(Note("hungry", ("feed",)))
    await wait_all_tasks_blocked()

    assert ref.machine.state == "fed"


async def test_a_machine_without_orders_is_handled_once_an_event(root: Supervisor) -> None:
    calls: list[Any] = []

    @attrs.frozen
    class Counting:
        def handle(self, event: Any) -> tuple["Counting", Sequence[Any]]:
            calls.append(event)
            return self, (event,) if event == "effect" else ()

    ref = await actors.spawn_machine(root, Recorder, Counting(), [])

    ref.deliver("plain")  # type: ignore[arg-type]
    ref.deliver("effect")  # type: ignore[arg-type]

    assert calls == ["plain", "effect"]


# --- crash, stop, end -----------------------------------------------------------------------------------------------


async def test_a_crash_of_an_effect_keeps_the_machine_and_the_effects_behind_it(root: Supervisor) -> None:
    done: list[Any] = []
    ref = await staged(root, done)
    crash = ValueError("boom")

    ref.deliver(Note("one", ("before", crash, "after")))
    await wait_all_tasks_blocked()
    ref.deliver(Go("b"))
    await wait_all_tasks_blocked()

    assert done == ["before", crash, "after", "enter b"]
    assert (ref.generation, ref.machine.state) == (2, "b")


async def test_a_mailbox_may_drop_the_effects_behind_a_crash(root: Supervisor) -> None:
    done: list[Any] = []
    ref = await staged(root, done, mailbox=Mailbox(on_restart=OnRestart.FAIL))
    crash = ValueError("boom")

    ref.deliver(Note("one", (crash, "after")))
    await wait_all_tasks_blocked()

    assert done == [crash]
    assert ref.statistics().dropped == 1
    assert ref.generation == 2


async def test_effects_that_pile_up_refuse_the_next_event_and_change_nothing(root: Supervisor) -> None:
    done: list[Any] = []
    ref = await staged(root, done, mailbox=Mailbox(capacity=2))
    gate = trio.Event()
    ref.deliver(Note("busy", (gate,)))
    await wait_all_tasks_blocked()
    ref.deliver(Note("one", ("first", "second")))
    before = ref.machine

    with pytest.raises(MailboxFull) as full:
        ref.deliver(Note("two", ("third",)))
    ref.deliver(Note("no effect, no room needed"))
    gate.set()
    await wait_all_tasks_blocked()

    assert full.value.message == Note("two", ("third",))
    assert before.seen == ("a: busy", "a: one")
    assert done == [gate, "first", "second"]
    assert ref.statistics().refused == 1


async def test_delivery_after_a_stop_fails_and_the_machine_stays_to_be_read(root: Supervisor) -> None:
    """[50: a call to an ended machine fails at once.]"""
    ref = await staged(root, [])
    ref.deliver(Go("b"))
    ref.stop()

    with pytest.raises(ActorGone):
        ref.deliver(Go("c"))
    await ref.wait_stopped()
    with pytest.raises(LeftBehind) as left:
        ref.deliver(Go("c"))

    assert left.value.message == Go("c")
    assert ref.machine.state == "b"


async def test_a_name_is_taken_while_the_machine_lives_and_free_right_after(root: Supervisor) -> None:
    """[50]"""
    ref = await staged(root, [], name="one", restart=Restart.TEMPORARY)

    with pytest.raises(AlreadyStarted):
        await staged(root, [], name="one")
    ref.stop()
    await ref.wait_stopped()

    assert (await staged(root, [], name="one")).machine == Trail()


async def test_a_machine_that_stops_itself_has_its_earlier_effects_carried_out_first(root: Supervisor) -> None:
    """[47: replies go out in order before the exit notice.]"""
    done: list[Any] = []
    ref = await staged(root, done)

    async with actors.monitor(ref) as down:
        ref.deliver(Note("last words", ("reply to one", "reply to two", StopActor(), "too late")))
        notice = await down.wait()

    assert done == ["reply to one", "reply to two"]
    assert notice.ending is Ending.STOPPED
    assert ref.statistics().dropped == 1


async def test_a_start_that_takes_too_long_or_fails_leaves_nothing(root: Supervisor, autojump_clock: MockClock) -> None:
    """[51]"""

    class Slow(Recorder):
        async def started(self) -> None:
            await trio.sleep_forever()

    broken = OSError("no licence")

    class Broken(Recorder):
        async def started(self) -> None:
            raise broken

    with pytest.raises(StartFailed):
        await actors.spawn_machine(root, Slow, Trail(), [], start_timeout_s=1)
    with pytest.raises(StartFailed) as failed:
        await actors.spawn_machine(root, Broken, Trail(), [])

    assert failed.value.__cause__ is broken
    assert root.children() == ()


# --- what handle may give back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [None, Trail(), (Trail(),), (Trail(), (), ()), (Trail(), 7), (Trail(), {"effect"}), ("no machine", ())]
)
async def test_a_step_that_is_no_step_is_refused_with_the_culprit_and_changes_nothing(
    root: Supervisor, given: Any
) -> None:
    """[48: a bad return value ends with a reason that holds the culprit.]"""
    ref = await staged(root, [])
    before = ref.machine

    with pytest.raises(InvalidEffect) as refused:
        ref.deliver(Give(given))

    assert refused.value.culprit in (given, "no machine")
    assert ref.machine is before


@pytest.mark.parametrize(
    "options", [{}, {"after_s": 1, "at_s": 1}, {"after_s": -1}, {"after_s": float("nan")}, {"at_s": float("nan")}]
)
def test_a_timer_that_cannot_be_is_refused_at_birth(options: dict[str, float]) -> None:
    """[48: a bad timeout.]"""
    with pytest.raises(InvalidOption):
        Timer(name="t", event="e", **options)


def test_a_machine_that_inserts_events_for_ever_is_stopped() -> None:
    class Loop:
        def handle(self, event: Any) -> tuple["Loop", Sequence[Any]]:
            return self, (NextEvent(event),)

    with pytest.raises(InvalidEffect, match="1000 inserted"):
        step(Loop(), "again", Loop().handle("again"))


async def test_inserted_events_come_before_any_other_in_the_order_given(root: Supervisor) -> None:
    """[42]"""
    ref = await staged(root, [])
    nested = Note("two", (NextEvent(Note("inserted by two")),))

    ref.deliver(Note("start", (NextEvent(Note("one")), NextEvent(nested), NextEvent(Note("three")))))
    ref.deliver(Note("external"))

    assert ref.machine.seen == ("a: start", "a: one", "a: two", "a: inserted by two", "a: three", "a: external")


@pytest.mark.parametrize("replace", [lambda machine: 1 / 0, lambda machine: "no machine"])
async def test_a_machine_may_be_read_and_replaced_between_two_events(root: Supervisor, replace: Any) -> None:
    """[52: and a replacement that raises leaves the state as it was.]"""
    ref = await staged(root, [])

    ref.replace_machine(lambda machine: attrs.evolve(machine, state="z"))
    with pytest.raises((ZeroDivisionError, InvalidEffect)):
        ref.replace_machine(replace)

    assert ref.machine == Trail("z")


# --- postponed ------------------------------------------------------------------------------------------------------


async def test_postponed_events_come_back_in_order_right_after_the_change_of_state(root: Supervisor) -> None:
    """[41]"""
    ref = await staged(root, [])
    for text in ("one", "two"):
        ref.deliver(Later("b", text))
    ref.deliver(Note("state kept"))
    kept = ref.machine.seen

    ref.deliver(Go("b"))
    ref.deliver(Note("newer"))

    assert kept == ("a: state kept",)
    assert ref.machine.seen == ("a: state kept", "-> b", "b: one", "b: two", "b: newer")


async def test_an_event_may_be_postponed_again_and_another_change_brings_it_back(root: Supervisor) -> None:
    ref = await staged(root, [])
    for only_in, text in (("c", "one"), ("b", "two"), ("c", "three")):
        ref.deliver(Later(only_in, text))

    ref.deliver(Go("b"))
    ref.deliver(Go("c"))

    assert ref.machine.seen == ("-> b", "b: two", "-> c", "c: one", "c: three")


async def test_a_postponed_event_that_raises_later_ends_the_generation_and_not_the_sender(root: Supervisor) -> None:
    @attrs.frozen
    class Fussy:
        state: str = "a"

        def handle(self, event: str) -> tuple["Fussy", Sequence[Any]]:
            if event == "later" and self.state == "a":
                return self, (Postpone(),)
            if event == "later":
                raise OutOfPlace("never")
            return Fussy(event), ()

    ref = await actors.spawn_machine(root, Recorder, Fussy(), [])
    ref.deliver("later")  # type: ignore[arg-type]

    ref.deliver("b")  # type: ignore[arg-type]
    await wait_all_tasks_blocked()

    assert ref.machine == Fussy("b")
    assert ref.generation == 2


async def test_postponed_events_are_bounded_and_counted_when_the_actor_ends(root: Supervisor) -> None:
    ref = await staged(root, [], mailbox=Mailbox(capacity=2))
    for text in ("one", "two"):
        ref.deliver(Later("b", text))

    with pytest.raises(MailboxFull):
        ref.deliver(Later("b", "three"))
    ref.stop()
    await ref.wait_stopped()

    assert ref.statistics().dropped == 2


@given(
    happenings=st.lists(
        st.one_of(
            st.builds(Go, st.sampled_from("abc")),
            st.builds(
                Later, st.sampled_from("abc"), st.sampled_from("uvwxyz"), st.sampled_from([None, None, "a", "b", "c"])
            ),
        ),
        max_size=30,
    )
)
@example(happenings=[Later("c", "x"), Later("b", "y", then="c"), Later("c", "z"), Go("b")])
def test_postponing_is_what_otp_does_with_a_queue(happenings: list[Go | Later]) -> None:
    """Against a plain queue machine: on each change of state the postponed ones go first, oldest first.

    Mutants killed: `deliver_again` gives the newest first; it puts events postponed anew behind those not yet tried
    when the state changes again; a change is seen when the state stays the same.
    """
    queue, postponed, state = [*happenings], list[Later](), "a"
    expected: list[str] = []
    while queue:
        happening = queue.pop(0)
        if isinstance(happening, Go):
            expected.append(f"-> {happening.to}")
            if happening.to != state:
                state, queue, postponed = happening.to, [*postponed, *queue], []
        elif happening.only_in == state:
            expected.append(f"{state}: {happening.text}")
            if happening.then not in {None, state}:
                state, queue, postponed = str(happening.then), [*postponed, *queue], []
        else:
            postponed.append(happening)

    async def main() -> tuple[str, ...]:
        seat = MachineSeat("trail", Mailbox(), Restart.TEMPORARY, Trail())
        ref: Stage = actors.MachineReference(seat)
        for happening in happenings:
            ref.deliver(happening)
        return ref.machine.seen

    assert trio.run(main) == tuple(expected)


# --- timers ---------------------------------------------------------------------------------------------------------


async def test_a_zero_timer_comes_after_what_is_delivered_now(root: Supervisor, autojump_clock: MockClock) -> None:
    """[43: delivered only if nothing else is queued.]"""
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("timer"), after_s=0),)))
    ref.deliver(Note("now"))
    await trio.sleep(0.001)

    assert ref.machine.seen == ("a: start", "a: now", "a: timer")


@pytest.mark.parametrize("how", ["another event", "an inserted event", "a redelivered event"])
async def test_any_event_ends_a_timer_until_the_next_event(
    root: Supervisor, autojump_clock: MockClock, how: str
) -> None:
    """[43, 45: also an inserted or postponed one.]"""
    ref = await staged(root, [])
    timer = Timer(name="t", event=Note("timer"), after_s=1, until=Until.NEXT_EVENT)

    match how:
        case "another event":
            ref.deliver(Note("start", (timer,)))
            ref.deliver(Note("other"))
        case "an inserted event":
            ref.deliver(Note("start", (timer, NextEvent(Note("other")))))
        case _:
            ref.deliver(Later("b", "other"))
            ref.deliver(Note("start", (timer, NextEvent(Go("b")))))
    await trio.sleep(10)

    assert not any("timer" in seen for seen in ref.machine.seen)


async def test_a_timer_until_the_next_event_fires_when_there_is_none(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    """[45]"""
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("timer"), after_s=1, until=Until.NEXT_EVENT),)))
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start", "a: timer")


async def test_a_state_timer_ends_with_its_state_and_is_kept_while_it_lasts(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    """[44: cancelled by a state change, kept on keep-state.]"""
    ref = await staged(root, [])
    timer = Timer(name="t", event=Note("timer"), after_s=2, until=Until.STATE_CHANGES)

    ref.deliver(Note("start", (timer,)))
    await trio.sleep(1)
    ref.deliver(Note("kept"))
    await trio.sleep(1.5)
    ref.deliver(Note("again", (timer,)))
    ref.deliver(Go("b"))
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start", "a: kept", "a: timer", "a: again", "-> b")


async def test_a_timer_set_anew_starts_anew(root: Supervisor, autojump_clock: MockClock) -> None:
    """[44, 45: overwritten by name.]"""
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("old"), after_s=2),)))
    await trio.sleep(1)
    ref.deliver(Note("anew", (Timer(name="t", event=Note("new"), after_s=2),)))
    await trio.sleep(1.5)
    early = ref.machine.seen
    await trio.sleep(10)

    assert early == ("a: start", "a: anew")
    assert ref.machine.seen == ("a: start", "a: anew", "a: new")


async def test_the_content_of_a_timer_may_be_changed_alone(root: Supervisor, autojump_clock: MockClock) -> None:
    """[44]"""
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("old"), after_s=2),)))
    await trio.sleep(1)
    ref.deliver(Note("change", (ChangeTimer("t", Note("new")), ChangeTimer("unknown", Note("nothing")))))
    await trio.sleep(1.1)

    assert ref.machine.seen == ("a: start", "a: change", "a: new")


@pytest.mark.parametrize("order", [CancelTimer("t"), Timer(name="t", event=Note("never"), after_s=float("inf"))])
async def test_a_timer_may_be_cancelled_and_infinity_cancels_it(
    root: Supervisor, autojump_clock: MockClock, order: Any
) -> None:
    """[44, 45]"""
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("timer"), after_s=2),)))
    ref.deliver(Note("cancel", (order, CancelTimer("unknown"))))
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start", "a: cancel")


async def test_named_timers_are_independent_and_survive_changes_of_state(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    """[45]"""
    ref = await staged(root, [])
    timers = [Timer(name=text, event=Note(text), after_s=after_s) for text, after_s in (("two", 2), ("one", 1))]

    ref.deliver(Note("start", tuple(timers)))
    ref.deliver(Go("b"))
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start", "-> b", "b: one", "b: two")


async def test_a_timer_may_be_set_to_a_point_in_time(root: Supervisor, autojump_clock: MockClock) -> None:
    """[45: absolute times work, also when they have passed.]"""
    ref = await staged(root, [])
    now_s = trio.current_time()

    ref.deliver(Note("start", (Timer(name="t", event=Note("later"), at_s=now_s + 3),)))
    ref.deliver(Note("start", (Timer(name="u", event=Note("passed"), at_s=now_s - 3),)))
    await trio.sleep(2.9)
    early = ref.machine.seen
    await trio.sleep(0.2)

    assert early == ("a: start", "a: start", "a: passed")
    assert ref.machine.seen[-1] == "a: later"


async def test_a_timer_is_on_time_while_the_actor_is_busy_with_an_effect(
    root: Supervisor, autojump_clock: MockClock
) -> None:
    gate = trio.Event()
    ref = await staged(root, [])

    ref.deliver(Note("start", (gate, Timer(name="t", event=Note("timer"), after_s=1))))
    await trio.sleep(1.1)

    assert ref.machine.seen == ("a: start", "a: timer")
    gate.set()


async def test_a_timer_event_without_a_place_ends_the_generation(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await staged(root, [], restart=Restart.TEMPORARY)

    ref.deliver(Note("start", (Timer(name="t", event=Misplaced(), after_s=1),)))
    down = await ref.wait_stopped()

    assert isinstance(down.cause, OutOfPlace)
    assert down.ending is Ending.CRASHED


async def test_no_timer_fires_after_the_end(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await staged(root, [])

    ref.deliver(Note("start", (Timer(name="t", event=Note("timer"), after_s=1),)))
    ref.stop()
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start",)


async def test_timers_outlive_a_crash_as_the_machine_does(root: Supervisor, autojump_clock: MockClock) -> None:
    ref = await staged(root, [])

    ref.deliver(Note("start", (ValueError("boom"), Timer(name="t", event=Note("timer"), after_s=1))))
    await trio.sleep(10)

    assert ref.machine.seen == ("a: start", "a: timer")
    assert ref.generation == 2
