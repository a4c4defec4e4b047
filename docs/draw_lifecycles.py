"""Draw `docs/lifecycles.md` from the transition tables. Run it; a test fails when the page is stale.

Knows only that a table maps (state, event) to the next state.
"""

from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parent / "lifecycles.md"

_HEADER = """\
# Lifecycles

Drawn from the transition tables in the code by `python docs/draw_lifecycles.py` (with greenroom installed); do not edit. An event that has no
arrow from a state raises in its sender and changes nothing.
"""


def word(thing: object) -> str:
    """A state or event as one word: an enum member's value, a class's name, else its text."""
    value = getattr(thing, "value", None)
    text = value if isinstance(value, str) else getattr(thing, "__name__", str(thing))
    return text.replace(" ", "_").replace("-", "_")


def draw(table: Mapping[tuple[object, object], object]) -> str:
    """One table as a Mermaid state diagram, one arrow a transition, in the table's own order."""
    arrows = [f"    {word(state)} --> {word(target)}: {word(event)}" for (state, event), target in table.items()]
    first = next(iter(table))[0]
    sources = {word(state) for state, _ in table}
    ends = dict.fromkeys(word(target) for target in table.values() if word(target) not in sources)
    return "\n".join(
        [
            "```mermaid",
            "stateDiagram-v2",
            f"    [*] --> {word(first)}",
            *arrows,
            *(f"    {end} --> [*]" for end in ends),
            "```",
        ]
    )


def page() -> str:
    """The whole page, from the tables as they are now."""
    from actors.environments import CONNECTION_TRANSITIONS, GATE_TRANSITIONS
    from supervision import CHILD_TRANSITIONS

    parts = {
        "A child of a supervisor": (CHILD_TRANSITIONS, "supervision/_states.py"),
        "The gate of an environment": (GATE_TRANSITIONS, "actors/environments/_gate.py"),
        "The connection of an environment": (CONNECTION_TRANSITIONS, "actors/environments/_connection.py"),
    }
    sections = [f"## {title}\n\nFrom `{source}`.\n\n{draw(table)}\n" for title, (table, source) in parts.items()]
    return "\n".join([_HEADER, *sections])


if __name__ == "__main__":
    PAGE.write_text(page())
