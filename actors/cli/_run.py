"""`greenroom run`: run one command in an executor and end as it ended."""

import json
import math
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial

import trio

from actors.cli._programs import run_program
from actors.cli._tokens import TokenFileRefused, read_token
from actors.harness import (
    Client,
    CommandTimedOut,
    CompletedCommand,
    HarnessError,
    InvalidArgument,
    WebSocketDialer,
    open_client,
)
from actors.protocol import OutputGap, Stream

__all__ = ["run"]

TIMED_OUT = 124
"""As coreutils' `timeout` says it."""


def run(chosen: Namespace) -> int:
    """Run the command; the exit code is the command's own, or 1 when it could not be run or its end is unknown."""
    try:
        variables = _variables(chosen.env)
        timeout_s = _timeout_s(chosen.timeout_s)
        token = read_token(chosen.token_file)
    except (ValueError, TokenFileRefused) as refused:
        print(f"greenroom run: {refused}", file=sys.stderr)
        return 2
    try:
        return run_program(partial(_run, chosen, variables, timeout_s, token))
    except HarnessError as error:
        print(f"greenroom run: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1


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
    async with open_client(chosen.executor, dialer=WebSocketDialer(bearer_token=token)) as client:
        if chosen.json:
            return await _run_whole(client, chosen, variables, timeout_s)
        return await _run_streaming(client, chosen, variables, timeout_s)


async def _run_whole(client: Client, chosen: Namespace, variables: Mapping[str, str], timeout_s: float) -> int:
    """Collect everything, then print one object: programs want it whole."""
    timed_out = False
    try:
        limit_s = None if timeout_s == math.inf else timeout_s
        done = await client.run(chosen.argv, env=variables, cwd=chosen.cwd, timeout_s=limit_s)
    except CommandTimedOut as late:
        done, timed_out = late.completed, True
    print(json.dumps({**_described(done), "timedOut": timed_out}))
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
    with trio.move_on_after(timeout_s):
        async with client.processes.start(chosen.argv, env=variables, cwd=chosen.cwd) as process:
            async for piece in process.chunks():
                if isinstance(piece, OutputGap):
                    print("greenroom run: some output is lost here", file=sys.stderr)
                else:
                    _pass_on(piece.stream, piece.chunk)
            return await process.wait()
    print(f"greenroom run: not ended after {timeout_s:g} s; its process group was killed", file=sys.stderr)
    return TIMED_OUT


def _pass_on(stream: Stream, data: bytes) -> None:
    output = sys.stderr.buffer if stream is Stream.STDERR else sys.stdout.buffer
    output.write(data)
    output.flush()
