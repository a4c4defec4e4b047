"""A slow reader stops its process, and nobody else (case P08, and the reading side of P11)."""

import trio

from actors.harness import HarnessLimits
from actors.harness._flow import ReadValve
from actors.protocol import OutputGap
from tests.actors.harness.world import open_world

LIMITS = HarnessLimits(unread_bytes=64 * 1024, held_bytes=256 * 1024)


async def test_a_slow_reader_gets_every_byte(autojump_clock: object) -> None:
    async with open_world(limits=LIMITS) as world:
        total = 0
        async with world.client.processes.start(["flood", "1024"]) as process:
            async for data in process.output():
                total += len(data)
                if total % (128 * 1024) == 0:
                    await trio.sleep(1)
            code = await process.wait()

        assert (total, code) == (1024 * 1024, 0)
        assert world.client.statistics().read_pauses > 0


async def test_output_nobody_reads_does_not_stop_calls(autojump_clock: object) -> None:
    async with open_world(limits=LIMITS) as world:
        async with world.client.processes.start(["flood", "2000"]):
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(10):
                await world.client.status()
            other = await world.client.run(["echo", "hi"])

        assert other.stdout == b"hi\n"


async def test_output_nobody_reads_does_not_stop_the_output_of_another(autojump_clock: object) -> None:
    async with open_world(limits=LIMITS) as world:
        start = world.client.processes.start
        async with start(["flood", "2000"]), start(["tick"]) as other:
            lines = [line async for line in other.lines()]

        assert len(lines) == 100


async def test_waiting_for_the_end_does_not_need_a_reader(autojump_clock: object) -> None:
    async with open_world(limits=LIMITS) as world:
        async with world.client.processes.start(["flood", "2000"]) as process:
            code = await process.wait()
            pieces = [piece async for piece in process.chunks()]

        gaps = [piece for piece in pieces if isinstance(piece, OutputGap)]
        assert code == 0
        assert len(gaps) == 1
        assert len(pieces) - 1 + gaps[0].last_seq - gaps[0].first_seq + 1 == 2000


async def test_silence_of_our_own_making_is_not_taken_for_death(autojump_clock: object) -> None:
    async with open_world(limits=LIMITS) as world:
        async with world.client.processes.start(["flood", "1024"]) as process:
            await anext(process.output())
            await trio.sleep(120)
            rest = [data async for data in process.output()]

        assert len(rest) == 1023
        assert world.client.statistics().connections == 1


async def test_a_gate_is_open_while_someone_waits_or_nothing_is_full() -> None:
    valve = ReadValve()
    opened = [valve.is_open]
    valve.grew_full()
    opened.append(valve.is_open)
    with valve.someone_waits():
        opened.append(valve.is_open)
    opened.append(valve.is_open)
    valve.has_room()
    opened.append(valve.is_open)

    assert opened == [True, False, True, False, True]


async def test_101_a_reader_of_a_process_that_says_nothing_waits_and_is_not_ended(autojump_clock: object) -> None:
    async with (
        open_world(limits=LIMITS) as world,
        world.client.processes.start(["cat"], pipe_stdin=True) as process,
    ):
        with trio.move_on_after(3600) as waited:
            await anext(process.output())
        assert waited.cancelled_caught, "not even an hour of silence is an end"

        await process.stdin.write(b"at last")
        assert await anext(process.output()) == b"at last"
