"""`greenroom run`: run one command in an executor and end as it ended."""

import json
import math
import shlex
import signal
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import attrs
import trio

from actors.cli._output import OutputRefused, write_to
from actors.cli._programs import run_program
from actors.cli._sinks import Kept, Sink, Streams
from actors.cli._standard_input import feed, has_something_to_pass_on
from actors.cli._tokens import TokenFileRefused, read_token, token_hint
from actors.harness import (
    Client,
    HarnessError,
    InvalidArgument,
    Process,
    RequestRejected,
    WebSocketDialer,
    open_client,
)
from actors.protocol import SpawnFailureKind
from actors.relay import RegistrarFailed

__all__ = ["run"]

TIMED_OUT = 124
"""As coreutils' `timeout` says it."""
NOT_RUNNABLE, NOT_FOUND = 126, 127
"""As a shell says it of a program that is there and cannot be run, and of one that is not there."""
READER_LEFT = 128 + signal.SIGPIPE
"""As a shell says it of a program whose output nobody reads any more; there is nobody to tell more."""
_TYPED: Final = {"url": "EXECUTOR", "cwd": "--cwd", "env": "--env", "argv": "CMD"}
"""How arguments of the library are called on the command line."""
_LAST_WORDS_S = 2.0
"""How long a killed command's output is waited for."""


def run(chosen: Namespace) -> int:
    """Run the command; the exit code is the command's own, or one of those that ``greenroom run --help`` lists."""
    try:
        variables = _variables(chosen.env)
        timeout_s = math.inf if chosen.timeout_s is None else chosen.timeout_s
        _check_place(chosen)
        token = read_token(chosen.token_file)
    except (ValueError, TokenFileRefused) as refused:
        return _not_run(chosen, str(refused), 2)
    try:
        return run_program(partial(_run, chosen, variables, timeout_s, token))
    except (HarnessError, RegistrarFailed) as error:
        hint = token_hint(error, chosen.token_file) or _place_hint(error, chosen)
        return _not_run(chosen, f"{_said(error)}{hint}", _code_of(error, chosen.argv))
    except OutputRefused as refused:
        if refused.reader_left:
            return READER_LEFT
        print(f"greenroom run: {refused}", file=sys.stderr)
        return 1


def _not_run(chosen: Namespace, why: str, code: int) -> int:
    """Say why the command's end is not known, to people and to programs, and give the exit code."""
    print(f"greenroom run: {why}", file=sys.stderr)
    if chosen.json:
        told = {"argv": list(chosen.argv), "exitCode": None, "timedOut": False, "error": why}
        print(json.dumps(told), flush=True)
    return code


def _place_hint(error: Exception, chosen: Namespace) -> str:
    """What to add when it may be the name of the environment that is wrong."""
    if chosen.registry is not None and "environment_offline" in str(error):
        serving = f"greenroom executor --registry ... --environment-id {shlex.quote(chosen.executor)}"
        return f"; look whether {chosen.executor!a} is the right id, and whether `{serving}` runs"
    return ""


def _code_of(error: Exception, argv: Sequence[str]) -> int:
    """The exit code that a shell would give, where it has one."""
    from actors.rendezvous import RegistryConfigInvalid  # Here, not above: few need to know.

    match error:
        case InvalidArgument() | RegistryConfigInvalid():
            return 2
        case RequestRejected(data={"kind": kind, **rest}) if rest.get("path", argv[0]) == argv[0]:
            codes = {SpawnFailureKind.NOT_FOUND.value: NOT_FOUND}
            is_start = kind in {each.value for each in SpawnFailureKind}
            return codes.get(kind, NOT_RUNNABLE) if is_start else 1
        case _:
            return 1


def _check_place(chosen: Namespace) -> None:
    """Demand an address, or an environment id and where it is registered, and not something of both."""
    is_address = "://" in chosen.executor
    if chosen.registry is None and not is_address:
        name, where = ascii(chosen.executor), "say where it is registered: --registry URL --token-file FILE"
        raise ValueError(f"{name} is no ws:// address; to reach environment {name} by its id, {where}")
    if chosen.registry is not None and is_address:
        raise ValueError("with --registry, EXECUTOR is an environment id and not an address; give one of the two")
    if chosen.registry is not None and chosen.token_file is None:
        raise ValueError("--registry needs --token-file")


def _said(error: Exception) -> str:
    """An error's sentence; an argument that is refused is called as it is typed."""
    if isinstance(error, InvalidArgument) and error.field in _TYPED:
        return f"{_TYPED[error.field]} {error.rule}"
    return str(error)


def _variables(given: Sequence[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ValueError("--env takes NAME=VALUE, with a name before the equals sign")
        variables[name] = value
    return variables


async def _run(chosen: Namespace, variables: Mapping[str, str], timeout_s: float, token: str | None) -> int:
    async with _open(chosen, token) as client:
        fed = has_something_to_pass_on() and not chosen.no_stdin
        if fed and not _can_end_input(client):
            fed = False
            print(
                "greenroom run: this executor cannot pass an input on to its end; the command gets none",
                file=sys.stderr,
            )
        sink: Sink = Kept() if chosen.json else Streams()
        ended = await _carry(client, chosen, variables, timeout_s, sink, fed=fed)
    if isinstance(sink, Kept):
        told = json.dumps(
            {"argv": list(chosen.argv), "exitCode": ended.code, "timedOut": ended.timed_out, **sink.told()}
        )
        await write_to(sys.stdout, f"{told}\n".encode())
    elif ended.timed_out:
        end = "its process group was killed" if ended.killed else "its executor did not confirm the kill"
        print(f"greenroom run: not ended after {timeout_s:g} s; {end}", file=sys.stderr)
    return TIMED_OUT if ended.timed_out or ended.code is None else ended.code


def _can_end_input(client: Client) -> bool:
    info = client.environment_info
    return info is not None and info.capabilities.process_stdin_eof


def _open(chosen: Namespace, token: str | None) -> AbstractAsyncContextManager[Client]:
    if chosen.registry is None or token is None:
        return open_client(chosen.executor, dialer=WebSocketDialer(bearer_token=token))
    # Here, not above: the way to an executor that listens by itself needs none of it.
    from actors.cli._remote import open_remote_client

    return open_remote_client(chosen.registry, chosen.executor, token)


@attrs.define
class _Ended:
    """How a command ended."""

    code: int | None = None
    timed_out: bool = False
    killed: bool = False


async def _carry(
    client: Client, chosen: Namespace, variables: Mapping[str, str], timeout_s: float, sink: Sink, *, fed: bool
) -> _Ended:
    """Start the command, pass on what goes in and what comes out, and kill it when its time is over."""
    ended = _Ended()
    with trio.move_on_after(timeout_s) as limit:
        async with client.processes.start(chosen.argv, env=variables, cwd=chosen.cwd, pipe_stdin=fed) as process:
            try:
                async with trio.open_nursery() as nursery:
                    if fed:
                        nursery.start_soon(feed, process)
                    await _pass_on(process, sink)
                    nursery.cancel_scope.cancel()
                ended.code = await process.wait()
            finally:
                if limit.cancel_called:
                    ended.timed_out, ended.killed = True, await _kill(process, sink)
                    ended.code = None if process.exit is None else process.exit.code
    ended.timed_out = ended.timed_out or limit.cancelled_caught
    return ended


async def _pass_on(process: Process, sink: Sink) -> None:
    async for piece in process.chunks():
        await sink.take(piece)


async def _kill(process: Process, sink: Sink) -> bool:
    """Kill its group and pass on what it wrote until then, within a bound; tell whether the kill was confirmed."""
    killed = False
    with trio.move_on_after(_LAST_WORDS_S, shield=True):
        await process.terminate()
        killed = True
        await _pass_on(process, sink)
    return killed
