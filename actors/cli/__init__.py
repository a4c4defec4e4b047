"""The `greenroom` command. Its commands import what they need when they are called, so `--help` is quick."""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Final

from actors.cli._arguments import parse
from actors.cli._programs import INTERRUPTED, INTERRUPTED_FROM

__all__ = ["main"]

_BROKEN_PIPE: Final = INTERRUPTED_FROM + signal.SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; an interrupt is 130, as a shell would say it."""
    chosen = parse(arguments)
    try:
        return _COMMANDS[chosen.command](chosen)
    except BrokenPipeError:
        _say_no_more()  # Whoever read our output has enough.
        return _BROKEN_PIPE
    except OSError as error:
        _say_no_more()
        print(f"greenroom: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("greenroom: interrupted", file=sys.stderr)
        return INTERRUPTED


def _say_no_more() -> None:
    """Python would try to write what is left at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _demo(chosen: Namespace) -> int:
    from actors.cli._demo import demo

    return demo(plain=chosen.plain, json_wanted=chosen.json)


def _serve(chosen: Namespace) -> int:
    from actors.cli._serve import serve

    return serve(chosen)


def _executor(chosen: Namespace) -> int:
    from actors.cli._executor import executor

    return executor(chosen)


def _codemode_host(chosen: Namespace) -> int:
    from actors.cli._codemode_host import codemode_host

    return codemode_host(chosen)


def _run(chosen: Namespace) -> int:
    from actors.cli._run import run

    return run(chosen)


def _doctor(chosen: Namespace) -> int:
    from actors.cli._doctor import doctor

    return doctor(json_wanted=chosen.json)


_COMMANDS: Final[dict[str, Callable[[Namespace], int]]] = {
    "demo": _demo,
    "serve": _serve,
    "executor": _executor,
    "codemode-host": _codemode_host,
    "run": _run,
    "doctor": _doctor,
}
