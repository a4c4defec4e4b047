"""The `greenroom` command. Its commands import what they need when they are called, so `--help` is quick."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Final

from actors.cli._arguments import parse
from actors.cli._programs import INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; an interrupt is 130, as a shell would say it."""
    chosen = parse(arguments)
    try:
        return _COMMANDS[chosen.command](chosen)
    except KeyboardInterrupt:
        print("greenroom: interrupted", file=sys.stderr)
        return INTERRUPTED


def _demo(chosen: Namespace) -> int:
    from actors.cli._demo import demo

    return demo(plain=chosen.plain, json_wanted=chosen.json)


def _executor(chosen: Namespace) -> int:
    from actors.cli._executor import executor

    return executor(chosen)


def _run(chosen: Namespace) -> int:
    from actors.cli._run import run

    return run(chosen)


def _doctor(chosen: Namespace) -> int:
    from actors.cli._doctor import doctor

    return doctor(json_wanted=chosen.json)


_COMMANDS: Final[dict[str, Callable[[Namespace], int]]] = {
    "demo": _demo,
    "executor": _executor,
    "run": _run,
    "doctor": _doctor,
}
