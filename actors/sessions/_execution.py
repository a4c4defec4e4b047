"""One execution as the client follows it, and the callbacks that run for it."""

from collections.abc import Callable

import attrs
import trio

from actors.sessions._book import Entry
from actors.sessions._delegate import Delegate, DelegateFailed, Report
from actors.sessions._generations import public_cell_id
from actors.sessions._promise import Promise
from actors.sessions._responses import RuntimeResponse, ToolCall


@attrs.define(eq=False)
class Callback:
    """A tool call or notification that a delegate works on."""

    callback_id: str
    """The host's id of it."""

    call: ToolCall | None = None
    """What was called; None: it is a notification."""

    signal: trio.Event = attrs.field(factory=trio.Event)
    """Shown to the delegate, who may set it too."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Of the delegate's task."""

    cancelled: bool = False
    """Whether *we* cancelled it: the signal alone cannot tell."""

    def cancel(self) -> None:
        """Tell the delegate, and stop it."""
        self.cancelled = True
        self.signal.set()
        self.scope.cancel()


@attrs.define(eq=False)
class Execution:
    """A script that was sent, until its cell is reported closed."""

    entry: Entry
    """What the books say of it."""

    delegate: Delegate
    """Whom its script calls."""

    generation: int
    """Of its host session."""

    report: Report
    """Hears of delegates that fail."""

    forget: Callable[["Execution"], None]
    """Called when the closure has been reported."""

    started: Promise[None] = attrs.field(factory=Promise[None])
    """Comes with the start."""

    outcome: Promise[RuntimeResponse] = attrs.field(factory=Promise[RuntimeResponse])
    """Comes with the first observation, when the holder may see it."""

    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    """Of the stream it runs on."""

    closed: trio.Event = attrs.field(factory=trio.Event)
    """The host has closed the cell."""

    claimed: bool = False
    """Whether someone was told of its start."""

    abandoned: bool = False
    """Whether nobody will ask for its first response."""

    consumed: bool = False
    """Whether someone has its first response: the cell belongs to the session now."""

    reported: bool = False
    """Whether the delegate heard of the closure."""

    callbacks: dict[str, Callback] = attrs.field(factory=dict[str, Callback])
    """Those that run, by the host's id."""

    quieter: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)
    """Waiting for a callback to end."""

    @property
    def public_cell_id(self) -> str:
        """How the holder names the cell."""
        return public_cell_id(self.generation, self.entry.cell_id or "")

    def fail(self, error: Exception) -> None:
        """End whatever of it is still waited for."""
        self.started.fail(error)
        self.outcome.fail(error)

    def claim(self) -> None:
        """Note that its start was handed out; a closure that came before is told now."""
        self.claimed = True
        self.report_if_due()

    def finish(self, callback: Callback) -> None:
        """Note that a callback has ended."""
        self.callbacks.pop(callback.callback_id, None)
        self.quieter.unpark_all()
        self.report_if_due()

    def cancel_callbacks(self, *, tool_calls: bool = False, notifications: bool = False) -> None:
        """Cancel those of the kinds named."""
        for callback in [*self.callbacks.values()]:
            if tool_calls if callback.call is not None else notifications:
                callback.cancel()

    @property
    def notifying(self) -> bool:
        """Whether the delegate still works on a notification."""
        return any(callback.call is None for callback in self.callbacks.values())

    async def wait_quiet(self) -> None:
        """Wait until the delegate has finished every notification."""
        while self.notifying:
            await self.quieter.park()

    def report_if_due(self) -> None:
        """Tell the delegate of the closure, once: after its last notification, and after the start was told."""
        if self.closed.is_set() and not self.notifying and (self.claimed or self.abandoned):
            self.report_closed()

    def report_closed(self) -> None:
        """Tell the delegate of the closure, once."""
        if self.reported:
            return
        self.reported = True
        self.closed.set()
        self.forget(self)
        try:
            self.delegate.cell_closed(self.public_cell_id)
        except Exception as error:
            # A holder's mistake must not cost the cells of others; it is handed to whoever asked for reports.
            self.report(DelegateFailed(self.public_cell_id, "cell_closed", error))
