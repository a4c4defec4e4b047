"""The frozen picture of a supervisor at work and of all below it."""

# pyright: reportPrivateUsage=false
# A handle's private half belongs to its package; users see only its public one.

from itertools import islice

import trio

from supervision._child import Child
from supervision._engine import Engine
from supervision._states import WITH_TASK, Entry
from supervision._tree import ChildNode, SupervisorNode, child_node

__all__: list[str] = []


def picture(engine: Engine, pool_children_max: int) -> SupervisorNode:
    """Return the picture of one generation of a supervisor; of each pool at most so many children."""
    plan, now_s = engine.plan, trio.current_time()
    shown = list(islice(plan.entries, pool_children_max)) if plan.is_pool else list(plan.entries)
    return SupervisorNode(
        path=engine.path,
        strategy=None if plan.is_pool else plan.strategy,
        auto_shutdown=plan.auto_shutdown,
        restarts_in_window=plan.window.count(now_s),
        restarts_allowed=plan.intensity.restarts,
        period_s=plan.intensity.period_s,
        closing=plan.closing is not None,
        children=tuple(_picture_of(entry, engine.path, now_s, pool_children_max) for entry in shown),
        omitted=len(plan.entries) - len(shown),
    )


def _picture_of(entry: Entry, above: str, now_s: float, pool_children_max: int) -> ChildNode:
    below = None
    child = entry.handle
    if isinstance(child, Child) and child._owned is not None and entry.state in WITH_TASK:
        below = picture(child._owned._engine, pool_children_max)
    return child_node(entry, f"{above}/{entry.name}", now_s, below)
