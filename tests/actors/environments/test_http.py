"""HTTP requests through an environment: connecting if need be, the same as through a client."""

import pytest

from actors import InvalidOption
from actors.environments import Connectors, HarnessConnector, LocalConnector, Snapshot, open_manager
from actors.harness import HttpUnavailable
from supervision import open_root
from tests.actors.environments.waiting import found
from tests.support.web import open_web


async def test_requests_of_this_machine() -> None:
    connectors = Connectors(plain=HarnessConnector(), local=LocalConnector(http=True))
    snapshot = Snapshot(include_local=True, default="local")
    async with (
        open_web() as web,
        open_root() as root,
        open_manager(root, connectors=connectors, snapshot=snapshot) as manager,
    ):
        http = found(manager, "local").http
        answer = await http.request("POST", f"{web.url}/echo", json={"a": 1}, timeout_s=10)
        assert answer.json()["body"] == '{"a": 1}'
        async with http.stream("GET", f"{web.url}/gzip") as streamed:
            assert (streamed.status, await streamed.read()) == (200, b"plain text")
        with pytest.raises(InvalidOption, match="did you mean timeout_s"):
            await http.request("GET", f"{web.url}/ok", timeout=10)  # type: ignore[call-arg]


async def test_a_machine_makes_none_unless_that_is_enabled() -> None:
    connectors = Connectors(plain=HarnessConnector(), local=LocalConnector())
    snapshot = Snapshot(include_local=True, default="local")
    async with open_root() as root, open_manager(root, connectors=connectors, snapshot=snapshot) as manager:
        with pytest.raises(HttpUnavailable):
            await found(manager, "local").http.request("GET", "http://127.0.0.1:1/")
