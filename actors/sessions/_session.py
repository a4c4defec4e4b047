"""A code session that survives the loss of its host without running anything twice.

The first call after a loss fails as the host let it fail; the next one opens a new host session and says so
(`SessionReset`) without running; those after it run there. A call belongs to the generation in which it was *made*, so
its plain function notes the generation and its awaitable does the rest.
"""

import contextlib
import uuid
from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from actors.sessions._arguments import check_callable, check_count, check_delegate, check_kind
from actors.sessions._binding import Binding
from actors.sessions._cell import StartedCell
from actors.sessions._completion import follow
from actors.sessions._delegate import NO_DELEGATE, Delegate
from actors.sessions._errors import InvalidRequest, Lost, SessionClosed, SessionReset, SessionsError, StaleGeneration
from actors.sessions._generations import host_cell_id
from actors.sessions._journal import Journal
from actors.sessions._pinning import mode_settled, mode_to_ask_for
from actors.sessions._promise import Call, Promise
from actors.sessions._responses import WaitOutcome, Yielded
from actors.sessions._values import (
    ExecuteRequest,
    OutputTruncation,
    SessionOptions,
    WaitRequest,
    identifier_fault,
)


class Home(Protocol):
    """What a session needs of its provider."""

    def new_binding(self, options: SessionOptions, journal: Journal | None) -> Binding:
        """Take the next generation."""
        ...

    def start(self, work: Callable[["SessionCore"], Awaitable[object]], core: "SessionCore") -> None:
        """Run a task that outlives calls."""
        ...


class SessionCore:
    """The session itself. Its tasks and calls hold this, never the handle: so the handle can be dropped."""

    def __init__(self, home: Home, options: SessionOptions) -> None:
        self._home, self._options = home, options
        self._journal = Journal(f"stored-{uuid.uuid4().hex}:") if options.restore_stored_values else None
        self.token: trio.lowlevel.TrioToken = trio.lowlevel.current_trio_token()
        self.mode: OutputTruncation | None = None
        self.binding: Binding | None = None
        self._opening: Binding | None = None
        self._lost: Lost | None = None
        self.shut: Promise[None] | None = None

    @property
    def generation(self) -> int:
        """Of the host session that is published now."""
        return 0 if self.binding is None else self.binding.generation

    # --- opening and reopening

    async def open(self) -> None:
        """Open a host session, sharing an attempt that is under way.

        Cancelled:
            When nobody else waits for it, the attempt ends and its half-open session is dropped.
        """
        binding = self._opening or self._begin_opening()
        binding.waiters += 1
        try:
            await binding.opened.wait()
        finally:
            binding.waiters -= 1
            if self._opening is binding and (binding.opened.is_done or not binding.waiters):
                self._opening = None
                binding.link.end(SessionClosed())

    def _begin_opening(self) -> Binding:
        binding = self._opening = self._home.new_binding(self._options, self._journal)
        binding.on_live = self._publish
        binding.open(self._options, mode_to_ask_for(self._options.output_truncation, self.mode), self._settle)
        return binding

    def _settle(self, number: int) -> OutputTruncation:
        mode = mode_settled(number, requested=self._options.output_truncation, pinned=self.mode)
        self.mode = mode
        return mode

    def _publish(self, binding: Binding) -> None:
        old, self.binding, self._opening = self.binding, binding, None
        self._lost = None if old is None else old.lost

    async def _binding_for(self, made_in: int) -> Binding:
        """Find where a call may run that was made in a generation.

        Raises:
            SessionReset: That generation is over; a new one is there.
        """
        self._check_open()
        binding = self.binding
        assert binding is not None, "a session is handed out once it is bound"
        if binding.generation == made_in:
            if binding.is_live:
                return binding
            await self.open()
        now = self.binding
        lost = self._lost
        assert now is not None, "a session stays bound"
        assert lost is not None, "what replaced a binding knows what was lost with it"
        raise SessionReset(lost, now.generation, now.restored_keys)

    def _check_open(self) -> None:
        if self.shut is not None:
            raise SessionClosed

    # --- calls

    async def execute(
        self, request: ExecuteRequest, delegate: Delegate, preempt: trio.Event | None, made_in: int
    ) -> StartedCell:
        """Do as `Session.execute` says."""
        fault = identifier_fault("tool call ID", request.tool_call_id)
        if fault is not None:
            raise InvalidRequest(fault)
        binding = await self._binding_for(made_in)
        execution = await binding.executions.execute(request, delegate, preempt)
        return StartedCell(execution, binding.executions.abandon, self.token)

    async def wait(self, request: WaitRequest, preempt: trio.Event | None, made_in: int) -> WaitOutcome:
        """Do as `Session.wait` says."""
        binding = await self._binding_for(made_in)
        return await binding.waits.wait(request, _known_cell(binding, request.cell_id), preempt)

    async def terminate(self, cell_id: str, max_output_tokens: int | None) -> WaitOutcome:
        """Do as `Session.terminate` says. It never reopens: cleaning up must not swallow the notice of a reset."""
        self._check_open()
        binding = self.binding
        if binding is None:
            raise SessionClosed
        if not binding.is_live:
            raise binding.link.closed_error()
        return await binding.waits.terminate(_known_cell(binding, cell_id), max_output_tokens)

    # --- the end

    def begin_shutdown(self) -> "Promise[None]":
        """Refuse calls from now on, and close the host session in the background. Twice is harmless."""
        if self.shut is None:
            self.shut = Promise()
            if self._opening is not None:
                self._opening.link.end(SessionClosed())
                self._opening = None
            if self.binding is None or not self.binding.is_live:
                self.shut.fulfil(None)
            else:
                self.binding.begin_closing()
                self._home.start(_close, self)
        return self.shut


async def _close(core: SessionCore) -> None:
    shut, binding = core.shut, core.binding
    assert shut is not None and binding is not None, "only a bound session is closed"  # noqa: PT018 - one fact
    try:
        await binding.close()
        shut.fulfil(None)
    except SessionsError as error:
        shut.fail(error)
    finally:
        # The provider may end first; whoever waits elsewhere must hear of it.
        shut.fail(SessionClosed())


def _known_cell(binding: Binding, cell_id: str) -> str:
    known = host_cell_id(binding.generation, cell_id)
    if known is None:
        raise StaleGeneration(cell_id, binding.generation)
    fault = identifier_fault("cell ID", known)
    if fault is not None:
        raise InvalidRequest(fault)
    return known


class Session:
    """A code session. Given by `SessionProvider.create_session`.

    Dropping the last reference shuts it down in the background, from any thread.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    def __repr__(self) -> str:
        state = "shut down" if self._core.shut is not None else f"generation {self._core.generation}"
        return f"<Session {state}>"

    @property
    def output_truncation(self) -> OutputTruncation:
        """Who cuts long output: what the first host answered, for as long as the session is there."""
        assert self._core.mode is not None, "a session is handed out once its mode is settled"
        return self._core.mode

    @property
    def generation(self) -> int:
        """Number of the present host session, counted over the provider."""
        return self._core.generation

    def execute(
        self, request: ExecuteRequest, delegate: Delegate = NO_DELEGATE, *, preempt: trio.Event | None = None
    ) -> Call[StartedCell]:
        """Run a script in a cell of its own; await the result for the started cell.

        Acts when made: the call belongs to the generation of this moment. It is sent when first awaited, once.

        Args:
            request: The script and what it may call.
            delegate: Serves its calls.
            preempt: Once set, the first observation ends early and the cell goes on.

        Raises:
            SessionReset: The host session was replaced; nothing ran. The next call runs in the new one.
            OutputModeChanged: The only host there breaks the session's output mode; nothing ran.
            HostCallFailed: The host refused or lost it; `HostUnavailable` where another try may help.
            SessionStopped: The host session ended during the call.
            SessionClosed: The session was shut down.
            InvalidRequest: An id breaks its bounds.
            InvalidArgument: Something is of the wrong kind, such as a delegate that is a class; told before there is
                anything to await.

        Cancelled:
            Before it is sent, nothing happened. After, its cell is terminated as soon as there is one.
        """
        check_kind("request", request, ExecuteRequest)
        check_delegate(delegate)
        check_kind("preempt", preempt, trio.Event, or_none=True)
        core, made_in = self._core, self._core.generation
        return Call(lambda: core.execute(request, delegate, preempt, made_in), "Session.execute")

    def wait(self, request: WaitRequest, *, preempt: trio.Event | None = None) -> Call[WaitOutcome]:
        """See what a cell has put out since the observation before; await the result for it.

        Acts when made, as `execute`.

        Raises:
            CellBusy: Another wait observes the cell.
            StaleGeneration: The cell belongs to a host session that is gone.
            SessionsError: As for `execute`.

        Cancelled:
            The wait is withdrawn and nothing the cell puts out is lost, unless a final answer had come already.
        """
        check_kind("request", request, WaitRequest)
        check_kind("preempt", preempt, trio.Event, or_none=True)
        core, made_in = self._core, self._core.generation
        return Call(lambda: core.wait(request, preempt, made_in), "Session.wait")

    def completion(
        self,
        cell_id: str,
        *,
        max_output_tokens: int | None = None,
        on_output: Callable[[Yielded], None] | None = None,
    ) -> Call[WaitOutcome]:
        """Hear of the end of a cell as soon as the host has it, without polling; await the result for it.

        Acts when made, as `execute`. While it is under way it is the one wait that the cell may have.

        Args:
            cell_id: As the session named it.
            max_output_tokens: Of each observation under it, where the host cuts.
            on_output: Takes what the cell puts out before the end; must not wait. None: all of it comes with the end,
                or with a `Yielded` once 16 MiB have gathered: then ask again.

        Raises:
            CellBusy: Another wait observes the cell.
            StaleGeneration: The cell belongs to a host session that is gone.
            SessionsError: As for `execute`.

        Cancelled:
            The wait is withdrawn. What was gathered before, and not handed to `on_output`, is lost.
        """
        check_kind("cell_id", cell_id, str)
        check_count("max_output_tokens", max_output_tokens, or_none=True)
        check_callable("on_output", on_output, or_none=True)
        core, made_in = self._core, self._core.generation
        return Call(
            lambda: follow(lambda one: core.wait(one, None, made_in), cell_id, max_output_tokens, on_output),
            "Session.completion",
        )

    def terminate(self, cell_id: str, *, max_output_tokens: int | None = None) -> Call[WaitOutcome]:
        """Stop a cell; await the result for what it left. Never opens a new host session.

        Raises:
            StaleGeneration: The cell belongs to a host session that is gone.
            SessionsError: The host failed, its session has ended, or this one was shut down.

        Cancelled:
            Whether the cell was stopped is not known; terminating it again is harmless.
        """
        check_kind("cell_id", cell_id, str)
        check_count("max_output_tokens", max_output_tokens, or_none=True)
        core = self._core
        return Call(lambda: core.terminate(cell_id, max_output_tokens), "Session.terminate")

    def shutdown(self) -> Call[None]:
        """End the session at once; await the result to know that the host has closed it.

        Takes effect when called, awaited or not. Every caller gets the same result.

        Raises:
            HostCallFailed: The host did not say that it closed it. The session is over all the same.

        Cancelled:
            Only this wait ends.
        """
        shut = self._core.begin_shutdown()
        return Call(shut.wait)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and core.shut is None:
            # This may be any thread, or the middle of a collection: only post.
            with contextlib.suppress(trio.RunFinishedError):
                core.token.run_sync_soon(core.begin_shutdown)
