"""What a holder of a session implements to serve the scripts it runs."""

from collections.abc import Callable
from typing import Final, Protocol

import attrs
import trio

from actors.sessions._errors import ToolFailed
from actors.sessions._values import Json, Notification, ToolCall


class Delegate(Protocol):
    """Serves the tool calls, notifications and closures of the executions it was given to.

    Its coroutines run in tasks of the provider. When the host withdraws a call, or the session ends, `cancelled` is
    set and the task is cancelled, in that order.
    """

    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        """Run a tool and return its JSON result.

        Raise `ToolFailed` to reject the call in the script. Any other exception rejects it too, without its text.
        Setting `cancelled` oneself changes nothing.
        """
        ...

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
        """Take a text. The script's result is held back until this has returned."""
        ...

    def cell_closed(self, cell_id: str) -> None:
        """Hear, once a cell, that it will say no more. Must not wait."""
        ...


@attrs.frozen
class DelegateFailed:
    """A delegate raised something that had no place. Neither its session nor its cell is hurt.

    Attributes:
        cell_id: Whose delegate.
        where: Which of its methods.
        error: What it raised.
    """

    cell_id: str

    where: str

    error: Exception


Report = Callable[[DelegateFailed], None]


class _NoDelegate:
    """Has no tools and does not listen."""

    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        """Reject the call."""
        raise ToolFailed(f"nobody serves the tool {call.tool_name.name}")

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
        """Let it pass."""

    def cell_closed(self, cell_id: str) -> None:
        """Let it pass."""


NO_DELEGATE: Final[Delegate] = _NoDelegate()
"""For scripts that call no tools."""
