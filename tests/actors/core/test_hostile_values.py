"""Values that no sensible caller gives: refused by a typed error, at once, and nothing is broken by them.

Each was seen to fail without its mending: an overflow in the middle of a step, an assertion, an error out of `repr`.
"""

import copy
import math
import pickle
from typing import Any, NoReturn

import pytest
import trio

import actors
from supervision import Supervisor
from tests.actors.core.troupe import Counter, Total


class Unspeakable:
    def __repr__(self) -> NoReturn:
        raise ValueError("no repr")


NO_TIMES: list[Any] = ["1", None, [], 1j, True, math.nan, -1, 10**400, 10**5000]


@pytest.mark.parametrize("value", NO_TIMES, ids=[*map(str, range(len(NO_TIMES)))])
async def test_what_is_no_time_is_refused_before_anything_is_sent(root: Supervisor, value: Any) -> None:
    ref = await actors.spawn(root, Counter)
    with pytest.raises(actors.InvalidOption, match="timeout_s="):
        await ref.ask(Total(), timeout_s=value)
    with pytest.raises(actors.InvalidOption, match="timeout_s="):
        await actors.ask_all(ref, [Total()], timeout_s=value)
    if value is not None:
        with pytest.raises(actors.InvalidOption, match="after_s="):
            actors.Timer(name="name", event="event", after_s=value)
    assert ref.statistics().queued_peak == 0


def test_a_refused_value_is_shown_short_whatever_its_repr_does() -> None:
    with pytest.raises(actors.InvalidOption, match="Unspeakable, whose repr raised") as caught:
        actors.Mailbox(capacity=Unspeakable())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert isinstance(caught.value.value, Unspeakable)
    with pytest.raises(actors.InvalidOption, match="more characters") as caught:
        actors.Mailbox(capacity="x" * 1_000_000)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert len(str(caught.value)) < 600


async def test_a_monitor_can_be_opened_again_and_within_itself(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter)
    down = actors.monitor(ref)
    async with down:
        async with down:
            pass
        ref.stop()
        notice = await down.wait()
    async with down:
        assert await down.wait() is notice
    assert down.notice is notice


async def test_handles_are_copied_as_themselves_and_not_pickled(root: Supervisor) -> None:
    ref = await actors.spawn(root, Counter, name="counter")
    child = root.child("counter")
    for handle in (ref, child, root, actors.monitor(ref)):
        assert copy.copy(handle) is handle
        assert copy.deepcopy([handle])[0] is handle
        with pytest.raises(TypeError, match="belongs to its run, and to no pickle"):
            pickle.dumps(handle)
    assert await copy.deepcopy(ref).ask(Total()) == 0
    await trio.lowlevel.checkpoint()
