"""A delegate that keeps what it heard, and short ways to say a request."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors.sessions import (
    Delegate,
    ExecuteRequest,
    Json,
    Notification,
    Result,
    RuntimeResponse,
    Session,
    ToolCall,
    ToolDefinition,
    ToolName,
)
from actors.sessions._delegate import NO_DELEGATE

ECHO = ToolDefinition(name="echo", tool_name=ToolName("echo"))


def request(source: str, **more: Any) -> ExecuteRequest:
    return ExecuteRequest(
        **{"tool_call_id": "call-1", "yield_time_ms": 5_000, "max_output_tokens": 1_000, **more}, source=source
    )


async def run(session: Session, source: str, delegate: Delegate = NO_DELEGATE, **more: Any) -> RuntimeResponse:
    cell = await session.execute(request(source, **more), delegate)
    return await cell.initial_response()


def texts(response: RuntimeResponse) -> list[str]:
    return [item.text for item in response.content_items]  # type: ignore[union-attr]


def printed(cell_id: str, *lines: str) -> tuple[str, list[str], None]:
    return (cell_id, [*lines], None)


def told(response: RuntimeResponse) -> tuple[str, list[str], str | None]:
    assert isinstance(response, Result), response
    return (response.cell_id, texts(response), response.error_text)


class Recorder:
    """Answers tools with what it is told to, and records."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.notifications: list[Notification] = []
        self.closed: list[str] = []
        self.cancelled: list[str] = []
        self.notified = trio.Event()
        self.called = trio.Event()
        self.on_call: Callable[[ToolCall, trio.Event], Awaitable[Json]] | None = None
        self.on_notify: Callable[[Notification, trio.Event], Awaitable[None]] | None = None
        self._changed = trio.lowlevel.ParkingLot()

    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        self.calls.append(call)
        self.called.set()
        try:
            return call.input if self.on_call is None else await self.on_call(call, cancelled)
        finally:
            if cancelled.is_set():
                self.cancelled.append(call.runtime_tool_call_id)

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
        self.notifications.append(notification)
        self.notified.set()
        try:
            if self.on_notify is not None:
                await self.on_notify(notification, cancelled)
        finally:
            if cancelled.is_set():
                self.cancelled.append(notification.text)

    def cell_closed(self, cell_id: str) -> None:
        self.closed.append(cell_id)
        self._changed.unpark_all()

    async def wait_closed(self, cell_id: str) -> None:
        while cell_id not in self.closed:
            await self._changed.park()
