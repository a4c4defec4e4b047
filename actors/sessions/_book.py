"""Keep the books of one host session: which execution has which cell, and what may be called back.

Events of one execution reach the client on three streams (its own, the lease, the tool subscription), in any order
between them. Whichever names a cell first binds it; what contradicts that is a fault of the host and raises. Nothing
here waits or acts: a callback is judged, and its owner runs it.

Rules that are not in one place: a closed cell's number may be given out again by no host we know, so only *active*
cells are compared; an execution is forgotten once it is both closed and settled (its own stream has said all).
"""

import enum
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

import attrs

from actors.sessions._errors import ProtocolViolation
from actors.sessions._recent import RecentIds
from actors.sessions._values import ToolDefinition, ToolKind, ToolName, identifier_fault

CALLBACKS_MAX: Final = 1_024
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


@attrs.define(eq=False)
class Entry:
    """One execution."""

    execution_id: str
    """Chosen by the client."""

    tool_call_id: str
    """The caller's own id."""

    tools: frozenset[tuple[tuple[str, str], ToolKind]]
    """What its script may call."""

    cell_id: str | None = None
    """The host's id, once anything has named it."""

    started: bool = False
    """Whether its own stream has said that it started."""

    closed: bool = False
    """Whether its cell has ended."""

    settled: bool = False
    """Whether its own stream has said all."""


@attrs.frozen
class Run:
    """Give the callback to the delegate."""

    entry: Entry
    """Whose."""


@attrs.frozen
class Answer:
    """Reject the call in the script."""

    problem: "Problem"
    """Why."""


@attrs.frozen
class Drop:
    """Do nothing."""


class Problem(enum.Enum):
    """Why a tool call is rejected without asking the delegate."""

    CELL_CLOSED = "closed"
    TOOL_NOT_ENABLED = "not enabled"
    TOO_MANY_PENDING = "too many"


Verdict: TypeAlias = Run | Answer | Drop


class CellBook:
    """The executions and callbacks of one host session."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        # Every cell here belongs to exactly one entry that is not closed.
        self._active: dict[str, Entry] = {}
        self._pending: set[str] = set()
        self._seen = RecentIds()
        self._cancelled_early = RecentIds()

    @property
    def pending(self) -> int:
        """Callbacks that run now."""
        return len(self._pending)

    def running(self) -> list[Entry]:
        """Executions that have a cell, in the order they were registered."""
        return [entry for entry in self._entries.values() if entry.cell_id is not None and not entry.closed]

    def register(self, execution_id: str, tool_call_id: str, tools: Iterable[ToolDefinition]) -> Entry:
        """Take in an execution before it is sent: callbacks may come before its start is told."""
        allowed = frozenset((tool.tool_name.key, tool.kind) for tool in tools)
        entry = self._entries[execution_id] = Entry(execution_id, tool_call_id, allowed)
        return entry

    def start(self, entry: Entry, execution_id: str, cell_id: str) -> None:
        """Note that the stream of an execution told its start.

        Raises:
            ProtocolViolation: It speaks of another execution or cell, or says so twice.
        """
        if execution_id != entry.execution_id:
            raise ProtocolViolation(
                f"gRPC code-mode execution returned ID {execution_id} instead of {entry.execution_id}"
            )
        if entry.started:
            raise ProtocolViolation(f"code-mode execution {execution_id} started twice")
        self._bind(entry, cell_id)
        entry.started = True

    def _bind(self, entry: Entry, cell_id: str) -> None:
        _check_identifier("cell ID", cell_id)
        if entry.cell_id is not None:
            if entry.cell_id != cell_id:
                text = f"code-mode execution changed cell ID from {entry.cell_id} to {cell_id}"
                raise ProtocolViolation(text)
            return
        if cell_id in self._active:
            raise ProtocolViolation(f"code-mode host reused active cell ID {cell_id}")
        entry.cell_id = cell_id
        self._active[cell_id] = entry

    def admit_tool_call(
        self, invocation_id: str, execution_id: str, cell_id: str, tool_name: ToolName, kind: ToolKind | None
    ) -> Verdict:
        """Judge a tool call, and count it as pending if it is to run.

        Raises:
            ProtocolViolation: Its ids are malformed, used before, or contradict what is known.
        """
        if not _UUID.fullmatch(invocation_id):
            raise ProtocolViolation("code-mode tool invocation ID must be a UUID")
        if invocation_id in self._pending or invocation_id in self._seen:
            raise ProtocolViolation("code-mode tool invocation ID was reused")
        self._seen.add(invocation_id)
        if invocation_id in self._cancelled_early:
            self._cancelled_early.discard(invocation_id)
            return Drop()
        entry = self._entries.get(execution_id)
        if entry is None or entry.closed:
            return Answer(Problem.CELL_CLOSED)
        self._bind(entry, cell_id)
        if (tool_name.key, kind) not in entry.tools:
            return Answer(Problem.TOOL_NOT_ENABLED)
        if len(self._pending) >= CALLBACKS_MAX:
            return Answer(Problem.TOO_MANY_PENDING)
        self._pending.add(invocation_id)
        return Run(entry)

    def admit_notification(self, notification_id: str, execution_id: str, cell_id: str, call_id: str) -> Verdict:
        """Judge a notification, and count it as pending if it is to run.

        Raises:
            ProtocolViolation: Its ids are malformed, used before, or contradict what is known.
        """
        if not _UUID.fullmatch(notification_id) or notification_id in self._pending:
            raise ProtocolViolation("code-mode notification ID must be a UUID")
        _check_identifier("notification call ID", call_id)
        entry = self._entries.get(execution_id)
        if entry is None or entry.closed:
            return Drop()
        self._bind(entry, cell_id)
        if call_id != entry.tool_call_id:
            raise ProtocolViolation("code-mode notification call ID does not match its execution")
        if len(self._pending) >= CALLBACKS_MAX:
            return Drop()
        self._pending.add(notification_id)
        return Run(entry)

    def finish(self, callback_id: str) -> None:
        """Note that a callback has ended."""
        self._pending.discard(callback_id)

    def cancel_tool_call(self, invocation_id: str) -> bool:
        """Note that the host withdrew a call. Returns whether it runs; one yet to come will be dropped."""
        if invocation_id in self._pending:
            return True
        if invocation_id not in self._seen:
            self._cancelled_early.add(invocation_id)
        return False

    def close(self, execution_id: str, cell_id: str) -> Entry | None:
        """Note that a cell has ended. Returns its execution, once.

        Raises:
            ProtocolViolation: The cell is not the one this execution has.
        """
        entry = self._entries.get(execution_id)
        if entry is None or entry.closed:
            return None
        self._bind(entry, cell_id)
        self.mark_closed(entry)
        return entry

    def mark_closed(self, entry: Entry) -> None:
        """Take a cell out of the active ones."""
        entry.closed = True
        if entry.cell_id is not None:
            self._active.pop(entry.cell_id, None)
        self._forget_if_over(entry)

    def settle(self, entry: Entry) -> None:
        """Note that the stream of an execution has ended. One that never had a cell is over with it."""
        entry.settled = True
        if entry.cell_id is None:
            entry.closed = True
        self._forget_if_over(entry)

    def _forget_if_over(self, entry: Entry) -> None:
        if entry.closed and entry.settled:
            self._entries.pop(entry.execution_id, None)


def _check_identifier(field: str, value: str) -> None:
    fault = identifier_fault(field, value)
    if fault is not None:
        raise ProtocolViolation(
            f"gRPC code-mode host returned {field} exceeding 256 bytes"
            if value
            else f"gRPC code-mode host returned an empty {field}"
        )
