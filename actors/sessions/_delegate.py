"""What a holder of a session implements to serve the scripts it runs."""

import logging
from collections.abc import Callable
from typing import Final, Protocol

import attrs
import trio

from actors.sessions._errors import ToolFailed
from actors.sessions._responses import Notification, ToolCall
from actors.sessions._values import Json, ToolName

_LOGGER: Final = logging.getLogger("actors.sessions")


class Delegate(Protocol):
    """Serves the tool calls, notifications and closures of the executions it was given to.

    Its coroutines run in tasks of the provider. When the host withdraws a call, or the session ends, `cancelled` is
    set and the task is cancelled, in that order.

    Cancelled:
        Nobody waits for an answer any more. What was done already is the delegate's own affair.
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
        tool_name: Which tool was called, where it was `call_tool`.
    """

    cell_id: str

    where: str

    error: Exception

    tool_name: ToolName | None = None


Report = Callable[[DelegateFailed], None]


def log_failure(failed: DelegateFailed) -> None:
    """Log what a delegate raised, with where, so that its author hears of it: the script and the host never do."""
    if failed.tool_name is None:
        _LOGGER.error("the delegate of cell %s raised in %s", failed.cell_id, failed.where, exc_info=failed.error)
    else:
        text = "the delegate of cell %s raised in %s for the tool %s"
        _LOGGER.error(text, failed.cell_id, failed.where, failed.tool_name.name, exc_info=failed.error)


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
