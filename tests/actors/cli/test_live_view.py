"""What a person sees of the demo, on terminals large and small."""

import io
import sys

import pytest
from rich.console import Console

from actors import ActorsError
from actors.cli._demo import _show
from actors.cli._demo._live_view import LiveNarrator
from actors.cli._demo._narration import Proof, Row


def console(width: int, height: int) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, color_system=None)


def seen(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def rows(count: int) -> list[Row]:
    why = "a long story about how this came to be, which does not fit on one line of any usual terminal"
    return [
        Row(environment_id=f"env-{n}", generation=1, gate="ready", connection="connected", why=why)
        for n in range(count)
    ]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 15), (140, 45)])
def test_the_newest_line_is_on_the_screen_whatever_its_size(width: int, height: int) -> None:
    on = console(width, height)
    narrator = LiveNarrator(on)
    narrator.rows(rows(4))

    for number in range(40):
        before = len(seen(on))
        narrator.fact(f"fact {number}")

        assert f"fact {number} " in seen(on)[before:], seen(on)[before:]
    narrator.close()


def test_what_was_told_stays_when_the_view_is_closed_early() -> None:
    on = console(80, 24)
    narrator = LiveNarrator(on)
    narrator.scene("A scene")
    narrator.fact("a fact")
    before = len(seen(on))

    narrator.close()
    narrator.close()

    assert seen(on)[before:].endswith("A scene\n  a fact\n")


@pytest.mark.parametrize(
    ("outcome", "last"),
    [
        (130, "greenroom demo: interrupted; everything it had started is stopped\n"),
        (ActorsError("no executor"), "greenroom demo: no executor\n"),
    ],
)
def test_an_early_end_is_told_below_the_whole_story(
    outcome: int | ActorsError, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the line is printed before the view is closed, which then scrolls it away."""
    on = console(80, 24)
    monkeypatch.setattr(sys, "stderr", on.file)
    narrator = LiveNarrator(on)

    def play(program: object, *, tell: bool) -> int:
        assert not tell  # Its line would come before the view is closed.
        narrator.fact("a fact")
        if isinstance(outcome, ActorsError):
            raise outcome
        return outcome

    monkeypatch.setattr(_show, "run_program", play)

    assert _show._told_by(narrator, pace_s=0.0, close=narrator.close) == (130 if outcome == 130 else 1)
    assert seen(on).endswith(f"  a fact\n{last}")


TREE = """\
demo [one_for_one, 1/3 restarts in 5 s]
|- rendezvous: running, generation 2, up 16.7 s, 1 restart, last cause RelayCrashed
|- executors: running, generation 1, up 22.7 s [one_for_one, 0/3 restarts in 5 s]
|  `- tools: running, generation 2, up 11.4 s, 1 restart, last cause ExecutorDied
`- code-host: stopped"""


def test_a_node_that_is_too_long_for_its_line_goes_on_below_its_name() -> None:
    on = console(64, 24)
    LiveNarrator(on).end(TREE, [], 1.0)

    drawn = [line.strip("│ ").rstrip() for line in seen(on).splitlines() if line.startswith("│")]
    assert drawn[-8:] == [
        "demo [one_for_one, 1/3 restarts in 5 s]",
        "|- rendezvous: running, generation 2, up 16.7 s, 1 restart,",
        "|    last cause RelayCrashed",
        "|- executors: running, generation 1, up 22.7 s [one_for_one,",
        "|    0/3 restarts in 5 s]",
        "|  `- tools: running, generation 2, up 11.4 s, 1 restart,",
        "|       last cause ExecutorDied",
        "`- code-host: stopped",
    ]


def test_the_summary_says_how_many_claims_held() -> None:
    on = console(80, 24)
    narrator = LiveNarrator(on)
    proofs = [Proof(claim="one", held=True, seen="x"), Proof(claim="two", held=False, seen="y")]

    narrator.end("root", proofs, 1.25)

    assert "1 of 2 claims held, in 1.2 s" in seen(on)
