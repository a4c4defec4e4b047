"""`greenroom run`: run one command in an executor and end as it ended."""

import json
import math
import signal
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial

import trio

from actors.cli._output import OutputRefused, write_to
from actors.cli._programs import run_program
from actors.cli._tokens import TokenFileRefused, read_token
from actors.harness import (
    Client,
    CommandTimedOut,
    CompletedCommand,
    HarnessError,
    InvalidArgument,
    Process,
    WebSocketDialer,
    open_client,
)
from actors.protocol import OutputGap, Stream
from actors.relay import RegistrarFailed

__all__ = ["run"]

TIMED_OUT = 124
"""As coreutils' `timeout` says it."""
READER_LEFT = 128 + signal.SIGPIPE
"""As a shell says it of a program whose output nobody reads any more; there is nobody to tell more."""
_LAST_WORDS_S = 2.0
"""How long a killed command's output is waited for."""


def run(chosen: Namespace) -> int:
    """Run the command; the exit code is the command's own, or 1 when it could not be run or its end is unknown."""
    try:
        variables = _variables(chosen.env)
        timeout_s = _timeout_s(chosen.timeout_s)
        token = read_token(chosen.token_file)
        if chosen.registry is not None and token is None:
            raise ValueError("--registry needs --token-file")
    except (ValueError, TokenFileRefused) as refused:
        print(f"greenroom run: {refused}", file=sys.stderr)
        return 2
    try:
        return run_program(partial(_run, chosen, variables, timeout_s, token))
    except (HarnessError, RegistrarFailed) as error:
        print(f"greenroom run: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1
    except OutputRefused as refused:
        if refused.reader_left:
            return READER_LEFT
        print(f"greenroom run: {refused}", file=sys.stderr)
        return 1


def _variables(given: Sequence[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise ValueError("--env takes NAME=VALUE, with a name before the equals sign")
        variables[name] = value
    return variables


def _timeout_s(given: float | None) -> float:
    if given is None:
        return math.inf
    if not 0 < given < math.inf:
        raise ValueError(f"--timeout-s must be above 0 seconds, not {given:g}")
    return given


async def _run(chosen: Namespace, variables: Mapping[str, str], timeout_s: float, token: str | None) -> int:
    async with _open(chosen, token) as client:
        if chosen.json:
            return await _run_whole(client, chosen, variables, timeout_s)
        return await _run_streaming(client, chosen, variables, timeout_s)


def _open(chosen: Namespace, token: str | None) -> AbstractAsyncContextManager[Client]:
    if chosen.registry is None or token is None:
        return open_client(chosen.executor, dialer=WebSocketDialer(bearer_token=token))
    # Here, not above: the way to an executor that listens by itself needs none of it.
    from actors.cli._remote import open_remote_client

    return open_remote_client(chosen.registry, chosen.executor, token)


async def _run_whole(client: Client, chosen: Namespace, variables: Mapping[str, str], timeout_s: float) -> int:
    """Collect everything, then print one object: programs want it whole."""
    timed_out = False
    try:
        limit_s = None if timeout_s == math.inf else timeout_s
        done = await client.run(chosen.argv, env=variables, cwd=chosen.cwd, timeout_s=limit_s)
    except CommandTimedOut as late:
        done, timed_out = late.completed, True
    told = json.dumps({**_described(done), "timedOut": timed_out})
    await write_to(sys.stdout, f"{told}\n".encode())
    return TIMED_OUT if timed_out or done.exit_code is None else done.exit_code


def _described(done: CompletedCommand) -> dict[str, object]:
    return {
        "argv": list(done.argv),
        "exitCode": done.exit_code,
        "stdout": done.stdout_text,
        "stderr": done.stderr_text,
        "leftOutBytes": done.left_out_bytes,
    }


async def _run_streaming(client: Client, chosen: Namespace, variables: Mapping[str, str], timeout_s: float) -> int:
    """Pass the bytes on as they come; what cannot be told apart from output goes to the error output."""
    killed = False
    with trio.move_on_after(timeout_s) as limit:
        async with client.processes.start(chosen.argv, env=variables, cwd=chosen.cwd) as process:
            try:
                await _pass_on(process)
                return await process.wait()
            finally:
                if limit.cancel_called:
                    killed = await _kill(process)
    end = "its process group was killed" if killed else "its executor did not confirm the kill"
    print(f"greenroom run: not ended after {timeout_s:g} s; {end}", file=sys.stderr)
    return TIMED_OUT


async def _pass_on(process: Process) -> None:
    async for piece in process.chunks():
        if isinstance(piece, OutputGap):
            print("greenroom run: some output is lost here", file=sys.stderr)
        else:
            await write_to(sys.stderr if piece.stream is Stream.STDERR else sys.stdout, piece.chunk)


async def _kill(process: Process) -> bool:
    """Kill its group and pass on what it wrote until then, within a bound; tell whether the kill was confirmed."""
    killed = False
    with trio.move_on_after(_LAST_WORDS_S, shield=True):
        await process.terminate()
        killed = True
        await _pass_on(process)
    return killed
