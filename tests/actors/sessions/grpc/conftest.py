"""A network without sockets, a server of the contract's service on it, and a channel to it."""

from collections.abc import AsyncIterator

import pytest

from actors.sessions import grpc
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.grpc.peers import run_ours
from tests.actors.sessions.grpc.service import Seen


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
async def server(network: MemoryNetwork, seen: Seen) -> AsyncIterator[grpc.Server]:
    async with run_ours(seen, [network.listener]) as server:
        yield server


@pytest.fixture
async def channel(network: MemoryNetwork) -> AsyncIterator[grpc.Channel]:
    async with grpc.open_channel("http://memory", dial=network.dial) as channel:
        yield channel
