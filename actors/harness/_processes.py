"""Starting processes, and never leaving one behind that nobody wants."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, Never, cast

import trio

from actors.blocks import ToBeEntered
from actors.harness._arguments import check_json, check_kind, check_names, check_text, checked_argv, checked_env
from actors.harness._core import Core
from actors.harness._errors import (
    AnswerLost,
    HarnessError,
    InvalidArgument,
    ProcessNeverStarted,
    ProgramNotFound,
    RequestRejected,
    TransportClosed,
    WorkingFolderNotFound,
)
from actors.harness._followed import Followed
from actors.harness._process import Process
from actors.harness._wording import shown_text
from actors.protocol import (
    PROCESS_READ,
    PROCESS_START,
    EnvironmentInherit,
    EnvironmentPolicy,
    ErrorCode,
    InvalidParams,
    PathUriRefused,
    ReadParams,
    StartParams,
    decode_value,
    encode_value,
    path_from_uri,
    uri_from_path,
)

_OPTIONS: Final = ("env", "cwd", "pipe_stdin", "tty", "arg0", "env_policy", "process_id", "metadata")


class Processes:
    """Processes of one environment."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def start(
        self,
        argv: Sequence[str | PurePath],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | PurePath | None = None,
        pipe_stdin: bool = False,
        tty: bool = False,
        arg0: str | None = None,
        env_policy: EnvironmentPolicy | None = None,
        process_id: str | None = None,
        metadata: Any = None,
        **unknown: Never,
    ) -> "StartingProcess":
        """Start a process for as long as the context lasts: ``async with ... as process``.

        Leaving the context, for whatever reason, kills the process's group if it has not ended, and waits a bounded
        time for its end.

        Args:
            argv: Program and arguments.
            env: The process's whole environment; nothing is inherited unless ``env_policy`` asks for it.
            cwd: An absolute path, or a `file:` URI; the executor's own folder when left out.
            pipe_stdin: Keep standard input open.
            tty: Run on a terminal; all output comes as one stream.
            arg0: What the program sees as its own name.
            env_policy: Begin with the executor's variables.
            process_id: Unique in the session; made up when left out.
            metadata: Goes to the executor as it is.
            unknown: Anything else is refused, with the name that may be meant.

        Raises:
            InvalidArgument: An argument breaks a rule.
            DidNotRun: It was not started, for certain; on entering the context, as the next two.
            MayHaveRun: It may run: the connection was lost for good.
            RequestRejected: The executor could not start it.

        Cancelled:
            While starting: the executor is told to end it.
        """
        check_names("start", unknown, _OPTIONS)
        _check_options(process_id, arg0, env_policy, metadata, pipe_stdin=pipe_stdin, tty=tty)
        params = StartParams(
            process_id=self._core.new_id() if process_id is None else process_id,
            argv=checked_argv(_words(argv)),
            cwd=_cwd_uri(cwd, self._core),
            env=checked_env(env),
            tty=tty,
            pipe_stdin=pipe_stdin,
            arg0=arg0,
            env_policy=env_policy,
            metadata=metadata,
        )
        return StartingProcess(self._core, params)


class StartingProcess(ToBeEntered):
    """A process that runs while its context is open. Handed out by `Processes.start`.

    Cancelled:
        The executor is told to end the process, however far its start had come.
    """

    def __init__(self, core: Core, params: StartParams) -> None:
        super().__init__("processes.start")
        self._core = core
        self._params = params
        self._followed: Followed | None = None
        self._settled = trio.Event()
        self._error: HarnessError | None = None
        self._unwanted = False

    async def __aenter__(self) -> Process:
        if self._followed is not None:
            raise InvalidArgument("process", "a context of start() is entered once; call start() again")
        self._is_used = True
        self._followed = self._core.follow(self._params.process_id)
        start = partial(self._start, self._followed)
        try:
            # In a task of the client's own: if we are cancelled, it still learns what became of the start.
            if not self._core.begin_chore(start):
                await start()
            await self._settled.wait()
        except BaseException:
            self._unwanted = True
            if self._settled.is_set():
                # It was started in the very step in which we were cancelled.
                self._drop(self._followed)
            raise
        if self._error is not None:
            self._core.forget(self._followed)
            raise self._error
        return Process(self._core, self._followed, self._params)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._followed is not None, "a context is entered before it is left"
        try:
            if not self._followed.over:
                await self._terminate(self._followed)
        finally:
            self._core.forget(self._followed)

    async def _terminate(self, followed: Followed) -> None:
        process = Process(self._core, followed, self._params)
        told = False
        followed.stop_reading()
        with trio.move_on_after(self._core.limits.cleanup_s) as scope:
            scope.shield = True
            try:
                await process.terminate()
                told = True
                await followed.wait_over()
            except HarnessError:
                told = self._core.failure is not None
        if not told:
            self._core.terminate_soon(followed.process_id)

    def _drop(self, followed: Followed) -> None:
        """Nobody wants it any more, and what became of its start is known."""
        self._core.forget(followed)
        if self._error is None:
            self._core.terminate_soon(followed.process_id)

    async def _start(self, followed: Followed) -> None:
        # If the client ends in the middle, this task is cancelled and its waiter is not: it must not see a success.
        self._error = AnswerLost(PROCESS_START.name, TransportClosed(), identity=followed.process_id)
        try:
            await self._call(followed)
        except HarnessError as error:
            self._error = error
        else:
            self._error = None
            followed.started = True
        finally:
            self._settled.set()
        if self._unwanted:
            self._drop(followed)

    async def _call(self, followed: Followed) -> None:
        process_id = followed.process_id
        try:
            await self._core.call(PROCESS_START, self._params, identity=process_id)
        except RequestRejected as rejected:
            raise start_rejected(rejected, self._params) from None
        except AnswerLost as lost:
            # Not sent again. The session is still ours, so the executor can say what became of this id.
            params = ReadParams(process_id=process_id, after_seq=followed.backlog.arrived_seq, wait_ms=0)
            try:
                answer = await self._core.call(PROCESS_READ, params, identity=process_id, repeat=True)
            except RequestRejected:
                raise ProcessNeverStarted(process_id) from lost
            except HarnessError:
                raise lost from lost.__cause__
            self._core.merge(followed, answer)


def _words(argv: Sequence[str | PurePath]) -> Sequence[str]:
    """Write paths as text; what is wrong with anything else is said by the check of it."""
    if isinstance(argv, str | bytes) or not isinstance(cast("object", argv), Sequence):
        return cast("Sequence[str]", argv)
    return [str(word) if isinstance(word, PurePath) else word for word in argv]


def start_rejected(rejected: RequestRejected, params: StartParams) -> RequestRejected:
    """Name what could not be started, or where: an executor tells it in its data, if at all, and not in its text."""
    if rejected.code != ErrorCode.INTERNAL:
        return rejected
    given: object = rejected.data
    data = cast("Mapping[object, object]", given) if isinstance(given, Mapping) else dict[object, object]()
    told, is_missing = data.get("path"), data.get("kind") == "spawnNotFound"
    kind = RequestRejected
    program, cwd = f"program {shown_text(params.argv[0])}", f"working folder {shown_text(_cwd_path(params.cwd))}"
    if not isinstance(told, str):
        about = f"{program} in {cwd}"
    elif told != params.argv[0] and told == _cwd_path(params.cwd):
        about = cwd
        if is_missing:
            kind, about = WorkingFolderNotFound, f"{cwd}; make this folder on the executor's machine, or give another"
    else:
        about = program
        if is_missing:
            kind, about = ProgramNotFound, f"{program}; {_where_it_was_looked_for(params)}"
    return kind(rejected.code, rejected.message, rejected.data, about=about)


def _where_it_was_looked_for(params: StartParams) -> str:
    if "/" in params.argv[0]:
        return "look on the executor's machine for it, and for what its first line names if it is a script"
    if "PATH" in params.env:
        return "it is in no folder of the PATH that env gives; add its folder, or give its absolute path"
    return "it is in no folder of the executor's own PATH; install it there, give its absolute path, or a PATH in env"


def _cwd_path(uri: str) -> str:
    try:
        return path_from_uri(uri)
    except PathUriRefused:
        return uri


def _check_options(
    process_id: str | None, arg0: str | None, env_policy: EnvironmentPolicy | None, metadata: Any, **flags: bool
) -> None:
    for name, text in (("process_id", process_id), ("arg0", arg0)):
        if text is not None:
            check_text(name, text)
    for name, flag in flags.items():
        check_kind(name, flag, bool)
    if env_policy is not None:
        check_kind("env_policy", env_policy, EnvironmentPolicy)
        check_kind("env_policy.inherit", env_policy.inherit, EnvironmentInherit)
        try:
            decode_value(encode_value(env_policy), EnvironmentPolicy)
        except InvalidParams as fault:
            raise InvalidArgument("env_policy", str(fault)) from None
    check_json("metadata", metadata)


def _cwd_uri(cwd: str | PurePath | None, core: Core) -> str:
    if cwd is None:
        return (core.info.cwd if core.info else None) or "file:///"
    text = str(cwd) if isinstance(cwd, PurePath) else cwd
    check_text("cwd", text)
    if text.startswith("file:"):
        return text
    try:
        return uri_from_path(text)
    except PathUriRefused as fault:
        raise InvalidArgument("cwd", fault.rule) from None
