"""The task that fails gates at their deadlines, and that ends everything when the manager's tree is stopped."""

import contextlib
import math
from typing import Any

import trio

from actors.environments._backstage import Backstage
from actors.environments._errors import EnvironmentClosed
from supervision import ChildStatus


async def keep_deadlines(backstage: Backstage, *, task_status: ChildStatus[Any]) -> None:
    """Wait for the next deadline, or for a nearer one.

    Cancelled:
        Every environment is closed: nobody would carry out anything for them any more.
    """
    task_status.started()
    try:
        while True:
            nearer, next_s = backstage.deadline_set, backstage.deadlines.next_s()
            with trio.CancelScope(deadline=math.inf if next_s is None else next_s):
                await nearer.wait()
            now_s = trio.current_time()
            for body in [*backstage.deadlines.pop_due(now_s)]:
                with contextlib.suppress(EnvironmentClosed):  # Its actor ended in this very moment.
                    body.expire(now_s)
    finally:
        backstage.close("its supervisor stopped the manager", trio.current_time())
