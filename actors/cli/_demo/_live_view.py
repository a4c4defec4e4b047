"""The demo on a terminal: a table that is always current over the last lines of the story."""

from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from actors.cli._demo._narration import Proof, Row, ending

__all__ = ["LiveNarrator"]

_LINES = 14
_COLOURS = {
    "ready": "green",
    "connected": "green",
    "pending": "yellow",
    "starting": "yellow",
    "recovering": "yellow",
    "failed": "red",
    "abandoned": "red",
    "lost": "red",
}


class LiveNarrator:
    """Draws in place while the demo runs, and leaves the whole story behind when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._story: list[Text] = []
        self._last: deque[Text] = deque(maxlen=_LINES)
        self._rows: list[Row] = []
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def close(self) -> None:
        """Give the terminal back as it was."""
        self._live.stop()

    def _tell(self, line: Text) -> None:
        self._story.append(line)
        self._last.append(line)
        self._draw()

    def _draw(self) -> None:
        table = Table(expand=True)
        for column in ("environment", "generation", "gate", "connection", "why"):
            table.add_column(column, overflow="fold")
        for row in self._rows:
            states = (Text(word, style=_COLOURS.get(word, "")) for word in (row.gate, row.connection))
            table.add_row(row.environment_id, str(row.generation), *states, row.why)
        self._live.update(Group(table, Panel(Text("\n").join(self._last), title="what happens")), refresh=True)

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
        self._live.stop()
        for line in self._story:
            self._console.print(line)
        self._console.print(Panel(Text(tree), title="the supervision tree"))
        style = "bold green" if all(proof.held for proof in proofs) else "bold red"
        self._console.print(Text(ending(proofs, seconds), style=style))
