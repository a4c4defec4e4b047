"""A frozen picture of a tree of supervisors, and its two drawings."""

from collections.abc import Iterator
from typing import Final

import attrs

from supervision._rules import printable
from supervision._specs import AutoShutdown, Strategy
from supervision._states import ChildState, Entry
from supervision._wording import span_text

__all__ = ["ChildNode", "SupervisorNode"]

_PATH_CHARS_MAX: Final = 4096


@attrs.frozen(kw_only=True)
class ChildNode:
    """One child in a picture.

    Attributes:
        name: Its name in its supervisor.
        path: Its address, from the root down.
        state: What it was doing.
        generation: Which life it was in.
        restarts: How often its supervisor brought it back, ever.
        uptime_s: How long it had been up; None when it was not.
        last_cause: What ended its previous generation, if that raised.
        supervisor: What is below, when the child is a supervisor or a pool that is up.
    """

    name: str
    path: str
    state: ChildState
    generation: int
    restarts: int
    uptime_s: float | None
    last_cause: BaseException | None = attrs.field(eq=False)
    supervisor: "SupervisorNode | None" = None


@attrs.frozen(kw_only=True)
class SupervisorNode:
    """One supervisor or pool in a picture.

    Attributes:
        path: Its address, from the root down.
        strategy: Its strategy; None for a pool.
        auto_shutdown: When it ends with its significant children.
        restarts_in_window: How many of them it has made within the period.
        restarts_allowed: How many it may make within the period.
        period_s: The length of that period.
        closing: Whether it is stopping.
        children: In start order.
        omitted: Children of a pool that were left out of the picture.
    """

    path: str
    strategy: Strategy | None
    auto_shutdown: AutoShutdown
    restarts_in_window: int
    restarts_allowed: int
    period_s: float
    closing: bool
    children: tuple[ChildNode, ...]
    omitted: int

    def find(self, path: str) -> ChildNode | None:
        """Return the child of this address, at any depth."""
        for child in self.children:
            if child.path == path:
                return child
            if child.supervisor is not None and path.startswith(child.path + "/"):
                return child.supervisor.find(path)
        return None

    def render_text(self) -> str:
        """Return the picture as lines of plain text."""
        return "\n".join(_lines(self, ""))

    def render_mermaid(self) -> str:
        """Return the picture as a Mermaid flowchart."""
        return "\n".join(["flowchart TD", *_Mermaid().draw(self)])


def child_node(entry: Entry, path: str, now_s: float, below: SupervisorNode | None) -> ChildNode:
    """Return the picture of one child."""
    up = entry.state is ChildState.RUNNING and entry.since_s is not None
    return ChildNode(
        name=entry.name,
        path=path,
        state=entry.state,
        generation=entry.generation,
        restarts=entry.past.restarts,
        uptime_s=now_s - entry.since_s if up and entry.since_s is not None else None,
        last_cause=entry.last_exit.cause if entry.last_exit is not None else None,
        supervisor=below,
    )


def _title(node: SupervisorNode) -> str:
    kind = node.strategy.value if node.strategy is not None else "pool"
    closing = ", stopping" if node.closing else ""
    return f"{kind}, {node.restarts_in_window}/{node.restarts_allowed} restarts in {node.period_s:g} s{closing}"


def _facts(child: ChildNode) -> str:
    facts = [child.state.value, f"generation {child.generation}"]
    if child.uptime_s is not None:
        facts.append(f"up {span_text(child.uptime_s)}")
    if child.restarts:
        facts.append(f"{child.restarts} restart{'s' if child.restarts > 1 else ''}")
    if child.last_cause is not None:
        facts.append(f"last cause {printable(type(child.last_cause).__name__)}")
    return ", ".join(facts)


def _lines(node: SupervisorNode, indent: str, head: str | None = None) -> Iterator[str]:
    yield f"{head or printable(node.path, _PATH_CHARS_MAX)} [{_title(node)}]"
    last = len(node.children) - 1 if not node.omitted else len(node.children)
    for index, child in enumerate(node.children):
        twig, under = ("`- ", "   ") if index == last else ("|- ", "|  ")
        head = f"{indent}{twig}{printable(child.name)}: {_facts(child)}"
        if child.supervisor is None:
            yield head
        else:
            yield from _lines(child.supervisor, indent + under, head)
    if node.omitted:
        yield f"{indent}`- ... and {node.omitted} more"


class _Mermaid:
    """Numbers the boxes, since a name may hold what Mermaid cannot."""

    def __init__(self) -> None:
        self._boxes = 0

    def draw(self, node: SupervisorNode, head: str | None = None) -> Iterator[str]:
        here = self._box()
        yield f'    {here}["{_quoted(head or printable(node.path, _PATH_CHARS_MAX))}<br/>{_quoted(_title(node))}"]'
        for child in node.children:
            title = f"{printable(child.name)}: {_facts(child)}"
            there = f"n{self._boxes + 1}"
            if child.supervisor is not None:
                yield from self.draw(child.supervisor, title)
            else:
                yield f'    {self._box()}("{_quoted(title)}")'
            yield f"    {here} --> {there}"
        if node.omitted:
            yield f'    {here} --> {self._box()}("... and {node.omitted} more")'

    def _box(self) -> str:
        self._boxes += 1
        return f"n{self._boxes}"


# What Mermaid, or the HTML it makes, would not show as itself: quotes, entities, Markdown in backticks, directives
# between percent signs, line breaks written with a backslash.
_QUOTED: Final = str.maketrans({character: f"#{ord(character)};" for character in '"#%&;<>\\`'})


def _quoted(text: str) -> str:
    return text.translate(_QUOTED)
