"""Put the stage up, play the scenes, and take everything down again."""

import sys
import time
from functools import partial

import trio
from rich.console import Console

import supervision
from actors.cli._demo._live_view import LiveNarrator
from actors.cli._demo._narration import JsonNarrator, Narrator, PlainNarrator
from actors.cli._demo._scenes import SCENES
from actors.cli._demo._stage import Stage
from actors.cli._programs import run_program
from actors.environments import open_manager

__all__ = ["demo"]

_PACE_S = 0.7
_LIMIT_S = 60.0


def demo(*, plain: bool, json_wanted: bool) -> int:
    """Play the demo; the exit code is 0 when every claim held."""
    if json_wanted:
        return run_program(partial(_play, JsonNarrator(), 0.0))
    console = Console()
    if plain or not console.is_terminal:
        return run_program(partial(_play, PlainNarrator(), 0.0))
    narrator = LiveNarrator(console)
    try:
        return run_program(partial(_play, narrator, _PACE_S))
    finally:
        narrator.close()


async def _play(narrator: Narrator, pace_s: float) -> int:
    began_s = time.monotonic()
    with trio.move_on_after(_LIMIT_S):
        async with supervision.open_root("demo") as root:
            executors = await root.start_supervisor("executors")
            async with open_manager(root) as manager:
                stage = Stage(root, executors, manager, narrator, pace_s)
                for title, scene in SCENES.items():
                    narrator.scene(title)
                    await scene(stage)
                tree = root.tree().render_text()
        narrator.end(tree, stage.proofs, time.monotonic() - began_s)
        return 0 if all(proof.held for proof in stage.proofs) else 1
    print(f"greenroom demo: not finished after {_LIMIT_S:g} s", file=sys.stderr)
    return 1
