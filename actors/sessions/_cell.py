"""A started cell, as its holder has it until its first response."""

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

import trio

from actors.sessions._errors import ResponseTaken, SessionsError
from actors.sessions._execution import Execution
from actors.sessions._responses import RuntimeResponse


class StartedCell:
    """A cell whose first response nobody has yet. Given by `Session.execute`.

    Whoever lets go of it before that response, by leaving its `with` block, `abandon()`, cancelling
    `initial_response()` or dropping the last reference in any thread, has the cell terminated. After the response the
    cell belongs to the session.
    """

    def __init__(
        self, execution: Execution, abandon: Callable[[Execution], None], token: trio.lowlevel.TrioToken
    ) -> None:
        self._execution, self._abandon, self._token = execution, abandon, token
        self._cell_id = execution.public_cell_id
        self._asked = False

    def __repr__(self) -> str:
        return f"<StartedCell {self._cell_id}>"

    @property
    def cell_id(self) -> str:
        """As `Session.wait` and `Session.terminate` take it."""
        return self._cell_id

    async def initial_response(self) -> RuntimeResponse:
        """Wait for the first response of the cell; once.

        Raises:
            ResponseTaken: It was asked for before, or the cell was abandoned.
            SessionsError: The host failed, or the session ended.

        Cancelled:
            The cell is terminated.
        """
        if self._asked:
            raise ResponseTaken(self._cell_id)
        self._asked = True
        execution = self._execution
        try:
            response = await execution.outcome.wait()
            execution.consumed = True
        except SessionsError:
            execution.consumed = True
            raise
        finally:
            self._abandon(execution)
        return response

    def abandon(self) -> None:
        """Have the cell terminated, unless its first response was handed out. Twice is harmless."""
        self._asked = True
        self._abandon(self._execution)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def __del__(self) -> None:
        execution = getattr(self, "_execution", None)
        if execution is not None and not execution.consumed and not execution.abandoned:
            # This may be any thread, or the middle of a collection: only post. A run that is over has no cells.
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._abandon, execution)
