"""Those who wait for an environment: each is told in the very step that decides for it.

Who is only woken looks when its turn comes, and the scheduler draws lots for the order of turns: by then another
attempt may have ended in another way, and what a caller is told would be chance.
"""

from collections.abc import Callable
from typing import Any

import trio
from outcome import Error, Value

from actors import ActorsError
from actors.environments._lifecycle import Lifecycle
from actors.environments._outcomes import WAIT, NotYet

Decide = Callable[[Lifecycle, int], ActorsError | NotYet | None]
"""What a life says to one who joined the attempt with this number."""


class Waiters:
    """The tasks that wait for one generation of an environment."""

    __slots__ = ("_parked",)

    def __init__(self) -> None:
        self._parked: dict[trio.lowlevel.Task, tuple[Decide, int]] = {}

    async def wait(self, decide: Decide, joined: int) -> None:
        """Wait until there is something else to do than to wait.

        Raises:
            ActorsError: What was decided, even if other things have happened since.

        Cancelled:
            Only this wait ends.
        """
        task = trio.lowlevel.current_task()
        self._parked[task] = (decide, joined)

        def leave(_: Any) -> trio.lowlevel.Abort:
            del self._parked[task]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(leave)

    def tell(self, life: Lifecycle) -> None:
        """Let those go on for whom this life has decided something."""
        for task, (decide, joined) in [*self._parked.items()]:
            decided = decide(life, joined)
            if decided is WAIT:
                continue
            del self._parked[task]
            trio.lowlevel.reschedule(task, Error(decided) if isinstance(decided, ActorsError) else Value(None))
