"""What may be typed after `greenroom`, and nothing of what it does."""

import argparse
from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["parse"]

LISTEN_DEFAULT = "ws://127.0.0.1:0"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line.

    A wrong one ends the program with exit code 2 and one line that says why.
    """
    parser = argparse.ArgumentParser(
        prog="greenroom",
        description="Supervised execution environments.",
        epilog="Exit codes: 0 it worked, 1 it did not (the reason is on the error output), 2 it was called wrongly, "
        "130 it was interrupted. `run` ends with the exit code of the command it ran.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for describe in (_demo, _executor, _run, _doctor):
        describe(commands)
    return parser.parse_args(arguments)


class _Commands(Protocol):
    """What `add_subparsers` returns; argparse's own name for it is private."""

    def add_parser(self, name: str, **described: Any) -> argparse.ArgumentParser: ...


def _demo(commands: _Commands) -> None:
    command = commands.add_parser(
        "demo",
        help="show the whole lifecycle on real processes",
        description="Start executors as child processes on loopback and take several environments through "
        "their whole lifecycle under one supervisor. Ends by itself in under 20 seconds.",
    )
    command.add_argument(
        "--plain", action="store_true", help="lines of text, no live view (the default without a terminal)"
    )
    command.add_argument("--json", action="store_true", help="one JSON object a line, the last one is the summary")


def _executor(commands: _Commands) -> None:
    command = commands.add_parser(
        "executor",
        help="serve processes on this machine to a harness",
        description="Serve one executor and print its address. It runs what it is told to, as the user who started it.",
    )
    command.add_argument(
        "--listen",
        default=LISTEN_DEFAULT,
        metavar="URL",
        help="ws://HOST:PORT, port 0 picks a free one (default: %(default)s); "
        "anything but loopback is refused without a token",
    )
    command.add_argument(
        "--token-file",
        metavar="PATH",
        help="a file that holds the bearer token a harness has to show, readable by its owner only",
    )
    command.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="end when the standard input is closed, for programs that start it",
    )
    command.add_argument("--json", action="store_true", help="print the address as a JSON object")


def _run(commands: _Commands) -> None:
    command = commands.add_parser(
        "run",
        help="run a command in an executor and end with its exit code",
        description="Run a command in the executor at URL, with its output streamed as it comes.",
        epilog="example: greenroom run ws://127.0.0.1:8765 --env A=1 -- sh -c 'echo $A'",
    )
    command.add_argument("executor", metavar="URL", help="the ws:// address that `greenroom executor` printed")
    command.add_argument("argv", nargs="+", metavar="CMD", help="the command and its arguments, after --")
    command.add_argument("--cwd", metavar="PATH", help="where to run it (default: the executor's own directory)")
    command.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="a variable for the command; it inherits none"
    )
    command.add_argument("--timeout-s", type=float, metavar="S", help="kill its whole process group after S seconds")
    command.add_argument(
        "--token-file", metavar="PATH", help="a file that holds the bearer token, readable by its owner only"
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object when it has ended instead of streaming"
    )


def _doctor(commands: _Commands) -> None:
    command = commands.add_parser(
        "doctor",
        help="check what this machine offers and what is in the way",
        description="Check the interpreter, the installed packages, process groups, limits and loopback.",
    )
    command.add_argument("--json", action="store_true", help="one JSON object with every finding")
