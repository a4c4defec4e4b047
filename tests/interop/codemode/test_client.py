"""Our client against the existing host: the seed's recovery cases, and what else the client's tests run."""

from collections.abc import AsyncIterator

import pytest

from tests.actors.sessions.client.proxies import Proxy, open_proxy
from tests.actors.sessions.client.test_seed_scripts import *  # noqa: F403 - the same tests, another host below
from tests.interop.codemode.hosts import running, theirs

pytestmark = [pytest.mark.slow]


@pytest.fixture(name="proxy")
async def proxy_of_theirs() -> AsyncIterator[Proxy]:
    async with running(theirs()) as (endpoint, _), open_proxy(endpoint) as proxy:
        yield proxy
