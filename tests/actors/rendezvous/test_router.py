"""What the router counts, holds and meters, frame by frame: peers that take nothing until they are told to."""

import itertools
import math

import pytest
import trio
import trio.testing

from actors.noise import Identity
from actors.relay import Data, Frame, Resume, encode
from actors.rendezvous import Grant, RendezvousLimits
from actors.rendezvous._counters import Counters
from actors.rendezvous._links import ExecutorLink, HarnessLink
from actors.rendezvous._registry import Registry
from actors.rendezvous._router import Router
from actors.rendezvous._websocket import WebSocketClosed

KEY = Identity.generate().public_key
GRANT = Grant(token="a-token-of-everybody-here", name="all")


class Peer:
    """A connection that says what it is told to, and takes a frame only when it is asked to."""

    def __init__(self, link: ExecutorLink | HarnessLink) -> None:
        self.link = link
        self._say, self._said = trio.open_memory_channel[bytes](math.inf)

    def say(self, frame: Frame) -> int:
        message = encode(frame)
        self._say.send_nowait(message)
        return len(message)

    async def receive(self) -> bytes:
        try:
            return await self._said.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise WebSocketClosed("gone") from None

    def take(self) -> bytes | None:
        return self.link.next_frame()

    def wake(self) -> None:
        """Nobody sleeps: whoever wants a frame takes it."""

    async def close(self, _code: int) -> None:
        await trio.lowlevel.checkpoint()
        self._say.close()


class World:
    """One executor and any number of harnesses on one router."""

    def __init__(self, nursery: trio.Nursery, limits: RendezvousLimits) -> None:
        numbers = itertools.count()
        self._nursery, self._registry = nursery, Registry(limits, lambda: f"secret-{next(numbers)}")
        self.counters = Counters()
        self.router = Router(self._registry, limits, self.counters, nursery)

    async def executor(self) -> Peer:
        registration, _ = self._registry.register(GRANT, "env", KEY, trio.current_time())
        return await self._served(self.router.serve_executor, registration)

    async def harness(self, stream_id: str) -> Peer:
        meeting = self._registry.connect(GRANT, "env", KEY, trio.current_time())
        authorization = self._registry.harness_dials(meeting.ticket, trio.current_time())
        peer = await self._served(self.router.serve_harness, authorization)
        peer.say(Frame(stream_id, Resume()))
        await trio.testing.wait_all_tasks_blocked()
        return peer

    async def _served(self, serve, who) -> Peer:
        peers: list[Peer] = []

        def open_socket(link) -> Peer:
            peers.append(Peer(link))
            return peers[0]

        self._nursery.start_soon(serve, who, open_socket)
        await trio.testing.wait_all_tasks_blocked()
        return peers[0]


@pytest.fixture
def world(nursery: trio.Nursery) -> World:
    return World(nursery, RendezvousLimits(max_streams_per_executor=1, bytes_per_s=1000.0))


async def test_each_frame_is_counted_once_with_its_size_in_its_own_direction(world: World, nursery) -> None:
    """Killed: a frame for a harness that is counted down, twice, or as the first one."""
    executor = await world.executor()
    harness = await world.harness("s")
    said = len(encode(Frame("s", Resume()))) + harness.say(Frame("s", Data(0, b"what is it?")))
    sizes = [executor.say(Frame("s", Data(seq, bytes(size)))) for seq, size in enumerate((10, 200, 3000))]
    await trio.testing.wait_all_tasks_blocked()

    counters = world.counters
    assert (counters.frames_to_harnesses, counters.bytes_to_harnesses) == (3, sum(sizes))
    assert (counters.frames_to_executors, counters.bytes_to_executors) == (2, said)
    nursery.cancel_scope.cancel()


async def test_what_waits_is_the_sum_of_what_waits_for_each_also_for_one_that_is_refused(world: World, nursery) -> None:
    """Killed: the reset of a refused stream put in the place of what waits, taken from it, or not counted."""
    executor = await world.executor()
    slow = await world.harness("s")
    waiting = executor.say(Frame("s", Data(0, bytes(500))))
    await trio.testing.wait_all_tasks_blocked()
    assert world.router.buffered_bytes == waiting

    refused = await world.harness("t")
    assert world.router.buffered_bytes == waiting, "the refused one has left, and took its reset with it"
    assert slow.take() is not None
    assert (world.router.buffered_bytes, refused.take()) == (0, None)
    nursery.cancel_scope.cancel()


async def test_a_harness_that_used_up_its_rate_is_read_from_again_when_it_has_earned_it(
    world: World, nursery, autojump_clock
) -> None:
    """Killed: what a harness sends is not metered, or given to its token instead of taken."""
    executor = await world.executor()
    harness = await world.harness("s")
    for seq in range(5):
        harness.say(Frame("s", Data(seq, bytes(1000))))
    await trio.testing.wait_all_tasks_blocked()
    assert world.counters.frames_to_executors == 2, "the burst, and one that overdraws it"

    await trio.sleep(10)
    assert world.counters.frames_to_executors == 6
    assert executor.take() is not None
    nursery.cancel_scope.cancel()
