"""Peers that mean harm: whatever they send costs them their own request or connection, and nobody else anything."""

import json
from typing import Any

import pytest

from actors.executor import Executor
from tests.actors.executor.client import Client, Refused, memory_client
from tests.actors.executor.test_processes import real_client
from tests.actors.executor.test_sessions import memory_executor

HUGE = "x" * 1_000_000
# An answer may say a little more than the request that it refuses, and never repeat a megabyte.
ANSWER_BYTES_MAX = 8 * 1024


async def assert_others_are_served(executor: Executor) -> None:
    async with memory_client(executor) as other:
        assert (await other.call("environment/status"))["status"] == "ready"


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"id": 50, "method": method, "params": params}


@pytest.mark.parametrize(
    "message",
    [
        request(HUGE),
        {"id": HUGE, "method": "environment/status"},
        request("process/read", processId=HUGE),
        request("process/start", processId=HUGE, argv=["hello"], cwd="file:///", env={}, tty=False),
        request("process/start", processId="p", argv=["hello"], cwd=f"file://host/{HUGE}", env={}, tty=False),
        request("process/start", processId="p", argv=["hello"], cwd=f"{HUGE}:x", env={}, tty=False),
        request("process/start", processId="p", argv=HUGE, cwd="file:///", env={}, tty=False),
        request("process/signal", processId="p", signal=HUGE),
        request("process/write", processId="p", writeId=HUGE, chunk=""),
        request("initialize", clientName=HUGE),
        request("initialize", clientName="x", resumeSessionId=HUGE),
    ],
    ids=["method", "id", "read", "start", "cwd", "scheme", "argv", "signal", "write id", "client", "session"],
)
async def test_a_request_with_a_huge_name_gets_a_small_answer(message: dict[str, Any]) -> None:
    async with memory_executor() as (executor, _):
        async with memory_client(executor) as client:
            await client.raw(json.dumps(message))
            told = await first_answer(client)

            assert told["error"]["code"] in {-32600, -32601, -32602}
            assert len(json.dumps(told)) < ANSWER_BYTES_MAX
        await assert_others_are_served(executor)


async def first_answer(client: Client) -> dict[str, Any]:
    if await client.wait_stray(50):
        return client.stray[0]
    return await client.answer(50)


@pytest.mark.parametrize("cwd", ["file:///%FF", "file:///tmp/%FE%FF"])
async def test_a_folder_whose_name_is_no_text_is_refused_like_any_that_is_not_there(cwd: str) -> None:
    async with real_client() as (client, executor):
        with pytest.raises(Refused) as refused:
            await client.start("p", "/bin/true", cwd=cwd)

        assert refused.value.data["kind"] == "spawnNotFound"
        assert "\ufffd" in refused.value.data["path"]
        await assert_others_are_served(executor)


async def test_a_program_with_an_endless_name_is_refused_in_few_words() -> None:
    async with real_client() as (client, _):
        with pytest.raises(Refused) as refused:
            await client.start("p", HUGE)

        assert len(json.dumps(refused.value.data)) < ANSWER_BYTES_MAX
