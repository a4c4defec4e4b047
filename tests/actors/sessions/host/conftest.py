"""A host with real engine processes on a real socket, and a channel to it."""

from collections.abc import AsyncIterator

import pytest
import trio

from actors.sessions.grpc import Channel, open_channel
from actors.sessions.host import EngineNotFound, find_engine, serve_host


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        find_engine()
    except EngineNotFound as missing:
        for item in items:
            if "channel" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=str(missing)))


@pytest.fixture
async def channel(nursery: trio.Nursery) -> AsyncIterator[Channel]:
    endpoint: str = await nursery.start(serve_host, "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        yield channel
