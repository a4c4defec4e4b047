"""A host with real engine processes on a real socket, and a channel to it."""

from collections.abc import AsyncIterator

import pytest
import trio

from actors.sessions.grpc import Channel, open_channel
from actors.sessions.host import serve_host
from tests.support.skips import needs_engine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needed = needs_engine()
    for item in items:
        if "channel" in getattr(item, "fixturenames", ()):
            item.add_marker(needed)


@pytest.fixture
async def channel(nursery: trio.Nursery) -> AsyncIterator[Channel]:
    endpoint: str = await nursery.start(serve_host, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        yield channel
