"""`greenroom serve`: a registry and rendezvous in the foreground."""

import sys
from argparse import Namespace
from functools import partial
from urllib.parse import urlsplit

import trio

from actors.cli._foreground import announce, stay
from actors.cli._output import OutputRefused
from actors.cli._programs import run_program
from actors.cli._tokens import TokenFileRefused, read_token
from actors.rendezvous import Grant, open_rendezvous

__all__ = ["serve"]


def serve(chosen: Namespace) -> int:
    """Serve until interrupted; 1 when the address cannot be had, 2 when the call makes no sense."""
    try:
        host, port = _address(chosen.listen)
        grants = [_grant(chosen.token_file)]
    except (TokenFileRefused, ValueError) as refused:
        print(f"greenroom serve: {refused}", file=sys.stderr)
        return 2
    try:
        run = partial(_serve, grants, host, port, as_json=chosen.json)
        return run_program(partial(stay, run, exit_with_parent=chosen.exit_with_parent))
    except OutputRefused as refused:
        print(f"greenroom serve: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"greenroom serve: cannot listen on {chosen.listen}: {error}", file=sys.stderr)
        return 1


def _address(listen: str) -> tuple[str, int]:
    wrong = ValueError("--listen takes http://HOST:PORT")
    try:
        parts = urlsplit(listen)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme != "http" or not host or port is None or parts.path not in {"", "/"} or parts.query:
        raise wrong
    return host, port


def _grant(token_file: str) -> Grant:
    token = read_token(token_file)
    assert token is not None, "the command line asks for the file"
    return Grant(token=token, name="token-file")


async def _serve(grants: list[Grant], host: str, port: int, *, as_json: bool) -> None:
    async with open_rendezvous(grants, host=host, port=port) as rendezvous:
        announce({"url": rendezvous.url}, rendezvous.url, as_json=as_json)
        await trio.sleep_forever()
