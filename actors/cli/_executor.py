"""`greenroom executor`: serve one executor in the foreground and say where it is."""

import sys
from argparse import Namespace
from functools import partial

import attrs

from actors.cli._foreground import announce, stay
from actors.cli._memory import give_back, share_one_arena
from actors.cli._output import OutputRefused
from actors.cli._programs import run_program
from actors.cli._tokens import TokenFileRefused, read_token, token_hint
from actors.executor import ExecutorEndpoint, ListenAddressInvalid, ListenRefused, RootUnusable, serve_executor

__all__ = ["executor"]


def executor(chosen: Namespace) -> int:
    """Serve until interrupted; 1 when the address cannot be had, 2 when it may not be had."""
    share_one_arena()
    try:
        token = read_token(chosen.token_file)
        if chosen.registry is not None:
            return _registered(chosen, token)
        serve = partial(
            serve_executor,
            chosen.listen,
            token=token,
            file_roots=chosen.file_root,
            observer=give_back,
            http=chosen.http,
            task_status=_Announcement(chosen.json),
        )
        return run_program(partial(stay, serve, exit_with_parent=chosen.exit_with_parent))
    except (TokenFileRefused, ListenRefused, ListenAddressInvalid, RootUnusable) as refused:
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
        announce({"url": endpoint.url}, endpoint.url, as_json=self.as_json)


def _registered(chosen: Namespace, token: str | None) -> int:
    """Serve through a registry: 1 when it does not want us, 2 when the call makes no sense."""
    if chosen.environment_id is None or token is None:
        print("greenroom executor: --registry needs --environment-id and --token-file", file=sys.stderr)
        return 2
    # Here, not above: an executor that listens by itself needs none of it.
    from actors.cli._remote import serve_registered
    from actors.noise import NoiseError
    from actors.relay import RegistrarFailed
    from actors.rendezvous import RegistryConfigInvalid

    try:
        return serve_registered(chosen, token)
    except (RegistrarFailed, NoiseError) as refused:
        print(f"greenroom executor: {refused}{token_hint(refused, chosen.token_file)}", file=sys.stderr)
        return 2 if isinstance(refused, RegistryConfigInvalid) else 1
