"""What users hold of an environment: wait for it, look at it, run things in it."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import PurePath
from typing import Unpack, final

import trio

from actors import ActorsError
from actors.blocks import block
from actors.environments._body import Body
from actors.environments._connection import ConnectionState, Phase
from actors.environments._connection_events import StartAsked
from actors.environments._demands import must_be_options
from actors.environments._environment_files import EnvironmentFiles
from actors.environments._environment_http import EnvironmentHttp
from actors.environments._gate import Gate
from actors.environments._given import Handle
from actors.environments._lifecycle import Kind
from actors.environments._options import RunOptions, StartOptions
from actors.environments._outcomes import known_status, said_by
from actors.environments._ready_info import ReadyInfo, SelectedCapabilityRoot
from actors.environments._refresh import ask_status, refresh
from actors.environments._seams import Client
from actors.environments._status import EnvironmentStatus, StatusDisconnected, StatusReady
from actors.environments._watch import Watch
from actors.environments._why import Why, explain
from actors.harness import CompletedCommand, Process
from actors.protocol import CAPABILITY_ROOTS_MAX, DiscoveredRoot, EnvironmentInfo


@final
class Environment(Handle):
    """One generation of one environment. Whoever holds it keeps it alive, also after its id went to another one."""

    __slots__ = ("__weakref__", "_body")

    def __init__(self, body: Body) -> None:
        self._body = body

    def __repr__(self) -> str:
        life = self._body.life
        about = f"{life.environment_id!r} generation {life.generation}"
        return f"<Environment {about}, gate {life.gate.value}, connection {life.shown_phase.value}>"

    @property
    def environment_id(self) -> str:
        """The id it was registered under."""
        return self._body.life.environment_id

    @property
    def generation(self) -> int:
        """Which of those that bore the id; the first is 1."""
        return self._body.life.generation

    @property
    def is_remote(self) -> bool:
        """Whether it is reached over a link; only the environment on this machine is not."""
        return self._body.life.kind is not Kind.LOCAL

    @property
    def gate(self) -> Gate:
        """Whether it has been provisioned; one that needs no provisioning is ready from the start."""
        return self._body.life.gate

    @property
    def superseded(self) -> bool:
        """Whether its id belongs to a newer generation by now."""
        return self._body.life.superseded_by is not None

    @property
    def selected_capability_roots(self) -> tuple[SelectedCapabilityRoot, ...]:
        """The roots that were told last; none before anybody told any."""
        return self._body.life.provisioning.info.selected_capability_roots

    @property
    def last_ready_info(self) -> ReadyInfo | None:
        """The last information that came with a report of readiness; absent differs from empty."""
        return self._body.life.provisioning.accepted

    @property
    def startup_finished(self) -> bool:
        """Whether its first connecting is over, well or badly."""
        return not self.is_remote or self._body.life.connection.is_settled

    def why(self) -> Why:
        """Say why it is what it is: a chain of reasons that ends in a cause, and what to do."""
        body = self._body
        return explain(body.life, body.now_s("why"), body.tries, lost=body.nobody_completes)

    def start_connecting(self) -> None:
        """Begin connecting in the background, if that was never done; nobody is waited for."""
        now_s = self._body.now_s("start_connecting")
        if self.is_remote and self._body.final is None:
            self._body.step(StartAsked(now_s), now_s)

    def subscribe_connection_state(self) -> Watch[ConnectionState] | None:
        """Watch whether it is connected; the environment on this machine has no connection to watch."""
        return Watch[ConnectionState].give(self._body.source_of_watches()) if self.is_remote else None

    async def wait_until_ready(self) -> None:
        """Join the one attempt to start it, and wait for how that ends.

        After it has been ready once this returns at once, also while the link is lost: `status` tells the present.

        Raises:
            EnvironmentUnavailable: Its gate failed or was abandoned.
            ConnectFailed: The attempt failed; what was raised is the cause.
            EnvironmentClosed: It was closed.

        Cancelled:
            Only this wait ends; the attempt goes on for the others.
        """
        if not self.is_remote:
            await self._wait_local()
            return
        await self._body.wait_started()

    async def _wait_local(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._body.final is not None:
            await self._body.use("wait_until_ready")

    async def status(self) -> EnvironmentStatus:
        """Ask an open link whether it answers, within 10 s; without one, say what is known. Starts nothing.

        Cancelled:
            Nothing is left behind.
        """
        body, life = self._body, self._body.life
        await trio.lowlevel.checkpoint()
        if life.kind is Kind.LOCAL and not life.is_closed:
            return StatusReady()
        if life.connection.phase is Phase.CONNECTED and body.client is not None:
            return await _ask_status(body.client)
        return known_status(life)

    async def refresh_connection(self) -> None:
        """Turn to the executor that the registry names now, after a planned replacement under the same id.

        The provider is asked once, within 10 s. When it names whom the link leads to already, by key and registration,
        the session is kept, also one that is just recovering. Otherwise the session is retired: its work and its
        processes fail with "exec-server executor was replaced", nothing is done again, and one attempt begins with
        the bundle just fetched. An attempt under way to anybody else ends with "connection attempt was superseded".
        Returns once the executor has answered `environment/status`. While the gate is pending nobody is asked: the
        attempt that begins when it opens will do.

        Raises:
            ProtocolError: It is this machine, or its provider knows no registry.
            ConnectFailed: The look-up failed, and the session is as it was; or the attempt failed or was superseded.
            EnvironmentUnavailable: Its gate failed or was abandoned.
            EnvironmentClosed: It was closed.
            MailboxFull: More refreshes wait for a link that ends slowly than there is room for. This one did nothing.
            ActorsError: The executor did not answer.

        Cancelled:
            During the look-up nothing has changed; afterwards the attempt goes on for the others.
        """
        backstage = self._body.backstage
        backstage.enter_operation()
        try:
            await refresh(self._body)
        finally:
            backstage.leave_operation()

    async def info(self) -> EnvironmentInfo:
        """Get what the executor says about itself, connecting if need be.

        Raises:
            ActorsError: As `wait_until_ready`, or what the link says.

        Cancelled:
            Only this wait ends.
        """
        async with self.operation("info") as client:
            return await client.info()

    async def run(self, argv: Sequence[str | PurePath], **options: Unpack[RunOptions]) -> CompletedCommand:
        """Run a command to its end, connecting if need be, and give its output and exit code.

        Args:
            argv: Program and arguments.
            options: env=None, cwd=None, stdin=None, tty=False, env_policy=None, timeout_s=None, check=False,
                output_bytes_max=64 MiB: see `RunOptions`. The environment of the command is empty unless you give one.

        Raises:
            InvalidOption: There is no such option.
            ActorsError: As `wait_until_ready`, or what the harness says: that it did not run, may have run, or failed.

        Cancelled:
            The command's process group is killed.
        """
        must_be_options("run", options, RunOptions)
        async with self.operation("run") as client:
            return await client.run(argv, **options)

    async def discover_capabilities(self) -> tuple[DiscoveredRoot, ...]:
        """Find the skills and plugins in the selected capability roots, in their order.

        What is wrong with one root is its ``error``; what could not be told of it, its ``warnings``.

        Raises:
            ActorsError: As `wait_until_ready`, or what the harness says.

        Cancelled:
            Only the wait ends.
        """
        roots = [(root.id, root.path) for root in self.selected_capability_roots]
        found: list[DiscoveredRoot] = []
        async with self.operation("discover_capabilities") as client:
            for start in range(0, len(roots), CAPABILITY_ROOTS_MAX):
                found += await client.discover_roots(dict(roots[start : start + CAPABILITY_ROOTS_MAX]))
        return tuple(found)

    @property
    def processes(self) -> "EnvironmentProcesses":
        """Start processes that live as long as a block."""
        return EnvironmentProcesses.give(self)

    @property
    def files(self) -> EnvironmentFiles:
        """Reach files."""
        return EnvironmentFiles.give(self)

    @property
    def http(self) -> EnvironmentHttp:
        """Make HTTP requests from there."""
        return EnvironmentHttp.give(self)

    async def aclose(self) -> None:
        """End it for everybody who holds it: waits end with `EnvironmentClosed`, the link is closed. Twice is quiet.

        Cancelled:
            It is closed all the same.
        """
        self._body.close("aclose() was called", self._body.now_s("aclose"))
        await self._body.wait_stopped()

    @contextlib.asynccontextmanager
    async def operation(self, name: str) -> AsyncGenerator[Client, None]:
        """Have an open link for a block, connecting if need be; draining the manager waits for the block.

        Raises:
            ActorsError: As `wait_until_ready`.

        Cancelled:
            While connecting only the wait ends: the attempt goes on for the others.
        """
        backstage = self._body.backstage
        backstage.enter_operation()
        try:
            yield await self._body.use(name)
        finally:
            backstage.leave_operation()

    def __del__(self) -> None:
        # While the id leads here the manager holds this handle, so this is one that was superseded or removed.
        body = self._body
        body.released = True
        if body.final is None:
            body.backstage.post(body.release)


@final
class EnvironmentProcesses(Handle):
    """Processes of one environment, which it keeps alive."""

    __slots__ = ("_environment",)

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    @block
    async def start(
        self, argv: Sequence[str | PurePath], **options: Unpack[StartOptions]
    ) -> AsyncGenerator[Process, None]:
        """Start a process for as long as the block lasts, connecting if need be: ``async with ... as process``.

        Args:
            argv: Program and arguments.
            options: env=None, cwd=None, pipe_stdin=False, tty=False, arg0=None, env_policy=None, process_id=None,
                metadata=None: see `StartOptions`. The environment of the process is empty unless you give one.

        Raises:
            InvalidOption: There is no such option.
            ActorsError: As `Environment.wait_until_ready`, or what the harness says.

        Cancelled:
            The process group is killed if it has not ended.
        """
        must_be_options("start", options, StartOptions)
        async with (
            self._environment.operation("processes.start") as client,
            client.processes.start(argv, **options) as process,
        ):
            yield process


async def _ask_status(client: Client) -> EnvironmentStatus:
    try:
        await ask_status(client)
        return StatusReady()
    except ActorsError as error:
        return StatusDisconnected(said_by(error))


def body_of(environment: Environment) -> Body:
    """What stands behind a handle; for the manager alone."""
    return environment._body  # pyright: ignore[reportPrivateUsage]  # The manager's end of the handle.
