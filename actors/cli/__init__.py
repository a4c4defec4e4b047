"""The `greenroom` command. Its commands import what they need when they are called, so `--help` is quick."""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from actors.cli._arguments import parse
from actors.cli._programs import INTERRUPTED, INTERRUPTED_FROM

__all__ = ["command_line", "main"]

_BROKEN_PIPE: Final = INTERRUPTED_FROM + signal.SIGPIPE

Command: TypeAlias = Callable[[Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; an interrupt is 130, as a shell would say it."""
    try:
        return command_line(arguments)()
    except KeyboardInterrupt:
        return INTERRUPTED


def command_line(arguments: Sequence[str] | None = None) -> Callable[[], int]:
    """Read what was typed and import what that command needs, and no more.

    Returns:
        The command, which gives its exit code.
    """
    chosen = parse(arguments)
    return partial(_run_command, _COMMANDS[chosen.command](), chosen)


def _run_command(command: Command, chosen: Namespace) -> int:
    try:
        return command(chosen)
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


def _demo() -> Command:
    from actors.cli._demo import demo

    return lambda chosen: demo(plain=chosen.plain, json_wanted=chosen.json)


def _serve() -> Command:
    from actors.cli._serve import serve

    return serve


def _executor() -> Command:
    from actors.cli._executor import executor

    return executor


def _codemode_host() -> Command:
    try:
        from actors.cli._codemode_host import codemode_host
    except ModuleNotFoundError as missing:  # Without the extra: the error says what to install.
        print(f"greenroom codemode-host: {missing}", file=sys.stderr)
        return lambda _: 1
    return codemode_host


def _run() -> Command:
    from actors.cli._run import run

    return run


def _doctor() -> Command:
    from actors.cli._doctor import doctor

    return lambda chosen: doctor(json_wanted=chosen.json)


_COMMANDS: Final[dict[str, Callable[[], Command]]] = {
    "demo": _demo,
    "serve": _serve,
    "executor": _executor,
    "codemode-host": _codemode_host,
    "run": _run,
    "doctor": _doctor,
}
