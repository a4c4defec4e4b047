"""`greenroom executor`: serve one executor in the foreground and say where it is."""

import sys
from argparse import Namespace
from functools import partial

import attrs

from actors.cli._arguments import LISTEN_DEFAULT
from actors.cli._foreground import announce, stay
from actors.cli._memory import give_back, share_one_arena
from actors.cli._output import OutputRefused
from actors.cli._programs import cannot_listen, run_program
from actors.cli._tokens import TokenFileRefused, read_token, token_hint
from actors.executor import ExecutorEndpoint, ListenAddressInvalid, ListenRefused, RootUnusable, serve_executor

__all__ = ["executor"]


def executor(chosen: Namespace) -> int:
    """Serve until interrupted; 1 when the address cannot be had, 2 when it may not be had."""
    if (senseless := _senseless(chosen)) is not None:
        print(f"greenroom executor: {senseless}", file=sys.stderr)
        return 2
    share_one_arena()
    listen = chosen.listen or LISTEN_DEFAULT
    try:
        token = read_token(chosen.token_file)
        if chosen.registry is not None:
            return _registered(chosen, str(token))
        serve = partial(
            serve_executor,
            listen,
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
        print(f"greenroom executor: {cannot_listen(listen, error)}", file=sys.stderr)
        return 1


@attrs.frozen
class _Announcement:
    """Says where the executor is, once it can be reached there."""

    as_json: bool

    def started(self, endpoint: ExecutorEndpoint, /) -> None:
        announce({"url": endpoint.url}, endpoint.url, as_json=self.as_json)


def _senseless(chosen: Namespace) -> str | None:
    """What makes no sense together."""
    is_registered = chosen.registry is not None
    if is_registered and (chosen.environment_id is None or chosen.token_file is None):
        return "--registry needs --environment-id and --token-file"
    if is_registered and chosen.listen is not None:
        return "--listen and --registry exclude each other: what is registered does not listen, it dials"
    for option, given in (("--environment-id", chosen.environment_id), ("--identity-file", chosen.identity_file)):
        if given is not None and not is_registered:
            return f"{option} needs --registry: an executor that listens is registered nowhere"
    return None


def _registered(chosen: Namespace, token: str) -> int:
    """Serve through a registry: 1 when it does not want us, 2 when its address cannot be one."""
    # Here, not above: an executor that listens by itself needs none of it.
    from actors.cli._remote import serve_registered
    from actors.noise import NoiseError
    from actors.relay import RegistrarFailed
    from actors.rendezvous import RegistryConfigInvalid

    try:
        return serve_registered(chosen, token)
    except OSError as error:
        print(f"greenroom executor: --identity-file {chosen.identity_file!r}: {error.strerror}", file=sys.stderr)
        return 1
    except (RegistrarFailed, NoiseError) as refused:
        print(f"greenroom executor: {refused}{token_hint(refused, chosen.token_file)}", file=sys.stderr)
        return 2 if isinstance(refused, RegistryConfigInvalid) else 1
