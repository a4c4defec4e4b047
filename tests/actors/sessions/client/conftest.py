"""A host on a real socket whose scripts store, load and print, and a provider of sessions on it."""

from collections.abc import AsyncIterator

import pytest
import trio

from actors.sessions import SessionProvider, open_provider
from tests.actors.sessions.client.hosts import Cell, Host, ScriptError, Serving, serving


@pytest.fixture
def host() -> Host:
    host = Host()

    @host.script
    async def remember(cell: Cell) -> None:
        cell.store("key", "persisted")

    @host.script
    async def overwrite(cell: Cell) -> None:
        cell.store("key", "overwritten")

    @host.script
    async def recall(cell: Cell) -> None:
        cell.text(cell.load("key"))

    @host.script
    async def still_live(cell: Cell) -> None:
        cell.text("still live")

    @host.script
    async def call_echo(cell: Cell) -> None:
        cell.text((await cell.tool("echo", b'{"value":"persisted"}')).decode())

    @host.script
    async def catch_echo(cell: Cell) -> None:
        try:
            await cell.tool("echo")
        except ScriptError as error:
            cell.text(f"caught {error}")

    @host.script
    async def stay(cell: Cell) -> None:
        await trio.sleep_forever()

    @host.script
    async def notify(cell: Cell) -> None:
        cell.notify("notice")
        cell.text("after")

    @host.script
    async def throw(cell: Cell) -> None:
        cell.text("before")
        raise ScriptError("broken")

    return host


@pytest.fixture
async def served(host: Host) -> AsyncIterator[Serving]:
    async with serving(host) as served:
        yield served


@pytest.fixture
async def provider(served: Serving) -> AsyncIterator[SessionProvider]:
    async with open_provider(served.url) as provider:
        yield provider
