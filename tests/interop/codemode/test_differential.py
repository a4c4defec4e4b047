"""The existing host and ours, given the same random scripts and the same random calls: they answer the same.

Made equal before they are compared: how long things took, chosen ids, what a JSON parser says of broken JSON,
and the frames of a stack, which two engines word differently.
"""

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings

from actors.sessions._wire import _methods as methods
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import CallFailed, open_channel
from actors.sessions.host._items import TextItem
from tests.actors.sessions.host.peer import Peer, Seen, open_peer, tool
from tests.interop.codemode.hosts import OURS, PROGRAM, theirs
from tests.interop.codemode.scripts import Step, rows
from tests.support.skips import skip

pytestmark = pytest.mark.slow
TOOLS = [tool("echo"), tool("fail"), tool("a b")]
STACK = re.compile(r"\n    at .*", re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PARSER = re.compile(r"(schema|output JSON): .*")
PATIENCE_S = 30


@contextmanager
def host(command: tuple[str, ...]) -> Iterator[str]:
    with Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    if not PROGRAM:
        skip(
            "the existing host",
            "run .ci/interop-codemode, or set GREENROOM_INTEROP_CODEMODE",
        )
    with ExitStack() as hosts:
        yield hosts.enter_context(host(theirs())), hosts.enter_context(host(OURS))


async def answer(call: wire.ToolCall) -> Any:
    if call.tool_name.name == "fail":
        return RuntimeError(call.input_json.decode())
    return call.input_json if call.HasField("input_json") else "no input"


def shown(seen: Seen) -> tuple[Any, ...]:
    items = [TextItem(STACK.sub("", item.text)) if isinstance(item, TextItem) else item for item in seen.items]
    return (seen.cell_id, seen.outcome, items, None if seen.error is None else STACK.sub("", seen.error))


class Row:
    """A row of calls on one host."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.seen = peer, list[Any]()
        self.ended = 0

    async def play(self, steps: list[Step]) -> list[Any]:
        for step in steps:
            try:
                await (self.run(step) if step.kind == "run" else self.call(step))
            except CallFailed as failed:
                self.seen.append((step.kind, failed.code.name, self._known(failed.status.message)))
        await self.peer.until(lambda: len(self.peer.closed) >= self.ended)
        self.seen.append(sorted((one.cell_id, one.final_tool_call_sequence) for one in self.peer.closed))
        self.seen.append([(one.cell_id, one.call_id, STACK.sub("", one.text)) for one in self.peer.notifications])
        calls = self.peer.calls
        self.seen.append(
            [(c.cell_id, c.runtime_tool_call_id, c.tool_name.name, c.input_json, c.sequence) for c in calls]
        )
        return self.seen

    def _known(self, message: str) -> str:
        return PARSER.sub(r"\1", UUID.sub("UUID", message))

    def _saw(self, *what: Any, seen: Seen, state: str = "live_cell") -> None:
        self.seen.append((*what, state, *shown(seen)))
        self.ended += seen.outcome != "yielded" and state == "live_cell"

    async def run(self, step: Step) -> None:
        more = {} if step.budget is None else {"max_output_tokens": step.budget}
        if step.revision is not None:
            more["catalog_revision"] = step.revision
        tools = TOOLS if step.tools else []
        seen = await self.peer.run(step.script.source, enabled_tools=tools, yield_time_ms=20_000, **more)
        self._saw("run", seen=seen)
        more.pop("catalog_revision", None)
        if seen.outcome == "yielded" and not step.script.stays:
            state, after = await self.peer.wait(seen.cell_id, 20_000, **more)
            self._saw("wait", seen=after, state=state)
        elif seen.outcome == "yielded":
            # Whether the rest comes now or with the end hangs on time; together it is the same.
            _, between = await self.peer.wait(seen.cell_id, 300)
            if between.outcome == "yielded":
                _, after = await self.peer.terminate(seen.cell_id)
                self.seen.append(("stayed", after.outcome, shown(between)[2] + shown(after)[2]))
                self.ended += 1
            else:
                self._saw("ended", seen=between)

    async def call(self, step: Step) -> None:
        peer, session = self.peer, self.peer.session_id
        cell_id = step.identifier if step.number == 0 else str(step.number)
        match step.kind:
            case "wait":
                state, seen = await peer.wait(cell_id, 0)
                self._saw("wait", seen=seen, state=state)
            case "terminate":
                state, seen = await peer.terminate(cell_id)
                self._saw("terminate", seen=seen, state=state)
            case "reuse":
                first = peer.request("text(1)")
                async with peer.channel.stream(methods.EXECUTE, first) as events:
                    self._saw("run", seen=Seen([event async for event in events][-1].outcome))
                async with peer.channel.stream(methods.EXECUTE, first) as events:
                    self.seen.append([event async for event in events])
            case "yield":
                given = {"wait_id": step.identifier} if step.number % 2 else {"execution_id": step.identifier}
                request = wire.YieldObservationRequest(session_id=session, **(given if step.number else {}))
                self.seen.append(await peer.channel.unary(methods.YIELD_OBSERVATION, request))
            case "cancel-wait":
                wait_id = step.identifier or str(uuid.uuid4())
                cancel = wire.CancelWaitRequest(session_id=session, wait_id=wait_id)
                self.seen.append(await peer.channel.unary(methods.CANCEL_WAIT, cancel))
                wait = wire.WaitRequest(session_id=session, cell_id="1", wait_id=wait_id, yield_time_ms=0)
                self.seen.append(await peer.channel.unary(methods.WAIT, wait))
            case "complete":
                known = step.identifier if step.number else "00000000-0000-4000-8000-000000000000"
                complete = wire.CompleteToolCallRequest(session_id=session, invocation_id=known)
                if step.tools:
                    complete.succeeded.output_json = json.dumps(step.number).encode()
                self.seen.append(await peer.channel.unary(methods.COMPLETE_TOOL_CALL, complete))
            case "many-filters":
                names = [wire.ToolName(name=step.identifier or "n")] * (63 + step.number)
                subscribe = wire.SubscribeToToolCallsRequest(session_id=session, tool_names=names)
                async with peer.channel.stream(methods.SUBSCRIBE_TO_TOOL_CALLS, subscribe) as calls:
                    await calls.headers()
                    self.seen.append("subscribed")
            case "bad-tool":
                wrong = [wire.ToolDefinition(name="n"), tool(""), tool("n", kind=9), tool("n", input_schema_json=b"{")]
                await peer.run("text(1)", enabled_tools=[wrong[step.number % 4]])
            case _:
                seen = await peer.run("text(ALL_TOOLS)", catalog_revision=step.revision)
                self._saw("revision", seen=seen)


async def played(url: str, mode: int, steps: list[Step]) -> list[Any]:
    with trio.fail_after(PATIENCE_S):
        async with open_channel(url) as channel, trio.open_nursery() as nursery:
            peer = await open_peer(channel, nursery, output_truncation=mode)
            await nursery.start(partial(peer.answer_tools, answer))
            seen = await Row(peer).play(steps)
            await peer.close()
            nursery.cancel_scope.cancel()
    return seen


async def both(urls: tuple[str, str], mode: int, steps: list[Step]) -> list[list[Any]]:
    answers: list[list[Any]] = [[], []]

    async def one(place: int) -> None:
        answers[place] = await played(urls[place], mode, steps)

    async with trio.open_nursery() as nursery:
        for place in range(2):
            nursery.start_soon(one, place)
    return answers


@pytest.mark.parametrize("mode", [1, 2], ids=["client", "server"])
def test_both_hosts_answer_alike(urls: tuple[str, str], mode: int) -> None:
    @settings(max_examples=250, deadline=None, suppress_health_check=[*HealthCheck])
    @given(rows)
    def compare(steps: list[Step]) -> None:
        theirs_saw, ours_saw = trio.run(both, urls, mode, steps)

        assert ours_saw == theirs_saw

    compare()
