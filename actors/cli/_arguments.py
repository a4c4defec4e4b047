"""What may be typed after `greenroom`, and nothing of what it does."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from actors.cli._numbers import above_zero, not_negative
from actors.cli._parser import Parser, Version, cut_in_two

__all__ = ["parse"]

LISTEN_DEFAULT = "ws://127.0.0.1:0"
CODEMODE_DEFAULT = "grpc://127.0.0.1:0"
REGISTRY_DEFAULT = "http://127.0.0.1:0"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line.

    A wrong one ends the program with exit code 2 and one line that says why.
    """
    parser = Parser(
        prog="greenroom",
        description="Supervised execution environments.",
        epilog="Exit codes: 0 it worked, 1 it did not (the reason is on the error output), 2 it was called wrongly, "
        "130 it was interrupted, 143 it was terminated, 141 nobody reads its output any more. `run` ends with the exit "
        "code of the command it ran; `greenroom run --help` lists the others.",
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for describe in (_demo, _serve, _executor, _codemode_host):
        describe(commands)
    run = _run(commands)
    _doctor(commands)
    ours, theirs = list(sys.argv[1:] if arguments is None else arguments), list[str]()
    if ours[:1] == ["run"]:
        ours[1:], theirs = cut_in_two(ours[1:], run)
    chosen = parser.parse_args(ours)
    if theirs:
        chosen.argv = theirs
    return chosen


class _Commands(Protocol):
    """What `add_subparsers` returns; argparse's own name for it is private."""

    def add_parser(self, name: str, **described: Any) -> Parser: ...


def _demo(commands: _Commands) -> None:
    command = commands.add_parser(
        "demo",
        help="show the whole lifecycle on real processes",
        description="Start executors as child processes on loopback and take several environments through "
        "their whole lifecycle under one supervisor. Ends by itself in under 20 seconds.",
    )
    shown = command.add_mutually_exclusive_group()
    shown.add_argument(
        "--plain", action="store_true", help="lines of text, no live view (the default without a terminal)"
    )
    shown.add_argument("--json", action="store_true", help="one JSON object a line, the last one is the summary")


def _serve(commands: _Commands) -> None:
    command = commands.add_parser(
        "serve",
        help="serve a registry and rendezvous for executors and harnesses",
        description="Serve a registry, where executors register and harnesses ask for them, and a rendezvous that "
        "carries what they say to each other without being able to read it. Prints the registry's address.",
    )
    command.add_argument(
        "--listen",
        default=REGISTRY_DEFAULT,
        metavar="URL",
        help="http://HOST:PORT, with a certificate https://HOST:PORT; port 0 picks a free one (default: %(default)s)",
    )
    for option, whose in (
        ("--token-file", "everybody"),
        ("--executor-token-file", "executors alone"),
        ("--harness-token-file", "harnesses alone"),
    ):
        command.add_argument(
            option, metavar="PATH", help=f"a file that holds the bearer token of {whose}, readable by its owner only"
        )
    command.add_argument("--certificate", metavar="PATH", help="serve TLS with this certificate chain, in PEM form")
    command.add_argument("--key", metavar="PATH", help="the certificate's private key, without a password")
    command.add_argument(
        "--public-url", metavar="URL", help="how clients reach it, if not by --listen: behind a proxy, for example"
    )
    count, rate = above_zero(int), above_zero(float, may_be_endless=True)
    for option, number, what in (
        ("--max-connections", count, "connections at once; more are closed unread (default: 4096)"),
        ("--max-streams", count, "streams of one token at once; more are told to come later (default: 2000)"),
        ("--requests-per-s", rate, "requests of one token; more are told to come later (default: 200)"),
        ("--bytes-per-s", rate, "bytes of one token in each direction; more wait (default: 1 GiB)"),
    ):
        command.add_argument(option, type=number, metavar="N", help=what)
    command.add_argument(
        "--drain-s",
        type=not_negative(float),
        default=5.0,
        metavar="S",
        help="how long streams may go on after SIGTERM, while nothing new is taken (default: %(default)g)",
    )
    command.add_argument(
        "--status-every-s", type=not_negative(float), default=0.0, metavar="S", help="print the numbers every S seconds"
    )
    _foreground(command)


def _foreground(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="end when the standard input is closed, for programs that start it",
    )
    command.add_argument("--json", action="store_true", help="print the address, and all else, as JSON objects")


def _executor(commands: _Commands) -> None:
    command = commands.add_parser(
        "executor",
        help="serve processes on this machine to a harness",
        description="Serve one executor and print its address. It runs what it is told to, as the user who started it.",
    )
    command.add_argument(
        "--listen",
        metavar="URL",
        help=f"ws://HOST:PORT, port 0 picks a free one (default: {LISTEN_DEFAULT}); "
        "anything but loopback is refused without a token",
    )
    command.add_argument(
        "--registry",
        metavar="URL",
        help="do not listen: register there and be reached through its rendezvous, encrypted end to end",
    )
    command.add_argument("--environment-id", metavar="ID", help="as what to register; needed with --registry")
    command.add_argument(
        "--identity-file",
        metavar="PATH",
        help="with --registry: where to keep the keys; made when it is not there (default: new keys each time)",
    )
    command.add_argument(
        "--token-file",
        metavar="PATH",
        help="a file that holds the bearer token a harness has to show, or that the registry wants to see; "
        "readable by its owner only",
    )
    command.add_argument(
        "--file-root",
        action="append",
        metavar="PATH",
        help="a folder to keep file access and working folders in, may be repeated (default: the whole machine); "
        "what a program does once it runs is not confined by this",
    )
    command.add_argument(
        "--http",
        action="store_true",
        help="make HTTP requests for harnesses: from this machine, with its variables in headers where they ask for it",
    )
    _foreground(command)


_RUN_EPILOG = """\
examples:
  greenroom run ws://127.0.0.1:8765 --env A=1 -- sh -c 'echo $A'
  greenroom run ws://127.0.0.1:8765 -- cat < file

Standard input is passed on to the command, unless it is a terminal.
With --json, one object is printed however it went; where the command's end is not known, its `exitCode` is null
and `error` says why.

exit codes:
  the command's own; 128 + n when signal n ended it
  1     it could not be run, or its end is not known; the reason is on the error output
  2     greenroom was called wrongly
  124   the command was not ended after --timeout-s, and was killed
  126   the program is there and cannot be run
  127   there is no such program
  130, 143   greenroom was interrupted or terminated; the command was killed
  141   nobody reads the output any more; the command was killed
"""


def _codemode_host(commands: _Commands) -> None:
    command = commands.add_parser(
        "codemode-host",
        help="serve code sessions: JavaScript cells over gRPC",
        description="Run JavaScript cells in leased sessions, each session in processes of its own, and serve them "
        "over gRPC. Prints its address. SIGTERM or an interrupt lets cells that are waited for end first.",
    )
    command.add_argument(
        "--listen",
        default=CODEMODE_DEFAULT,
        metavar="URL",
        help="grpc://ADDRESS:PORT, port 0 picks a free one, or unix:PATH (default: %(default)s); anything but "
        "loopback and unix sockets is refused without a token and a certificate",
    )
    command.add_argument("--token-file", metavar="PATH", help="a file that holds the bearer token callers have to show")
    command.add_argument(
        "--tls-certificate", "--certificate", metavar="PATH", help="a certificate chain in PEM, to speak TLS"
    )
    command.add_argument("--tls-key", "--key", metavar="PATH", help="its key")
    command.add_argument("--engine", metavar="PATH", help="the deno or node to use (default: the first that is found)")
    command.add_argument(
        "--process-per-cell", action="store_true", help="use no process for a second cell, not even of one session"
    )
    command.add_argument(
        "--require-walls",
        action="store_true",
        help="refuse to start where the system cannot confine engine processes (Landlock, seccomp, no_new_privs)",
    )
    numbers = (
        ("--heap-mib", int, 512, "room for JavaScript in one process, and the most a session may ask for"),
        ("--warm-engines", int, 2, "processes kept ready for the first cells of sessions"),
        ("--cells-max", int, 2048, "live cells of all sessions together"),
        ("--cells-per-session-max", int, 2048, "live cells of one session"),
        ("--stored-mib", int, 64, "what the cells of one session may store, and at most an eighth of its heap"),
        ("--cell-deadline-s", float, None, "how long a cell may run (default: for ever)"),
        ("--drain-s", float, 10.0, "how long cells that are waited for may run on when this program is asked to end"),
    )
    for name, kind, default, text in numbers:
        told = text if default is None else f"{text} (default: %(default)s)"
        command.add_argument(name, type=kind, default=default, metavar="N" if kind is int else "S", help=told)
    command.add_argument("--json", action="store_true", help="print address, engine and walls as a JSON object")


def _run(commands: _Commands) -> Parser:
    command = commands.add_parser(
        "run",
        help="run a command in an executor and end with its exit code",
        description="Run a command in an executor, with its output streamed as it comes.",
        usage="greenroom run [OPTION ...] EXECUTOR [OPTION ...] -- CMD [ARGUMENT ...]",
        epilog=_RUN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "executor",
        metavar="EXECUTOR",
        help="the ws:// address that `greenroom executor` printed, or with --registry the environment id",
    )
    command.add_argument(
        "argv", nargs="+", metavar="CMD", help="the command and its arguments; -- may be left out before it"
    )
    command.add_argument(
        "--cwd", metavar="PATH", help="where to run it, an absolute path (default: the executor's own directory)"
    )
    command.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable for the command; it inherits none",
    )
    command.add_argument("--registry", metavar="URL", help="reach it through this registry, encrypted end to end")
    command.add_argument(
        "--timeout-s", type=above_zero(float), metavar="S", help="kill its whole process group after S seconds"
    )
    command.add_argument(
        "--token-file", metavar="PATH", help="a file that holds the bearer token, readable by its owner only"
    )
    command.add_argument(
        "--no-stdin", action="store_true", help="give the command an empty standard input, and leave ours alone"
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object when it has ended instead of streaming"
    )
    return command


def _doctor(commands: _Commands) -> None:
    command = commands.add_parser(
        "doctor",
        help="check what this machine offers and what is in the way",
        description="Check the interpreter, the packages, process groups, limits, loopback and what runs JavaScript.",
    )
    command.add_argument("--json", action="store_true", help="one JSON object with every finding")
