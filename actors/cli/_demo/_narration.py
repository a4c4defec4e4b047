"""What the demo tells, as values, and the three ways to tell it. Knows nothing of environments."""

import json
import sys
from typing import Protocol

import attrs

__all__ = ["JsonNarrator", "Narrator", "PlainNarrator", "Proof", "Row"]


@attrs.frozen(kw_only=True)
class Proof:
    """One claim, and whether it held when it was put to the test."""

    claim: str
    """What should be so."""
    held: bool
    """Whether it was."""
    seen: str
    """What was seen."""


@attrs.frozen(kw_only=True)
class Row:
    """One environment, at this moment."""

    environment_id: str
    """Its id."""
    generation: int
    """Which generation has the id."""
    gate: str
    """Where its gate stands."""
    connection: str
    """Where its connection stands."""
    why: str
    """Why that is so."""


class Narrator(Protocol):
    """Where the demo tells its story."""

    def scene(self, title: str) -> None:
        """Begin a scene."""
        ...

    def fact(self, text: str) -> None:
        """Tell what happened."""
        ...

    def proof(self, proof: Proof) -> None:
        """Tell what was shown."""
        ...

    def rows(self, rows: list[Row]) -> None:
        """Show the environments as they are now."""
        ...

    def end(self, tree: str, proofs: list[Proof], seconds: float) -> None:
        """Tell how it ended."""
        ...


def ending(proofs: list[Proof], seconds: float) -> str:
    """The last line of the story."""
    held = sum(proof.held for proof in proofs)
    return f"{held} of {len(proofs)} claims held, in {seconds:.1f} s"


class PlainNarrator:
    """Lines of text, for pipes and logs."""

    def scene(self, title: str) -> None:
        """Begin a scene."""
        print(f"\n{title}", flush=True)

    def fact(self, text: str) -> None:
        """Tell what happened."""
        print(f"  {text}", flush=True)

    def proof(self, proof: Proof) -> None:
        """Tell what was shown."""
        print(f"  [{'ok' if proof.held else 'NOT SO'}] {proof.claim}: {proof.seen}", flush=True)

    def rows(self, rows: list[Row]) -> None:
        """Say nothing: each change is a fact already."""

    def end(self, tree: str, proofs: list[Proof], seconds: float) -> None:
        """Print the tree and the summary."""
        print(f"\nThe supervision tree\n{tree}\n\n{ending(proofs, seconds)}", flush=True)


class JsonNarrator:
    """One object a line, for programs."""

    def _say(self, kind: str, **members: object) -> None:
        sys.stdout.write(json.dumps({"kind": kind, **members}) + "\n")
        sys.stdout.flush()

    def scene(self, title: str) -> None:
        """Begin a scene."""
        self._say("scene", title=title)

    def fact(self, text: str) -> None:
        """Tell what happened."""
        self._say("fact", text=text)

    def proof(self, proof: Proof) -> None:
        """Tell what was shown."""
        self._say("proof", **attrs.asdict(proof))

    def rows(self, rows: list[Row]) -> None:
        """Tell every environment."""
        self._say("environments", environments=[attrs.asdict(row) for row in rows])

    def end(self, tree: str, proofs: list[Proof], seconds: float) -> None:
        """Tell the tree and the summary; always the last line."""
        self._say(
            "summary",
            held=sum(proof.held for proof in proofs),
            claims=len(proofs),
            seconds=round(seconds, 3),
            tree=tree.splitlines(),
        )
