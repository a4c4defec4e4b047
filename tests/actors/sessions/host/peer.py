"""A plain client of the host for its tests: one lease, answers to tool calls, and every event kept."""

import itertools
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from actors.sessions._wire import _methods as methods
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import CallFailed, Channel, ClientCall
from actors.sessions.host._items import AudioItem, ImageItem, Item, TextItem

DETAILS = {1: "auto", 2: "low", 3: "high", 4: "original"}
Answer = Callable[[wire.ToolCall], Awaitable[Any]]


class Seen:
    """An outcome, read."""

    def __init__(self, message: wire.ExecutionOutcome) -> None:
        self.cell_id = message.cell_id
        self.outcome = message.WhichOneof("outcome")
        self.items = [read_item(item) for item in message.content_items]
        completed = message.completed
        self.error = completed.error_text if completed.HasField("error_text") else None
        self.duration_ns = message.code_mode_host_duration_ns

    @property
    def texts(self) -> list[str]:
        return [item.text if isinstance(item, TextItem) else str(item) for item in self.items]


def read_item(item: wire.ContentItem) -> Item:
    match item.WhichOneof("item"):
        case "text":
            return TextItem(item.text.text)
        case "image":
            return ImageItem(item.image.image_url, DETAILS[item.image.detail])
        case _:
            return AudioItem(item.audio.audio_url)


def tool(name: str, **more: Any) -> wire.ToolDefinition:
    given = {"name": name, "tool_name": wire.ToolName(name=name), "description": "d", "kind": wire.TOOL_KIND_FUNCTION}
    return wire.ToolDefinition(**{**given, **more})


class Peer:
    """One session of a host."""

    def __init__(self, channel: Channel, nursery: trio.Nursery) -> None:
        self.channel, self.nursery = channel, nursery
        self.session_id = ""
        self.events: list[wire.SessionEvent] = []
        self.calls: list[wire.ToolCall] = []
        self.leased = trio.CancelScope()
        self.ended = trio.Event()
        self._changed = trio.Event()
        self._ids = itertools.count(1)
        self._closing = False

    async def keep_lease(
        self, request: wire.OpenSessionRequest, *, task_status: Any = trio.TASK_STATUS_IGNORED
    ) -> None:
        with self.leased:
            async with self.channel.stream(methods.OPEN_SESSION, request) as events:
                async for event in events:
                    if event.HasField("opened"):
                        self.session_id = event.opened.session_id
                        task_status.started(event.opened)
                    self.events.append(event)
                    self._changed.set()
                    self._changed = trio.Event()
        self.ended.set()

    async def until(self, check: Callable[[], bool]) -> None:
        with trio.fail_after(10):
            while not check():
                await self._changed.wait()

    async def until_closed(self, number: int) -> wire.CellClosed:
        await self.until(lambda: len(self.closed) >= number)
        return self.closed[number - 1]

    @property
    def closed(self) -> list[wire.CellClosed]:
        return [event.cell_closed for event in self.events if event.HasField("cell_closed")]

    @property
    def notifications(self) -> list[wire.Notification]:
        return [event.notification for event in self.events if event.HasField("notification")]

    @property
    def cancelled(self) -> list[wire.ToolCallCancelled]:
        return [event.tool_call_cancelled for event in self.events if event.HasField("tool_call_cancelled")]

    async def answer_tools(
        self, answer: Answer, names: Sequence[wire.ToolName] = (), *, task_status: Any = trio.TASK_STATUS_IGNORED
    ) -> None:
        request = wire.SubscribeToToolCallsRequest(session_id=self.session_id, tool_names=names)
        async with self.channel.stream(methods.SUBSCRIBE_TO_TOOL_CALLS, request) as calls:
            await calls.headers()
            task_status.started()
            async for call in calls:
                self.calls.append(call)
                self.nursery.start_soon(self._answer, call, answer)

    async def _answer(self, call: wire.ToolCall, answer: Answer) -> None:
        value = await answer(call)
        if value is None:
            return
        try:
            await self.complete(call.invocation_id, value)
        except CallFailed:
            if not self._closing:  # An answer may cross the end of its session.
                raise

    async def complete(self, invocation_id: str, value: Any) -> None:
        request = wire.CompleteToolCallRequest(session_id=self.session_id, invocation_id=invocation_id)
        if isinstance(value, Exception):
            request.failed.CopyFrom(wire.ToolCallFailed(message=str(value)))
        else:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            request.succeeded.CopyFrom(wire.ToolCallSucceeded(output_json=data))
        await self.channel.unary(methods.COMPLETE_TOOL_CALL, request)

    def request(self, source: str, **more: Any) -> wire.ExecuteRequest:
        given = {
            "session_id": self.session_id,
            "execution_id": str(uuid.uuid4()),
            "tool_call_id": "call-1",
            "source": source,
        }
        return wire.ExecuteRequest(**{**given, "yield_time_ms": 60_000, **more})

    @asynccontextmanager
    async def executing(self, source: str, **more: Any) -> AsyncIterator[tuple[str, ClientCall[Any, Any]]]:
        async with self.channel.stream(methods.EXECUTE, self.request(source, **more)) as events:
            started = await events.receive()
            yield started.started.cell_id, events

    async def run(self, source: str, **more: Any) -> Seen:
        async with self.executing(source, **more) as (_, events):
            event = await events.receive()
        return Seen(event.outcome)

    async def wait(self, cell_id: str, yield_time_ms: int = 5000, **more: Any) -> tuple[str, Seen]:
        given = {"session_id": self.session_id, "cell_id": cell_id, "wait_id": str(uuid.uuid4())}
        request = wire.WaitRequest(**{**given, "yield_time_ms": yield_time_ms, **more})
        return read_state(await self.channel.unary(methods.WAIT, request))

    async def terminate(self, cell_id: str, **more: Any) -> tuple[str, Seen]:
        request = wire.TerminateRequest(session_id=self.session_id, cell_id=cell_id, **more)
        return read_state(await self.channel.unary(methods.TERMINATE, request))

    async def close(self) -> None:
        self._closing = True
        await self.channel.unary(methods.CLOSE_SESSION, wire.CloseSessionRequest(session_id=self.session_id))
        await self.ended.wait()


def read_state(response: wire.WaitResponse) -> tuple[str, Seen]:
    state = response.WhichOneof("state")
    assert state is not None
    return state, Seen(getattr(response, state))


async def open_peer(channel: Channel, nursery: trio.Nursery, **request: Any) -> Peer:
    peer = Peer(channel, nursery)
    await nursery.start(peer.keep_lease, wire.OpenSessionRequest(**request))
    return peer
