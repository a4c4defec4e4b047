"""The small parts: outbox, input queue, reminders, news, information, and what a block leaves behind."""

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.executor import Limits, gather_information, open_executor, serve_executor
from actors.executor._news import encode_news
from actors.executor._outbox import Outbox
from actors.executor._reminders import Reminders
from actors.executor._stdin import Offer, StdinQueue
from actors.executor.testing import open_memory_launcher
from actors.protocol import NEWS, Notification, ProcessOutput, Stream, encode_message
from tests.support.cancelling import cancel_at_each_step


async def test_answers_go_before_news_and_each_keeps_its_order() -> None:
    outbox = Outbox(room_bytes=1000)
    for n in range(2):
        outbox.add_news(b"n%d" % n)
        outbox.add_answer(b"a%d" % n)

    assert await outbox.take() == [b"a0", b"a1", b"n0", b"n1"]


async def test_a_flood_of_answers_lets_news_through() -> None:
    outbox = Outbox(room_bytes=1000)
    outbox.add_news(b"news")
    for _ in range(20):
        outbox.add_answer(b"answer")

    assert (await outbox.take()).index(b"news") == 8


async def test_a_full_lane_holds_its_adders_and_a_closed_outbox_lets_them_go_and_counts() -> None:
    outbox = Outbox(room_bytes=10)
    outbox.add_news(bytes(20))
    passed: list[str] = []

    async def wait(name: str) -> None:
        await outbox.news.wait_room()
        passed.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "first")
        await wait_all_tasks_blocked()
        assert not passed
        await outbox.take()
        await wait_all_tasks_blocked()
        assert passed == ["first"]
        outbox.add_news(bytes(20))
        nursery.start_soon(wait, "second")
        await wait_all_tasks_blocked()
        outbox.close()
    outbox.add_answer(b"late")

    assert passed == ["first", "second"]
    assert outbox.statistics().dropped_messages == 2
    with pytest.raises(trio.EndOfChannel):
        await outbox.take()


async def test_taking_from_an_outbox_can_be_cancelled_and_takes_nothing() -> None:
    outbox = Outbox(room_bytes=10)

    async def take() -> None:
        await trio.lowlevel.checkpoint()
        if outbox.statistics().sent_messages == 0 and not outbox.answers:
            outbox.add_answer(b"x")
        await trio.lowlevel.checkpoint()
        assert await outbox.take() == [b"x"]

    assert await cancel_at_each_step(take) > 2


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 40)), max_size=30), st.integers(1, 60))
def test_what_is_accepted_is_written_once_and_in_order(offers: list[tuple[str, int]], bytes_max: int) -> None:
    """Killed: the newest waiting write admitted first; a repeated id written again while the first waits."""
    written: list[bytes] = []
    answered: list[tuple[int, Offer]] = []

    class End:
        async def send_all(self, data: bytes) -> None:
            await trio.lowlevel.checkpoint()
            written.append(data)

        def close(self) -> None: ...

    async def main() -> None:
        queue = StdinQueue(bytes_max=bytes_max, waiting_max=100, write_ids_max=100)
        expected: dict[str, bytes] = {}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(queue.feed, End())
            for number, (name, size) in enumerate(offers):
                data = name.encode() * size
                offer = queue.offer(name, data, eof=False, later=lambda o, n=number: answered.append((n, o)))
                assert offer in {Offer.ACCEPTED, Offer.WAITING}
                assert name not in expected or offer is Offer.ACCEPTED
                expected.setdefault(name, data)
                if size % 3 == 0:
                    await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert written == list(expected.values())

    trio.run(main)

    assert [number for number, _ in answered] == sorted(number for number, _ in answered)
    assert all(offer is Offer.ACCEPTED for _, offer in answered)


async def test_reminders_come_in_order_of_time_and_one_called_off_does_not(autojump_clock: MockClock) -> None:
    reminders, came = Reminders(), []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reminders.run)
        for after_s in (30, 10, 20, 5):
            reminder = reminders.remind(after_s, lambda s=after_s: came.append((s, trio.current_time())))
        reminder.call_off()
        await trio.sleep(12)
        reminders.remind(1, lambda: came.append((1, trio.current_time())))
        await trio.sleep(50)
        nursery.cancel_scope.cancel()

    began_s = came[0][1] - 10
    assert [(s, at_s - began_s) for s, at_s in came] == [(10, 10), (1, 13), (20, 20), (30, 30)]


@given(st.text(max_size=20), st.integers(1, 2**40), st.sampled_from(Stream), st.binary(max_size=100))
def test_output_is_written_as_the_codec_would(process_id: str, seq: int, stream: Stream, chunk: bytes) -> None:
    event = ProcessOutput(process_id=process_id, seq=seq, stream=stream, chunk=chunk)
    news = NEWS["process/output"]
    by_codec = json.loads(encode_message(Notification(news.name, news.encode_params(event))))

    assert json.loads(encode_news(event)) == by_codec


def test_the_information_is_complete_and_says_what_we_added() -> None:
    information = gather_information()

    assert information.shell.path.startswith("/")
    assert information.cwd is not None
    assert information.cwd.startswith("file:///")
    assert (information.provider_id or "").startswith("sha256:")
    assert information.capabilities.process_stdin_eof


@pytest.mark.parametrize("field", ["detached_s", "processes_max", "outbox_bytes", "drain_s"])
def test_a_bound_of_nothing_is_refused_by_name(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be above zero"):
        Limits(**{field: 0})


async def test_what_a_block_raises_comes_out_plain() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_memory_launcher({}) as launcher, open_executor(launcher=launcher):
            raise KeyError("mine")


async def test_a_taken_port_comes_out_plain() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with open_memory_launcher({}) as launcher:
        with pytest.raises(OSError, match="in use"):
            await serve_executor(f"ws://127.0.0.1:{port}", launcher=launcher)
    await listener.aclose()


async def test_opening_an_executor_can_be_cancelled_at_each_step() -> None:
    async with open_memory_launcher({}) as launcher:

        async def use() -> None:
            async with open_executor(launcher=launcher) as executor:
                assert executor.statistics().sessions == 0
                await trio.lowlevel.checkpoint()

        assert await cancel_at_each_step(use) > 1


async def test_serving_can_be_cancelled_at_each_step_and_leaves_its_port_free() -> None:
    ports: list[int] = []

    async def the_port_is_free() -> None:
        if ports:
            for listener in await trio.open_tcp_listeners(ports[-1], host="127.0.0.1"):
                await listener.aclose()

    async with open_memory_launcher({}) as launcher:

        async def serve() -> None:
            async with trio.open_nursery() as nursery:

                async def until_it_serves(task_status: Any) -> None:
                    await serve_executor(launcher=launcher, task_status=task_status)

                endpoint = await nursery.start(until_it_serves)
                ports.append(endpoint.port)
                nursery.cancel_scope.cancel()

        assert await cancel_at_each_step(serve, check=the_port_is_free) > 2
        assert ports
