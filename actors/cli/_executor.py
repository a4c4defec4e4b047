"""`greenroom executor`: serve one executor in the foreground and say where it is."""

import json
import os
import sys
from argparse import Namespace
from functools import partial

import attrs
import trio

from actors.cli._output import OutputRefused
from actors.cli._programs import run_program
from actors.cli._tokens import TokenFileRefused, read_token
from actors.executor import ExecutorEndpoint, ListenAddressInvalid, ListenRefused, serve_executor

__all__ = ["executor"]


def executor(chosen: Namespace) -> int:
    """Serve until interrupted; 1 when the address cannot be had, 2 when it may not be had."""
    try:
        token = read_token(chosen.token_file)
        return run_program(partial(_serve, chosen, token))
    except (TokenFileRefused, ListenRefused, ListenAddressInvalid) as refused:
        print(f"greenroom executor: {refused}", file=sys.stderr)
        return 2
    except OutputRefused as refused:
        print(f"greenroom executor: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"greenroom executor: cannot listen on {chosen.listen}: {error}", file=sys.stderr)
        return 1


@attrs.frozen
class _Announcement:
    """Says where the executor is, once it can be reached there."""

    as_json: bool

    def started(self, endpoint: ExecutorEndpoint, /) -> None:
        try:
            print(json.dumps({"url": endpoint.url, "pid": os.getpid()}) if self.as_json else endpoint.url, flush=True)
        except OSError as error:
            raise OutputRefused(str(error.strerror), reader_left=isinstance(error, BrokenPipeError)) from error


async def _serve(chosen: Namespace, token: str | None) -> int:
    serve = partial(serve_executor, chosen.listen, token=token, task_status=_Announcement(chosen.json))
    if not chosen.exit_with_parent:
        await serve()
        return 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await _wait_until_stdin_ends()
        nursery.cancel_scope.cancel()
    return 0


async def _wait_until_stdin_ends() -> None:
    """Whoever started us holds the other end; the system closes it with them, however they go."""
    if sys.stdin is None:  # Python's way to say that it was closed before we began.
        return
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stdin:
        while await stdin.receive_some(4096):
            pass
