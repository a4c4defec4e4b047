"""Each test of the contract meets both executors, over both roads."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from tests.interop.codex.bodies import OURS, PLACES, Place, open_place


@pytest.fixture(params=PLACES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Place, None]:
    body, road = request.param
    with trio.fail_after(60):
        async with open_place(body, road, tmp_path) as opened:
            yield opened


@pytest.fixture(params=["plain", "relay"])
async def our_place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Place, None]:
    with trio.fail_after(60):
        async with open_place(OURS, request.param, tmp_path) as opened:
            yield opened
