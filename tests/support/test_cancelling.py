import pytest
import trio

from tests.support.cancelling import cancel_at_each_step


async def test_each_checkpoint_of_an_operation_is_cancelled_once() -> None:
    reached: list[int] = []

    async def three_steps() -> None:
        for step in range(3):
            await trio.lowlevel.checkpoint()
            reached.append(step)

    runs = await cancel_at_each_step(three_steps)

    assert runs == 5  # before it began, at each of the three checkpoints, and once whole
    assert reached == [0, 0, 1, 0, 1, 2]


async def test_the_check_sees_what_a_cancel_left_behind() -> None:
    leaked: list[str] = []

    async def leaks() -> None:
        leaked.append("opened")
        await trio.lowlevel.checkpoint()
        leaked.pop()

    async def nothing_is_left() -> None:
        assert not leaked

    with pytest.raises(AssertionError):
        await cancel_at_each_step(leaks, check=nothing_is_left)
