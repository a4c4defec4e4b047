"""Alarms ring in order, once, and those that were cancelled are not kept."""

import trio
import trio.testing

from actors.sessions.host._alarms import Alarms


async def test_alarms_ring_by_time_and_then_by_the_order_in_which_they_were_set(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    alarms, rung = Alarms(), list[str]()
    await nursery.start(alarms.run)
    alarms.set(2, lambda: rung.append("late"))
    alarms.set(1, lambda: rung.append("first"))
    alarms.set(1, lambda: rung.append("second"))
    gone = alarms.set(1, lambda: rung.append("never"))
    gone.cancel()
    await trio.sleep(1.5)
    early = [*rung]
    alarms.set(0, lambda: rung.append("now"))
    await trio.sleep(1)

    assert early == ["first", "second"]
    assert rung == ["first", "second", "now", "late"]


async def test_an_alarm_may_set_the_next(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    alarms, rung = Alarms(), list[float]()
    await nursery.start(alarms.run)
    begun_s = trio.current_time()

    def ring() -> None:
        rung.append(trio.current_time() - begun_s)
        if len(rung) < 3:
            alarms.set(10, ring)

    alarms.set(10, ring)
    await trio.sleep(100)

    assert rung == [10, 20, 30]


async def test_cancelled_alarms_do_not_pile_up() -> None:
    alarms = Alarms()
    kept = [alarms.set(60, lambda: None) for _ in range(10)]
    for _ in range(20_000):
        alarms.set(60, lambda: None).cancel()

    assert len(alarms) <= 1024
    assert all(alarm.waiting for alarm in kept)
