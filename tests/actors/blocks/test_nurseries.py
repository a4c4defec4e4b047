"""What comes out of a block that helpers serve, when it is not the block alone that fails; of both that there are."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest
import trio
import trio.testing

from actors import blocks
from actors.sessions.grpc import _nurseries


class LikeAny(Exception):
    """Equal to every other object, as exceptions with fields may be to one another."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Exception.__hash__


Opener = Callable[[], AbstractAsyncContextManager[trio.Nursery]]


@pytest.fixture(params=[blocks.open_helpers, _nurseries.open_helpers], ids=["blocks", "grpc"])
def open_helpers(request: pytest.FixtureRequest) -> Opener:
    return request.param


async def raised_by(
    open_helpers: Opener, work: Callable[[trio.Nursery], Awaitable[object]]
) -> BaseExceptionGroup[BaseException]:
    try:
        async with open_helpers() as nursery:
            await work(nursery)
    except BaseException as error:
        # Any other is a mistake here, a stray cancellation too: the runner of the tests would take it for its own.
        if not isinstance(error, BaseExceptionGroup):
            raise AssertionError(repr(error)) from error
        return cast("BaseExceptionGroup[BaseException]", error)
    raise AssertionError("nothing was raised")


async def fail(error: BaseException) -> None:
    await trio.lowlevel.checkpoint()
    raise error


async def fail_when_cancelled(error: BaseException) -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise error


async def test_helpers_end_with_their_block(autojump_clock: trio.testing.MockClock, open_helpers: Opener) -> None:
    with trio.fail_after(1):
        async with open_helpers() as nursery:
            nursery.start_soon(trio.sleep_forever)


async def test_a_helper_that_fails_ends_the_block_and_comes_out_in_a_group(open_helpers: Opener) -> None:
    """Seen failing with `==` between exceptions: the cancellation of the block came out instead."""
    failure = LikeAny()

    async def work(nursery: trio.Nursery) -> None:
        nursery.start_soon(fail, failure)
        await trio.sleep_forever()

    [only] = (await raised_by(open_helpers, work)).exceptions
    assert only is failure


@pytest.mark.parametrize("error", [ValueError("mine"), ExceptionGroup("mine", [ValueError("1"), KeyError("2")])])
async def test_neither_what_the_block_raises_nor_what_a_helper_raises_is_lost(
    error: Exception, open_helpers: Opener
) -> None:
    """Seen failing for a helper's failure that gave way to the block's, and for the other way round."""
    failure = OSError("a helper's")

    async def work(nursery: trio.Nursery) -> None:
        nursery.start_soon(fail_when_cancelled, failure)
        await trio.testing.wait_all_tasks_blocked()
        raise error

    assert {str(one) for one in (await raised_by(open_helpers, work)).exceptions} == {str(error), "a helper's"}


async def test_a_block_that_is_cancelled_from_outside_is_cancelled_and_its_helpers_with_it(
    open_helpers: Opener,
) -> None:
    ended: list[str] = []

    async def help_out() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("helper")

    with trio.CancelScope() as scope:
        async with open_helpers() as nursery:
            nursery.start_soon(help_out)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert ended == ["helper"]


async def test_a_group_of_the_block_that_holds_the_nursery_s_own_cancellation_loses_only_that(
    open_helpers: Opener,
) -> None:
    """Seen failing when the block's error was held back from the nursery: a cancellation of nobody's came out."""
    mine = ValueError("mine")

    async def work(nursery: trio.Nursery) -> None:
        nursery.start_soon(fail, OSError("a helper's"))
        async with trio.open_nursery() as inner:
            inner.start_soon(trio.sleep_forever)
            inner.start_soon(fail_when_cancelled, mine)
            await trio.sleep_forever()

    raised = await raised_by(open_helpers, work)
    assert raised.subgroup(trio.Cancelled) is None
    assert raised.subgroup(lambda error: error is mine) is not None
    assert raised.subgroup(OSError) is not None
