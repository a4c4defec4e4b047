"""The demo on a terminal: a table that is always current over the last lines of the story."""

import re
import textwrap

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from actors.cli._demo._narration import Proof, Row, ending

__all__ = ["LiveNarrator"]

_COLOURS = {
    "ready": "green",
    "connected": "green",
    "pending": "yellow",
    "disconnected": "yellow",
    "failed": "red",
    "abandoned": "red",
}
_WIDTH_FOR_WHY = 100
_LINES_LEAST, _LINES_MOST = 3, 16
_TABLE_FRAME, _PANEL_FRAME = 4, 2
_SIDES = 4
"""What a panel takes of the width."""


def _wrapped(line: str, width: int) -> list[str]:
    """A node of the tree; what does not fit on its line stands below its name, and its branches go on beside it."""
    name = re.match(r"[|` -]*", line)
    branch = name.group() if name is not None else ""
    below = branch.replace("`", " ").replace("-", " ") + "  "
    return textwrap.wrap(line, max(width, len(below) + 20), initial_indent="", subsequent_indent=below) or [line]


class LiveNarrator:
    """Draws in place while the demo runs, and leaves the whole story behind when it ends, however it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._story: list[Text] = []
        self._rows: list[Row] = []
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def close(self) -> None:
        """Give the terminal back, with what was told so far; twice is quiet."""
        if self._live.is_started:
            self._live.stop()
            for line in self._story:
                self._console.print(line)

    def _tell(self, line: Text) -> None:
        self._story.append(line)
        self._draw()

    def _draw(self) -> None:
        size = self._console.size
        # One line each: on a small terminal it is the newest that must be seen.
        room = size.height - len(self._rows) - _TABLE_FRAME - _PANEL_FRAME - 1
        newest = self._story[-max(_LINES_LEAST, min(_LINES_MOST, room)) :]
        told = Text("\n").join(newest)
        told.no_wrap, told.overflow = True, "ellipsis"
        self._live.update(Group(self._table(size.width), Panel(told, title="what happens")), refresh=True)

    def _table(self, width: int) -> Table:
        columns = ["environment", "generation", "gate", "connection"]
        wide = width >= _WIDTH_FOR_WHY
        table = Table(*columns, *(["why"] if wide else []), expand=True)
        for row in self._rows:
            states = [Text(word, style=_COLOURS.get(word, "")) for word in (row.gate, row.connection)]
            why = [Text(row.why, no_wrap=True, overflow="ellipsis")] if wide else []
            table.add_row(row.environment_id, str(row.generation), *states, *why)
        return table

    def scene(self, title: str) -> None:
        """Begin a scene."""
        self._tell(Text(title, style="bold"))

    def fact(self, text: str) -> None:
        """Tell what happened."""
        self._tell(Text(f"  {text}"))

    def proof(self, proof: Proof) -> None:
        """Tell what was shown."""
        mark = Text("  ✓ ", style="green") if proof.held else Text("  ✗ ", style="bold red")
        self._tell(mark + Text(f"{proof.claim}: {proof.seen}"))

    def rows(self, rows: list[Row]) -> None:
        """Show the environments as they are now."""
        self._rows = rows
        self._draw()

    def end(self, tree: str, proofs: list[Proof], seconds: float) -> None:
        """Leave the story, the tree and the summary on the terminal."""
        self.close()
        lines = [wrapped for line in tree.splitlines() for wrapped in _wrapped(line, self._console.width - _SIDES)]
        self._console.print(Panel(Text("\n".join(lines)), title="the supervision tree"))
        style = "bold green" if all(proof.held for proof in proofs) else "bold red"
        self._console.print(Text(ending(proofs, seconds), style=style))
