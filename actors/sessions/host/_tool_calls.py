"""Nested tool calls of one session: who receives them, in which order, and what became of each."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import attrs

from actors.sessions._wire.code_mode_pb2 import ToolCall, ToolName
from actors.sessions.grpc import Abort, StatusCode
from actors.sessions.host._catalogue import Tool
from actors.sessions.host._outboxes import Outbox
from actors.sessions.host._outputs import MESSAGE_BYTES_MAX
from actors.sessions.host._remembered import Remembered

DEFAULT_CAPACITY: Final = 1024
CAPACITY_MAX: Final = 4096
SUBSCRIPTIONS_MAX: Final = 128
FILTERS_MAX: Final = 64
_QUEUE_MAX: Final = 128
# What a sequence number may add to a call once it is sent.
_SEQUENCE_BYTES: Final = 11


class Caller(Protocol):
    """The cell that made a call."""

    cell_id: str
    execution_id: str
    sequence: int
    stems: dict[str, bytes]

    def settle(self, call_id: int, good: bool, text: str, /) -> None:
        """Give the script its answer: JSON, or the text of a failure."""


@attrs.define(eq=False)
class Call:
    """One call that waits for its answer."""

    invocation_id: str
    """A UUID."""
    caller: Caller
    """Its cell."""
    call_id: int
    """Its number in the cell."""
    key: tuple[str, str]
    """What filters compare."""
    message: bytes
    """All of it but the sequence number, which it gets when it is sent."""
    subscription: "Subscription | None" = None
    """Where it is queued or was sent; None while every match is full."""
    sent: bool = False
    """Whether a subscriber may have seen it."""


class Subscription:
    """One stream that receives calls."""

    def __init__(self, keys: Iterable[tuple[str, str]], on_room: Callable[[], object]) -> None:
        self._keys, self._on_room = frozenset(keys), on_room
        self.outbox: Outbox[Call] = Outbox(_QUEUE_MAX)

    def matches(self, key: tuple[str, str]) -> bool:
        """Say whether it takes calls of this tool."""
        return not self._keys or key in self._keys

    async def next(self, heartbeat_s: float) -> bytes | None:
        """Wait for the next call, numbered; None after a silence, or at the end."""
        call = await self.outbox.next(heartbeat_s)
        if call is None:
            return None
        self._on_room()
        return numbered(call)


def numbered(call: Call) -> bytes:
    """Give a call the next number of its cell, and write it: it is sent in the same step."""
    call.caller.sequence += 1
    call.sent = True
    # Messages written behind each other are one message with the fields of both.
    return call.message + ToolCall(sequence=call.caller.sequence).SerializeToString()


class ToolCalls:
    """All calls and subscriptions of one session."""

    def __init__(
        self, session_id: str, *, capacity: int, new_id: Callable[[], str], on_cancel: Callable[[str], object]
    ) -> None:
        self._session_id, self._capacity = session_id, capacity
        self._new_id, self._on_cancel = new_id, on_cancel
        self._subscriptions: list[Subscription] = []
        self._turn = 0
        self._pending: dict[str, Call] = {}
        self._blocked: list[Call] = []
        self._seen = Remembered()

    def subscribe(self, names: Iterable[tuple[str, str]]) -> Subscription:
        """Add a stream.

        Raises:
            Abort: There are too many.
        """
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
            raise Abort(StatusCode.RESOURCE_EXHAUSTED, "code-mode session has too many tool subscriptions")
        subscription = Subscription(names, self._unblock)
        self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> bool:
        """Remove a stream; True when a call is lost with it that its reader may have seen."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        return any(call.subscription is subscription for call in self._pending.values())

    def dispatch(self, caller: Caller, call_id: int, tool: Tool, input_json: str | None) -> None:
        """Send a call to a matching stream; whatever hinders that becomes its answer."""
        if len(self._pending) >= self._capacity:
            caller.settle(call_id, False, "code-mode session has too many pending delegate calls")
            return
        invocation_id = self._new_id()
        part = ToolCall(invocation_id=invocation_id, runtime_tool_call_id=f"tool-{call_id}")
        if input_json is not None:
            part.input_json = input_json.encode()
        message = self._stem(caller, tool) + part.SerializeToString()
        if len(message) + _SEQUENCE_BYTES > MESSAGE_BYTES_MAX:
            text = f"code-mode tool invocation exceeds the {MESSAGE_BYTES_MAX}-byte gRPC message limit"
            caller.settle(call_id, False, text)
            return
        call = Call(invocation_id, caller, call_id, tool.key, message)
        self._pending[invocation_id] = call
        if self._place(call):
            return
        if any(one.matches(call.key) for one in self._subscriptions):
            self._blocked.append(call)
        else:
            del self._pending[invocation_id]
            caller.settle(call_id, False, "no code-mode tool subscription matches the requested tool")

    def _stem(self, caller: Caller, tool: Tool) -> bytes:
        """Write what all calls of a tool by a cell have in common, once."""
        stem = caller.stems.get(tool.identifier)
        if stem is None:
            name = ToolName(name=tool.name)
            if tool.namespace is not None:
                name.namespace = tool.namespace
            stem = caller.stems[tool.identifier] = ToolCall(
                session_id=self._session_id,
                execution_id=caller.execution_id,
                cell_id=caller.cell_id,
                tool_name=name,
                tool_kind=tool.kind,
            ).SerializeToString()
        return stem

    def _place(self, call: Call) -> bool:
        """Queue a call at the next stream in turn that matches and has room."""
        streams = self._subscriptions
        for step in range(len(streams)):
            at = (self._turn + step) % len(streams)
            if streams[at].matches(call.key) and streams[at].outbox.put(call):
                call.subscription = streams[at]
                self._turn = at + 1
                return True
        return False

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = [call for call in self._blocked if not self._place(call)]

    def knows(self, invocation_id: str) -> bool:
        """Say whether a call waits for its answer."""
        return invocation_id in self._pending

    def complete(self, invocation_id: str, good: bool, text: str) -> None:
        """Answer a call; an answer to one that is over is ignored.

        Raises:
            Abort: There was never such a call.
        """
        call = self._pending.pop(invocation_id, None)
        if call is not None:
            self._seen.add(invocation_id)
            call.caller.settle(call.call_id, good, text)
        elif invocation_id not in self._seen:
            raise Abort(StatusCode.NOT_FOUND, f"unknown code-mode tool invocation {invocation_id}")

    def cancel_all_of(self, caller: Caller) -> None:
        """Forget the open calls of a cell, and tell of those that may have been seen."""
        # In one pass: a cell may have thousands that wait for room.
        self._blocked = [call for call in self._blocked if call.caller is not caller]
        for call in [call for call in self._pending.values() if call.caller is caller]:
            del self._pending[call.invocation_id]
            self._seen.add(call.invocation_id)
            if call.sent:
                self._on_cancel(call.invocation_id)
            elif call.subscription is not None:
                call.subscription.outbox.remove(call)

    def end(self) -> None:
        """Forget every call and end every stream."""
        self._pending.clear()
        self._blocked.clear()
        for subscription in self._subscriptions:
            subscription.outbox.end()
