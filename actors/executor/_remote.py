"""Serve an executor through a rendezvous, where it is registered: a function fit for a supervised child.

Knows the registry only as what it asks of it, so that this package needs no HTTP.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Protocol

import attrs

from actors.executor._errors import SettingInvalid
from actors.executor._events import Observer
from actors.executor._executor import Executor, open_executor, unobserved
from actors.executor._launching import ProcessLauncher
from actors.executor._limits import Limits
from actors.executor._relay_channel import RelayChannel
from actors.executor._settings import check_callable, check_kind
from actors.noise import Identity, PublicKey
from actors.protocol import EnvironmentInfo
from actors.relay import (
    Dialer,
    DisconnectReason,
    ExecutorRegistration,
    ExecutorStream,
    PhysicalConnection,
    Redial,
    RelayLimits,
    UpkeepEvent,
    Verdict,
    WebSocketDialer,
    keep_executor_connected,
    new_request_id,
)
from actors.relay import serve_executor as serve_streams

__all__ = ["Registrar", "RemoteExecutor", "RemoteStarted", "serve_remote_executor"]


class Registrar(Protocol):
    """What an executor asks of a registry; `actors.rendezvous.RegistryClient` is one.

    Cancelled:
        The registry may have done what it was asked.
    """

    async def register(self, environment_id: str, key: PublicKey, /) -> ExecutorRegistration:
        """Register an executor by its public key.

        Raises:
            RegistrarFailed: It did not work; says whether asking again makes sense.
        """
        ...

    async def verdict(
        self, environment_id: str, registration_id: str, key: PublicKey, authorization: str, /
    ) -> Verdict:
        """Judge a harness by its key and the authorization that it shows."""
        ...


@attrs.frozen(kw_only=True)
class RemoteExecutor:
    """An executor that harnesses can reach through its registry.

    Attributes:
        environment_id: As which environment.
        executor_registration_id: Under which registration, the first one.
        executor: For a look at its statistics, and to serve it over other channels as well.
    """

    environment_id: str
    executor_registration_id: str
    executor: Executor = attrs.field(repr=False, eq=False)


class RemoteStarted(Protocol):
    """What a supervised child says when it can serve."""

    def started(self, value: RemoteExecutor, /) -> None:
        """Say it, with as what."""
        ...


class _Nobody:
    def started(self, value: RemoteExecutor, /) -> None:
        del value


def _unreported(event: UpkeepEvent) -> None:
    del event


async def serve_remote_executor(
    registrar: Registrar,
    environment_id: str,
    identity: Identity,
    *,
    limits: Limits | None = None,
    relay_limits: RelayLimits | None = None,
    dialer: Dialer | None = None,
    redial: Redial | None = None,
    observer: Observer = unobserved,
    report: Callable[[UpkeepEvent], None] = _unreported,
    launcher: ProcessLauncher | None = None,
    information: EnvironmentInfo | None = None,
    variables: Mapping[str, str] | None = None,
    file_roots: Sequence[str | PurePath] | None = None,
    http: bool = False,
    task_status: RemoteStarted | None = None,
) -> None:
    """Register an executor, and serve it through the rendezvous until cancelled.

    Sessions outlive a lost connection: the executor dials again by itself, and harnesses resume them.

    Args:
        registrar: The registry: registers the executor, and judges each harness before its stream is opened.
        environment_id: As which environment to register.
        identity: The executor's own keys; harnesses are told the public one by the registry.
        limits: Bounds of connections, sessions and processes.
        relay_limits: Bounds of the relay connection and its streams.
        dialer: How to reach the rendezvous; when ``None``, a WebSocket whose every handshake bears an `x-request-id`.
        redial: When to dial again after a loss.
        observer: Told who comes, starts and ends.
        report: Told each step of staying connected. Must not wait or raise.
        launcher: What starts processes; the system's own when ``None``.
        information: What is told about this environment; looked up when ``None``.
        variables: What processes may inherit when their client asks for it; a copy of ``os.environ`` when ``None``.
        file_roots: As :func:`open_executor` takes them.
        http: As :func:`open_executor` takes it.
        task_status: Told the :class:`RemoteExecutor` once the rendezvous can bring harnesses.

    Raises:
        SettingInvalid: An argument is of another kind.
        RegistrarFailed: The registry refused, and asking again makes no sense.

    Cancelled:
        The connection is closed, then all processes killed and reaped, each within its limit. The registration stays
        at the registry and goes stale.
    """
    for method in ("register", "verdict"):
        if isinstance(registrar, type) or not callable(getattr(registrar, method, None)):
            given = f"the class {registrar.__name__}" if isinstance(registrar, type) else type(registrar).__name__
            raise SettingInvalid("registrar", f"must be an object with a method {method}(), not {given}")
    check_kind("environment_id", environment_id, str)
    check_kind("identity", identity, Identity)
    check_callable("report", report)
    bounds = relay_limits or RelayLimits()
    async with open_executor(
        launcher=launcher,
        limits=limits,
        observer=observer,
        information=information,
        variables=variables,
        file_roots=file_roots,
        http=http,
    ) as executor:
        remote = _Remote(
            registrar=registrar,
            environment_id=environment_id,
            identity=identity,
            executor=executor,
            bounds=bounds,
            told=task_status or _Nobody(),
        )
        await keep_executor_connected(
            partial(registrar.register, environment_id, identity.public_key),
            remote.serve,
            dialer=dialer or WebSocketDialer(limits=bounds, request_id=new_request_id),
            redial=redial,
            report=report,
        )


@attrs.define(kw_only=True, eq=False)
class _Remote:
    """What one connection after the other is served with."""

    registrar: Registrar
    environment_id: str
    identity: Identity
    executor: Executor
    bounds: RelayLimits
    told: RemoteStarted
    has_told: bool = False

    async def serve(self, connection: PhysicalConnection, registration: ExecutorRegistration) -> DisconnectReason:
        """Serve one physical connection until it ends."""
        self._tell(registration)
        registration_id = registration.executor_registration_id
        return await serve_streams(
            connection,
            self.identity,
            environment_id=registration.environment_id,
            registration_id=registration_id,
            validate=partial(self.registrar.verdict, registration.environment_id, registration_id),
            handler=self._serve_stream,
            limits=self.bounds,
        )

    def _tell(self, registration: ExecutorRegistration) -> None:
        if not self.has_told:
            self.has_told = True
            self.told.started(
                RemoteExecutor(
                    environment_id=registration.environment_id,
                    executor_registration_id=registration.executor_registration_id,
                    executor=self.executor,
                )
            )

    async def _serve_stream(self, stream: ExecutorStream) -> None:
        """Serve one harness; when this returns its stream is reset."""
        channel = RelayChannel(stream, close_s=self.bounds.close_s)
        if self.executor.has_place():
            await self.executor.serve_channel(channel)
        else:
            self.executor.note_refused(channel.peer, "as many connections as allowed are open")
