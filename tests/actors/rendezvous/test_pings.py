"""Pings of a peer that does not read what is answered."""

import trio
import trio.testing

from actors.rendezvous import RendezvousLimits
from actors.rendezvous._counters import Counters
from actors.rendezvous._websocket import ServerWebSocket
from actors.websocket import Opcode, encode_frame
from tests.actors.websocket.test_frames import client_frame


class Nothing:
    def next_frame(self) -> bytes | None:
        return None


async def test_a_peer_that_pings_and_does_not_read_costs_one_answer(nursery: trio.Nursery) -> None:
    """Mutant killed, as it was before: an answer is kept for each ping, for as long as the write may take."""
    ours, theirs = trio.testing.lockstep_stream_pair()
    counters = Counters()
    socket = ServerWebSocket(ours, b"", Nothing(), nursery, RendezvousLimits(), counters)
    nursery.start_soon(socket.receive)
    for number in range(1000):
        await theirs.send_all(client_frame(9, b"%d" % number))
        await trio.testing.wait_all_tasks_blocked()
    heard = await theirs.receive_some() + await theirs.receive_some()

    assert heard == encode_frame(Opcode.PONG, b"0") + encode_frame(Opcode.PONG, b"999")
    assert counters.pongs_merged == 998
    nursery.cancel_scope.cancel()
