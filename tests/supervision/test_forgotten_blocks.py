"""Who forgets `async with` is told so, at once."""

import pytest
import trio

import supervision as sv


async def test_events_outside_of_their_block_are_refused() -> None:
    """Mutants: any one of the three checks left out; without that of `anext` the test never ends."""
    async with sv.open_root("theatre") as root:
        events = root.events()
        with pytest.raises(sv.EventsNotOpen, match=r"theatre .*async with"):
            async for _ in events:
                pass
        with pytest.raises(sv.EventsNotOpen):
            await anext(events)
        with pytest.raises(sv.EventsNotOpen):
            events.receive_nowait()
        async with events:
            with pytest.raises(trio.WouldBlock):
                events.receive_nowait()
        with pytest.raises(sv.EventsNotOpen):
            async for _ in events:
                pass


async def test_who_reads_while_the_block_ends_comes_to_an_end() -> None:
    ends: list[str] = []

    async def read(events: sv.Events) -> None:
        async for _ in events:
            pass
        ends.append("quietly")

    async with sv.open_root() as root, trio.open_nursery() as nursery, root.events() as events:
        nursery.start_soon(read, events)
        await trio.testing.wait_all_tasks_blocked()

    assert ends == ["quietly"]


@pytest.mark.parametrize("name", ["start_child", "events", "tree"])
async def test_a_root_that_was_not_entered_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no '{name}' yet: write `async with open_root"):
        getattr(sv.open_root(), name)


@pytest.mark.parametrize(("restarts", "words"), [(0, "0 restarts"), (1, "1 restart"), (2, "2 restarts")])
def test_one_restart_is_not_told_as_many(restarts: int, words: str) -> None:
    assert f"more than {words} within 5 s" in str(sv.RestartIntensityExceeded("root", restarts, 5.0, ()))
