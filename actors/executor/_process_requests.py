"""Answer `process/start`, `process/read`, `process/write`, `process/signal` and `process/terminate`."""

from collections.abc import Callable, Mapping
from functools import partial

from actors.executor._errors import SettingInvalid, SpawnFailed
from actors.executor._file_tree import FileTree
from actors.executor._launching import LaunchSpec, Terminal
from actors.executor._process import HostedProcess
from actors.executor._refusals import RequestRefused
from actors.executor._requests import LATER, Call, Handlers
from actors.executor._routes import LeftRoots
from actors.executor._sessions import Session
from actors.executor._stdin import Offer
from actors.executor._variables import Variables, build_variables
from actors.protocol import (
    PROCESS_READ,
    PROCESS_SIGNAL,
    PROCESS_START,
    PROCESS_TERMINATE,
    PROCESS_WRITE,
    Empty,
    Failure,
    PathUriRefused,
    ReadParams,
    ReadResult,
    SignalParams,
    StartParams,
    StartResult,
    TerminateParams,
    TerminateResult,
    WriteParams,
    WriteResult,
    WriteStatus,
    argv_empty,
    cwd_foreign,
    internal,
    invalid_params,
    invalid_request,
    outside_roots,
    path_from_uri,
    stdin_write_failed,
    unknown_process,
    write_id_empty,
)

__all__ = ["ProcessRequests"]

# Longer than anybody waits, short enough for every clock.
_WAIT_S_MAX = 24 * 3600.0


class ProcessRequests:
    """The handlers of the `process/` methods."""

    def __init__(self, *, variables: Mapping[str, str], platform: str, tree: FileTree) -> None:
        self._variables, self._platform, self._tree = variables, platform, tree

    def handlers(self) -> Handlers:
        """Give them by method name."""
        return {
            PROCESS_START.name: self.start,
            PROCESS_READ.name: _once_launched(self.read),
            PROCESS_WRITE.name: _once_launched(self.write),
            PROCESS_SIGNAL.name: _once_launched(self.signal),
            PROCESS_TERMINATE.name: _once_launched(self.terminate),
        }

    def start(self, params: StartParams, call: Call, session: Session) -> object:
        """Start a process; answered when it runs or could not be started."""
        spec, variables = self._spec_of(params)
        answered = call.owes_answer()

        def started(failure: SpawnFailed | None) -> None:
            answered()
            if failure is None:
                call.answer(StartResult(process_id=params.process_id))
            else:
                call.refuse(_spawn_failure(failure))

        try:
            session.start(params.process_id, spec, variables, started)
        except RequestRefused:
            answered()
            raise
        return LATER

    def _spec_of(self, params: StartParams) -> tuple[LaunchSpec, Variables]:
        if not params.argv:
            raise RequestRefused(argv_empty())
        _refuse_what_we_cannot_give(params)
        variables = build_variables(params.env, params.env_policy, executor=self._variables)
        try:
            spec = LaunchSpec(
                argv=params.argv,
                cwd=self._cwd_of(params.cwd),
                variables=variables.values,
                arg0=params.arg0,
                pipe_stdin=params.pipe_stdin or params.tty,
                terminal=_terminal_of(params) if params.tty else None,
            )
        except SpawnFailed as failure:
            raise RequestRefused(_spawn_failure(failure)) from None
        return spec, variables

    def _cwd_of(self, uri: str) -> str:
        try:
            path = path_from_uri(uri, platform=self._platform)
        except PathUriRefused as fault:
            failure = cwd_foreign(uri, self._platform) if fault.foreign else invalid_params(fault.rule)
            raise RequestRefused(failure) from None
        try:
            # By the letter; where its links lead is the launcher's to see, at the moment of the start.
            self._tree.check(path)
        except LeftRoots:
            raise RequestRefused(outside_roots(path)) from None
        return path

    def read(self, params: ReadParams, call: Call, session: Session) -> object:
        """Give what was kept, or wait for more."""
        process = session.process(params.process_id)
        if process is None:
            raise RequestRefused(unknown_process(params.process_id))
        if not params.wait_ms or process.log.has_news(params.after_seq):
            return process.log.read(params.after_seq, params.max_bytes)
        return call.wait(partial(_read_later, process, params, call))

    def write(self, params: WriteParams, call: Call, session: Session) -> object:
        """Queue bytes for standard input; answered when they are queued."""
        if not params.write_id:
            raise RequestRefused(write_id_empty())
        process = session.process(params.process_id)
        if process is None:
            return WriteResult(status=WriteStatus.UNKNOWN_PROCESS)
        if process.stdin is None:
            return WriteResult(status=WriteStatus.STDIN_CLOSED)
        answered = call.owes_answer()

        def settle(offer: Offer) -> None:
            answered()
            try:
                call.answer(_write_result(offer))
            except RequestRefused as refusal:
                call.refuse(refusal.failure)

        offer = process.stdin.offer(params.write_id, params.chunk, eof=params.eof, later=settle)
        if offer is Offer.WAITING:
            return LATER
        answered()
        return _write_result(offer)

    def signal(self, params: SignalParams, call: Call, session: Session) -> object:
        """Interrupt a group; no effect on what is unknown or exited."""
        del call
        process = session.process(params.process_id)
        if process is not None:
            process.interrupt()
        return Empty()

    def terminate(self, params: TerminateParams, call: Call, session: Session) -> object:
        """Kill a group, at once or after a grace."""
        del call
        process = session.process(params.process_id)
        grace_s = min(params.grace_ms / 1000, _WAIT_S_MAX) if params.grace_ms else None
        return TerminateResult(running=process is not None and process.terminate(grace_s=grace_s))


def _once_launched(handler: Callable[..., object]) -> Callable[..., object]:
    """Hold a request back while the process it names is being started: its client may send both in one breath."""

    def handle(
        params: ReadParams | WriteParams | SignalParams | TerminateParams, call: Call, session: Session
    ) -> object:
        process = session.process(params.process_id)
        if process is None or process.launched.is_set():
            return handler(params, call, session)

        async def later() -> object:
            await process.launched.wait()
            return handler(params, call, session)

        return call.wait(later)

    return handle


async def _read_later(process: HostedProcess, params: ReadParams, call: Call) -> ReadResult:
    await process.wait_news(params.after_seq, wait_s=min((params.wait_ms or 0) / 1000, _WAIT_S_MAX))
    # One byte of output can answer a thousand reads with a megabyte each.
    await call.wait_room()
    return process.log.read(params.after_seq, params.max_bytes)


def _write_result(offer: Offer) -> WriteResult:
    match offer:
        case Offer.ACCEPTED | Offer.WAITING:
            return WriteResult(status=WriteStatus.ACCEPTED)
        case Offer.ENDED:
            return WriteResult(status=WriteStatus.STDIN_CLOSED)
        case Offer.BROKEN:
            raise RequestRefused(stdin_write_failed())
        case Offer.FULL:
            raise RequestRefused(internal("process stdin is full: it does not read, and too many writes wait"))


def _terminal_of(params: StartParams) -> Terminal:
    size = Terminal()
    try:
        return Terminal(rows=params.rows or size.rows, columns=params.cols or size.columns)
    except SettingInvalid:
        raise RequestRefused(invalid_params("invalid number")) from None


def _refuse_what_we_cannot_give(params: StartParams) -> None:
    """Refuse protections we do not have: a process that is less confined than was asked for must not run."""
    asked = {
        "sandbox": params.sandbox is not None and params.sandbox.confines,
        "enforceManagedNetwork": params.enforce_managed_network,
        "managedNetwork": params.managed_network is not None,
        "networkProxy": params.network_proxy is not None,
        "shellSnapshot": params.shell_snapshot is not None,
    }
    for name, wanted in asked.items():
        if wanted:
            raise RequestRefused(invalid_request(f"this executor does not offer `{name}`"))


def _spawn_failure(failure: SpawnFailed) -> Failure:
    data = {"kind": failure.kind.value} | ({"path": failure.path} if failure.path is not None else {})
    return internal(str(failure), data)
