"""What a person sees of the demo, on terminals large and small."""

import io

import pytest
from rich.console import Console

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


def test_the_summary_says_how_many_claims_held() -> None:
    on = console(80, 24)
    narrator = LiveNarrator(on)
    proofs = [Proof(claim="one", held=True, seen="x"), Proof(claim="two", held=False, seen="y")]

    narrator.end("root", proofs, 1.25)

    assert "1 of 2 claims held, in 1.2 s" in seen(on)
