"""The two commands over a registry: an executor that registers itself, and the way to it."""

import sys
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import attrs

from actors.cli._foreground import announce, stay
from actors.cli._memory import give_back
from actors.cli._programs import run_program
from actors.executor import RemoteExecutor, serve_remote_executor
from actors.harness import RELAY_RECOVERY, Client, RelayDialer, open_client
from actors.noise import Identity, load_or_generate_identity
from actors.relay import UpkeepEvent
from actors.rendezvous import bearer, open_registry_client

__all__ = ["open_remote_client", "serve_registered"]

_WORTH_TELLING_S = 1.0


def serve_registered(chosen: Namespace, token: str) -> int:
    """Register an executor and serve it until interrupted.

    Raises:
        RegistrarFailed: The registry does not want it.
        NoiseError: The identity file cannot be used.
    """
    path = chosen.identity_file
    identity = Identity.generate() if path is None else load_or_generate_identity(path)
    serve = partial(_serve, chosen, token, identity)
    return run_program(partial(stay, serve, exit_with_parent=chosen.exit_with_parent))


async def _serve(chosen: Namespace, token: str, identity: Identity) -> None:
    async with open_registry_client(chosen.registry, bearer(token)) as registry:
        await serve_remote_executor(
            registry,
            chosen.environment_id,
            identity,
            file_roots=chosen.file_root,
            observer=give_back,
            http=chosen.http,
            report=_Teller(chosen.environment_id),
            task_status=_Announcement(chosen.json),
        )


class _Teller:
    """Tells what keeps the executor from being reached, and that it is over; what is tried again quickly, once."""

    def __init__(self, environment_id: str) -> None:
        self._who = f"greenroom executor {environment_id}"
        self._last = ""

    def __call__(self, event: UpkeepEvent) -> None:
        if event.retry_in_s is None:
            if event.what == "connected":
                self._recovered()
            return
        trouble = f"{event.what}: {event.why}"
        if trouble != self._last or event.retry_in_s >= _WORTH_TELLING_S:
            when = f"next try in {event.retry_in_s:.1f} s" if event.retry_in_s >= 0.05 else "next try at once"
            print(f"{self._who}: {trouble}; {when}", file=sys.stderr)
        self._last = trouble

    def _recovered(self) -> None:
        if self._last:
            print(f"{self._who}: connected again", file=sys.stderr)
        self._last = ""


@attrs.frozen
class _Announcement:
    """Says as which environment the executor is registered, once harnesses can be brought to it."""

    as_json: bool

    def started(self, value: RemoteExecutor, /) -> None:
        facts = {"environmentId": value.environment_id, "executorRegistrationId": value.executor_registration_id}
        announce(facts, value.environment_id, as_json=self.as_json)


@asynccontextmanager
async def open_remote_client(registry_url: str, environment_id: str, token: str) -> AsyncGenerator[Client, None]:
    """Connect to a registered executor for as long as the context lasts, with keys made for this once.

    Raises:
        RegistrarFailed: The registry cannot be one.
        HarnessError: There is no way to the executor.
    """
    identity = Identity.generate()
    async with open_registry_client(registry_url, bearer(token)) as registry:
        dialer = RelayDialer(partial(registry.connect, environment_id, identity.public_key), identity)
        async with open_client(environment_id, dialer=dialer, recovery=RELAY_RECOVERY) as client:
            yield client
