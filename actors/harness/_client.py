"""What a user of one executor holds."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final, Never, final

from actors.harness._arguments import check_count, check_kind, check_names, check_seconds, check_text
from actors.harness._client_values import ClientStatistics
from actors.harness._command import OUTPUT_BYTES_MAX, CompletedCommand, run_command
from actors.harness._connection import ConnectionStatistics
from actors.harness._core import Core
from actors.harness._errors import InvalidArgument, SessionRetired
from actors.harness._files import FilePath, Files, path_uri
from actors.harness._http import Http
from actors.harness._processes import Processes
from actors.protocol import (
    CAPABILITY_ROOTS_DISCOVER,
    ENVIRONMENT_INFO,
    ENVIRONMENT_STATUS,
    DiscoveredRoot,
    DiscoverRootsParams,
    EnvironmentInfo,
    EnvironmentPolicy,
    EnvironmentStatus,
    Nothing,
    RootToDiscover,
)

_OPTIONS: Final = ("env", "cwd", "stdin", "tty", "env_policy", "timeout_s", "check", "output_bytes_max")


@final
class Client:
    """One session with one executor, over connections that come and go. Handed out by `run_harness`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.processes: Processes = Processes(core)
        """Start processes here."""
        self.files: Files = Files(core)
        """Reach files here."""
        self.http: Http = Http(core)
        """Make HTTP requests from there."""

    def __repr__(self) -> str:
        state = "connected" if self.connected else "recovering" if self._core.failure is None else "ended"
        return f"<Client of session {self.session_id} ({state})>"

    @property
    def session_id(self) -> str:
        """What the session is resumed by."""
        return self._core.session_id or ""

    @property
    def connected(self) -> bool:
        """There is a working connection at this moment."""
        return self._core.connection is not None and self._core.connection.lost is None

    @property
    def environment_info(self) -> EnvironmentInfo | None:
        """What the executor said of itself when the connection was made, without asking again."""
        return self._core.info

    def statistics(self) -> ClientStatistics:
        """Give a snapshot of what was counted over all connections."""
        return self._core.statistics()

    def connection_statistics(self) -> ConnectionStatistics | None:
        """Give a snapshot of the present connection; None without one."""
        return self._core.connection.statistics() if self._core.connection else None

    def retire(self, reason: str) -> None:
        """Give the session up, in this breath: every call, wait and process of it fails with the reason.

        The connection is closed, and the session is not resumed; its executor ends it once it is tired of waiting.
        """
        check_text("reason", reason)
        self._core.retire(SessionRetired(reason))

    async def status(self) -> EnvironmentStatus:
        """Ask whether the executor answers.

        Raises:
            HarnessError: It does not, within 10 s.

        Cancelled:
            Only the wait ends.
        """
        return await self._core.call(ENVIRONMENT_STATUS, Nothing(), timeout_s=self._core.limits.status_s, repeat=True)

    async def info(self) -> EnvironmentInfo:
        """Ask what the environment is.

        Raises:
            HarnessError: No answer within 30 s.

        Cancelled:
            Only the wait ends.
        """
        info = await self._core.call(ENVIRONMENT_INFO, Nothing(), timeout_s=self._core.limits.info_s, repeat=True)
        self._core.info = info
        return info

    async def discover_roots(self, roots: Mapping[str, FilePath]) -> tuple[DiscoveredRoot, ...]:
        """Find the skills and plugins in folders of the environment, and give their files as they are.

        What is wrong with one root is its ``error``; what could not be told of it, its ``warnings``.

        Args:
            roots: Folders, by the name each comes back with; at most 128.

        Raises:
            RequestRejected: There are too many, or this executor does not look into roots.

        Cancelled:
            Only the wait ends.
        """
        check_kind("roots", roots, Mapping)
        for name in roots:
            check_text("roots", name)
        asked = tuple(RootToDiscover(id=name, path=path_uri(path)) for name, path in roots.items())
        params = DiscoverRootsParams(roots=asked)
        return (await self._core.call(CAPABILITY_ROOTS_DISCOVER, params, repeat=True)).roots

    async def run(
        self,
        argv: Sequence[str | PurePath],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PurePath | None = None,
        stdin: bytes | None = None,
        tty: bool = False,
        env_policy: EnvironmentPolicy | None = None,
        timeout_s: float | None = None,
        check: bool = False,
        output_bytes_max: int = OUTPUT_BYTES_MAX,
        **unknown: Never,
    ) -> CompletedCommand:
        """Run a command to its end and give its output and exit code.

        Args:
            argv: Program and arguments.
            env: The whole environment; nothing is inherited unless ``env_policy`` asks for it.
            cwd: An absolute path, or a `file:` URI; the executor's own folder when left out.
            stdin: Bytes for standard input, which is closed after them; at its end from the start when left out.
            tty: Run on a terminal; all output is ``stdout``.
            env_policy: Begin with the executor's variables.
            timeout_s: Kill the command's process group after this time, starting included.
            check: Raise when the exit code is not 0.
            output_bytes_max: Keep this much output; the rest is counted in ``left_out_bytes``.
            unknown: Anything else is refused, with the name that may be meant.

        Raises:
            InvalidArgument: An argument breaks a rule.
            CommandTimedOut: Holds what was written until then.
            CommandFailed: With ``check``, and the exit code is not 0.
            DidNotRun: It was not started, for certain.
            MayHaveRun: The connection was lost for good.
            RequestRejected: The executor could not start it.

        Cancelled:
            The executor is told to kill the process group.
        """
        check_names("run", unknown, _OPTIONS)
        if timeout_s is not None:
            check_seconds("timeout_s", timeout_s)
        if stdin is not None:
            check_kind("stdin", stdin, bytes)
        check_kind("check", check, bool)
        check_count("output_bytes_max", output_bytes_max, low=0)
        if stdin is not None and not tty and not self._can_close_stdin:
            raise InvalidArgument("stdin", "this executor cannot close standard input; start a process and write to it")
        starting = self.processes.start(
            argv, env=env, cwd=cwd, pipe_stdin=stdin is not None and not tty, tty=tty, env_policy=env_policy
        )
        return await run_command(
            starting,
            tuple(map(str, argv)),
            stdin=stdin,
            timeout_s=timeout_s,
            drain_s=self._core.limits.cleanup_s,
            check=check,
            output_bytes_max=output_bytes_max,
        )

    async def wait_clean(self) -> None:
        """Wait until the executor knows of every process that nobody wants any more; ends with the client.

        Cancelled:
            Only the wait ends: the executor is still told, as long as the client lives.
        """
        await self._core.wait_chores()

    @property
    def _can_close_stdin(self) -> bool:
        return self._core.info is not None and self._core.info.capabilities.process_stdin_eof
