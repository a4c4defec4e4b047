"""A root supervisor for each test."""

from collections.abc import AsyncIterator

import pytest

from supervision import RestartIntensity, Supervisor, open_root


@pytest.fixture
async def root() -> AsyncIterator[Supervisor]:
    """A root that restarts generously, so that a test is about actors and not about budgets."""
    async with open_root(intensity=RestartIntensity(restarts=1000, period_s=1.0)) as supervisor:
        yield supervisor
