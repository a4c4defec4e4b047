"""Put the stage up, play the scenes, and take everything down again."""

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import trio
from rich.console import Console

import supervision
from actors import ActorsError
from actors.cli._demo._live_view import LiveNarrator
from actors.cli._demo._narration import JsonNarrator, Narrator, PlainNarrator
from actors.cli._demo._relay import Relay
from actors.cli._demo._scenes import SCENES
from actors.cli._demo._stage import Stage
from actors.cli._programs import INTERRUPTED_FROM, run_program
from actors.environments import open_manager
from actors.rendezvous import bearer, open_registry_client
from supervision import ChildSpec, SupervisionError

__all__ = ["demo"]

_PACE_S = 0.7
_LIMIT_S = 60.0


def demo(*, plain: bool, json_wanted: bool) -> int:
    """Play the demo; the exit code is 0 when every claim held."""
    console = Console()
    if json_wanted:
        return _told_by(JsonNarrator(), pace_s=0.0)
    if plain or not console.is_terminal:
        return _told_by(PlainNarrator(), pace_s=0.0)
    narrator = LiveNarrator(console)
    return _told_by(narrator, pace_s=_PACE_S, close=narrator.close)


class _NotFinished(Exception):
    """The demo took too long."""


def _told_by(narrator: Narrator, *, pace_s: float, close: Callable[[], None] = lambda: None) -> int:
    """Play; how it ended, if not by itself, is told below all that the narrator leaves behind."""
    last = ""
    try:
        code = run_program(partial(_play, narrator, pace_s), tell=False)
        if code > INTERRUPTED_FROM:
            last = "interrupted; everything it had started is stopped"
    except (ActorsError, SupervisionError, _NotFinished) as error:
        # Nothing here fails by design: an executor could not be started, or was lost for good.
        code, last = 1, str(error)
    finally:
        close()
    if last:
        print(f"greenroom demo: {last}", file=sys.stderr)
    return code


async def _play(narrator: Narrator, pace_s: float) -> int:
    began_s = trio.current_time()
    with trio.move_on_after(_LIMIT_S):
        relay = Relay()
        async with AsyncExitStack() as stack:
            stage = await _put_up(stack, relay, narrator, pace_s)
            stage.begin_executor("builder")  # It is long in coming, and a later scene needs it.
            for title, scene in SCENES.items():
                narrator.scene(title)
                await scene(stage)
            tree = stage.root.tree().render_text()
        narrator.end(tree, stage.proofs, trio.current_time() - began_s)
        return 0 if all(proof.held for proof in stage.proofs) else 1
    raise _NotFinished(f"not finished after {_LIMIT_S:g} s")


async def _put_up(stack: AsyncExitStack, relay: Relay, narrator: Narrator, pace_s: float) -> Stage:
    root = await stack.enter_async_context(supervision.open_root("demo"))
    rendezvous = await root.start_child(ChildSpec("rendezvous", relay.run))
    executors = await root.start_supervisor("executors")
    registry_url = rendezvous.value.url
    registry = await stack.enter_async_context(open_registry_client(registry_url, bearer(relay.token)))
    manager = await stack.enter_async_context(open_manager(root))
    narrator.fact(f"a registry and rendezvous is embedded here, at {registry_url}")
    return Stage(
        root=root,
        relay=relay,
        rendezvous=rendezvous,
        executors=executors,
        manager=manager,
        registry=registry,
        narrator=narrator,
        pace_s=pace_s,
    )
