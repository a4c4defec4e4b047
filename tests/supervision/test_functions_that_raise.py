"""What a user's function raises where no child stands behind it, and exceptions that are hostile themselves.

Each was seen to fail without its mending: an internal error of trio, a corrupted stack of nurseries, a group in the
place of Ctrl-C, a supervisor that ended without a word.
"""

# ruff: noqa: PT012
# Here what raises is the whole block: leaving it is the act under test.

import copy
import pickle
from typing import Any, NoReturn, cast

import pytest
import trio
import trio.testing

import supervision as sv


class E(Exception):
    pass


class Unspeakable(Exception):  # It is what its name says.
    def __repr__(self) -> str:
        raise ValueError("no repr")

    def __str__(self) -> str:
        raise ValueError("no str")

    def __reduce__(self) -> NoReturn:
        raise ValueError("no pickle")


class Endless(Exception):  # As above.
    def __repr__(self) -> str:
        return "x" * 1_000_000


class Final(BaseException):
    pass


async def dies(error: BaseException, *, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()
    raise error


async def idles(*, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


async def never_starts(error: BaseException, *, task_status: sv.ChildStatus[None]) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "told"), [(Unspeakable(), "Unspeakable, whose repr raised"), (Endless(), "more characters")]
)
async def test_the_failure_of_a_supervisor_comes_out_plain_and_short_whatever_the_repr_of_its_cause_does(
    error: Exception, told: str
) -> None:
    with pytest.raises(sv.RestartIntensityExceeded, match=told) as caught:
        async with sv.open_root() as root:
            await root.start_child(sv.ChildSpec("a", dies, error))
            await trio.sleep_forever()
    assert caught.value.__cause__ is error
    assert len(str(caught.value)) < 16 * 600
    for twin in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert str(twin) == str(caught.value)


@pytest.mark.parametrize(
    ("error", "told"), [(Unspeakable(), "Unspeakable, whose repr raised"), (Endless(), "more characters")]
)
async def test_a_failed_start_comes_out_as_such_whatever_the_repr_of_its_cause_does(
    error: Exception, told: str
) -> None:
    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed, match=told) as caught:
            await root.start_child(sv.ChildSpec("a", never_starts, error))
    assert caught.value.__cause__ is error
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, Final])
async def test_what_on_stop_raises_beyond_exceptions_is_raised_by_its_child_and_comes_out_plain(
    kind: type[BaseException],
) -> None:
    error, cleaned = kind("from on_stop"), list[str]()

    def on_stop() -> NoReturn:
        raise error

    async def child(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.on_stop(on_stop)
        task_status.started()
        await trio.sleep_forever()

    async def sibling(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            cleaned.append("sibling")

    with pytest.raises(kind) as caught:
        async with sv.open_root() as root:
            await root.start_child(sv.ChildSpec("sibling", sibling))
            lower = await root.start_supervisor("lower")
            await lower.start_child(sv.ChildSpec("a", child))
            await lower.stop_child("a")
            await trio.sleep_forever()
    assert caught.value is error
    assert cleaned == ["sibling"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
async def test_ctrl_c_in_a_child_that_starts_comes_out_plain_although_its_start_was_waited_for(
    kind: type[BaseException],
) -> None:
    error = kind()
    with pytest.raises(kind) as caught:
        async with sv.open_root() as root:
            pool = await (await root.start_supervisor("lower")).start_pool("pool")
            await pool.start_child(sv.ChildSpec("a", never_starts, error))
    assert caught.value is error
    with pytest.raises(kind) as caught:
        async with sv.open_root(children=(sv.ChildSpec("a", never_starts, error),)):
            pytest.fail("it cannot be entered")
    assert caught.value is error


@pytest.mark.parametrize("kind", [E, KeyboardInterrupt, Final])
@pytest.mark.parametrize("by_hand", [True, False])
async def test_what_on_gone_raises_ends_its_supervisor_and_comes_out_plain(
    kind: type[BaseException], by_hand: bool
) -> None:
    error, others = kind("from on_gone"), list[sv.Child]()

    def on_gone(_cause: BaseException | None) -> NoReturn:
        raise error

    async def child(leave: trio.Event, *, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        await leave.wait()

    with pytest.raises(kind) as caught:
        async with sv.open_root() as root:
            leave = trio.Event()
            spec = sv.ChildSpec("a", child, leave, restart=sv.Restart.TRANSIENT, on_gone=on_gone)
            a = await root.start_child(spec)
            others.append(await root.start_child(sv.ChildSpec("b", idles)))
            if by_hand:
                await root.stop_child("a")
            else:
                leave.set()
                await a.wait_stopped()
            await trio.sleep_forever()
    assert caught.value is error
    assert others[0].state is sv.ChildState.STOPPED


async def test_what_on_gone_raises_in_a_lower_supervisor_is_a_crash_of_that_one() -> None:
    def on_gone(_cause: BaseException | None) -> NoReturn:
        raise E("from on_gone")

    spec = sv.ChildSpec("a", idles, on_gone=on_gone)
    async with sv.open_root() as root, root.events() as events:
        lower = await root.start_supervisor("lower", children=(sv.ChildSpec("b", idles),))
        await lower.start_child(spec)
        await lower.stop_child("a")
        async for event in events:
            if isinstance(event, sv.ChildExited) and event.path == "root/lower":
                assert isinstance(event.cause, E)
                break
        child = root.child("lower")
        assert child is not None
        while child.generation < 2:
            await trio.lowlevel.checkpoint()
        await child.wait_started()
        assert [below.name for below in lower.children()] == ["b"]


async def kept_cancellation() -> trio.Cancelled:
    kept: list[trio.Cancelled] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as error:
            kept.append(error)
            raise
    return kept[0]


@pytest.mark.parametrize("levels", [0, 1])
@pytest.mark.parametrize("beside", [None, E("beside")])
async def test_a_cancellation_kept_from_elsewhere_and_raised_by_a_child_is_a_crash_of_that_child(
    levels: int, beside: Exception | None
) -> None:
    """Without the mending the supervisor ended in silence, and so did the block of a root."""
    kept = await kept_cancellation()
    error: BaseException = kept if beside is None else BaseExceptionGroup("both", [kept, beside])

    async def child(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.started()
        if task_status.generation == 1:
            raise error
        await trio.sleep_forever()

    async with sv.open_root() as root:
        lowest = await root.start_supervisor("lower") if levels else root
        sibling = await lowest.start_child(sv.ChildSpec("sibling", idles))
        a: Any = await lowest.start_child(sv.ChildSpec("a", child, restart=sv.Restart.TRANSIENT))
        while a.generation < 2:
            await trio.lowlevel.checkpoint()
        await a.wait_started()
        assert sibling.generation == 1
        assert lowest.statistics().restarts == 1


@pytest.mark.parametrize("value", [10**400, 10**5000], ids=["400 digits", "5000 digits"])
def test_a_time_that_cannot_be_reckoned_with_is_refused_when_it_is_given(value: Any) -> None:
    """It was an overflow in the middle of the supervisor's step, which left the child in two states."""
    with pytest.raises(sv.InvalidSpec, match="bits"):
        sv.ChildSpec("a", idles, shutdown_s=value)
    with pytest.raises(sv.InvalidSpec, match="bits"):
        sv.ChildSpec("a", idles, start_timeout_s=value)
    with pytest.raises(sv.InvalidSpec, match=r"Backoff\.factor"):
        sv.Backoff(factor=value)


@pytest.mark.parametrize("factor", [1e300, 10**6, 1.0])
def test_a_steep_backoff_reaches_its_longest_delay_and_stays_there(factor: float) -> None:
    """It was an overflow at the 54th crash, in the middle of the supervisor's step."""
    backoff = sv.Backoff(first_s=0.1, factor=factor, max_s=30.0, jitter=0.0)
    longest = 30.0 if factor > 1 else 0.1
    assert [backoff.delay_s(attempt, 0.5) for attempt in (60, 65, 10_000)] == [longest] * 3


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("own", [None, E("of the block")])
async def test_ctrl_c_in_a_child_comes_out_plain_although_the_block_waits_in_a_nursery(
    tasks: int, own: Exception | None
) -> None:
    """The nursery of the block gathers a cancellation a task in a group, which came out beside the Ctrl-C."""
    interrupt = KeyboardInterrupt()

    async def waits() -> None:
        await trio.sleep_forever()

    async def fails_at_the_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            if own is not None:
                raise own

    async def commands(root: sv.Supervisor) -> None:
        child = await root.start_child(sv.ChildSpec("b", idles))
        await child.wait_stopped()
        await root.start_child(sv.ChildSpec("c", idles))

    with pytest.raises(BaseException) as caught:  # noqa: PT011  # Which one is what is looked at.
        async with sv.open_root() as root, trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(waits)
            nursery.start_soon(commands, root)
            nursery.start_soon(fails_at_the_end)
            await trio.testing.wait_all_tasks_blocked()
            root.start_child_nowait(sv.ChildSpec("a", dies, interrupt))
    if own is None:
        assert caught.value is interrupt
        return
    both = cast("BaseExceptionGroup[BaseException]", caught.value)
    assert both.exceptions[1:] == (interrupt,)
    assert cast("ExceptionGroup[Exception]", both.exceptions[0]).exceptions == (own,)
