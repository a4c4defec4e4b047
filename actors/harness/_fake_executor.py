"""An executor without processes of an operating system: programs are async functions, time is trio's.

It speaks the protocol in full, keeps sessions over connections, and lets a test decide what goes wrong. It is the
in-memory twin for those who test what stands on a harness.
"""

import itertools
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs
import trio

from actors.harness._channel import ChannelClosed, MessageChannel
from actors.protocol import (
    ENVIRONMENT_INFO,
    INITIALIZED,
    METHODS,
    PROCESS_CLOSED,
    PROCESS_EXITED,
    PROCESS_OUTPUT,
    Capabilities,
    Empty,
    EnvironmentInfo,
    EnvironmentStatus,
    ErrorResponse,
    Failure,
    Family,
    InitializeParams,
    InitializeResult,
    InvalidParams,
    News,
    Nothing,
    Notification,
    ProcessClosed,
    ProcessEvent,
    ProcessExited,
    ProcessLog,
    ProcessOutput,
    ReadParams,
    Request,
    Response,
    Shell,
    SignalParams,
    SpawnFailureKind,
    StartParams,
    StartResult,
    Stream,
    TerminateParams,
    TerminateResult,
    WriteParams,
    WriteResult,
    WriteStatus,
    decode_message,
    encode_message,
    initialized_first,
    invalid_params,
    method_not_found,
    process_exists,
    session_attached,
    spawn_failed,
    unknown_process,
    unknown_session,
)

SESSION_KEPT_S: Final = 80.0
_NEWS_OF: Final[dict[type, News[Any]]] = {
    ProcessOutput: PROCESS_OUTPUT,
    ProcessExited: PROCESS_EXITED,
    ProcessClosed: PROCESS_CLOSED,
}
_KILLED: Final = 137
_INTERRUPTED: Final = 130


class FakeProcess:
    """What a program sees of itself."""

    def __init__(self, params: StartParams, send: Callable[[ProcessEvent], None]) -> None:
        self.params = params
        """As it was started."""
        self.log: ProcessLog = ProcessLog(params.process_id)
        """Its sequence."""
        stdin = trio.open_memory_channel[bytes](math.inf)
        self._stdin: trio.MemorySendChannel[bytes] = stdin[0]
        self.stdin: trio.MemoryReceiveChannel[bytes] = stdin[1]
        self._send = send
        self._scope = trio.CancelScope()
        self._exit_code: int | None = None
        self._writes: set[str] = set()
        self.changed: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()
        self.signals = 0
        """Interrupts that came."""

    def write(self, data: bytes, *, stream: Stream = Stream.STDOUT) -> None:
        """Write output."""
        self._tell(self.log.add_output(stream, data))

    def exit(self, code: int) -> None:
        """Exit now; output may still come until the program returns."""
        if self.log.exit is None:
            self._tell(self.log.add_exit(code))

    async def run(self, program: Callable[["FakeProcess"], Awaitable[int | None]]) -> None:
        """Run to the end: exit, then close.

        Cancelled:
            The program is cancelled; its end is not told.
        """
        code: int | None = None
        with self._scope:
            code = await program(self)
        self.exit(self._exit_code if self._exit_code is not None else code or 0)
        self._tell(self.log.add_close())

    def end(self, code: int) -> bool:
        """Kill; tell whether it was running."""
        running = self.log.exit is None
        if running:
            self._exit_code = code
        self._scope.cancel()
        return running

    def feed(self, params: WriteParams) -> WriteStatus:
        """Take bytes for standard input, once a write id."""
        if not (self.params.pipe_stdin or self.params.tty) or self.log.exit is not None:
            return WriteStatus.STDIN_CLOSED
        if params.write_id not in self._writes:
            self._writes.add(params.write_id)
            self._stdin.send_nowait(params.chunk)
            if params.eof:
                self._stdin.close()
        return WriteStatus.ACCEPTED

    def _tell(self, event: ProcessEvent) -> None:
        self._send(event)
        self.changed.unpark_all()


Program = Callable[[FakeProcess], Awaitable[int | None]]
"""What a fake process does; gives its exit code."""


@attrs.define(eq=False)
class _Session:
    session_id: str
    processes: dict[str, FakeProcess] = attrs.Factory(dict[str, FakeProcess])
    attached: "_Connection | None" = None
    expiry: trio.CancelScope | None = None


class FakeExecutor:
    """Serves connections; a session outlives them. Programs are chosen by ``argv[0]``."""

    def __init__(
        self, nursery: trio.Nursery, programs: Mapping[str, Program], *, session_kept_s: float = SESSION_KEPT_S
    ) -> None:
        self._nursery = nursery
        self._programs = dict(programs)
        self._session_kept_s = session_kept_s
        self._numbers = itertools.count(1)
        self.sessions: dict[str, _Session] = {}
        """By id."""
        self.started: Counter[tuple[str, ...]] = Counter()
        """How often each command line was run."""
        self.before_answer: Callable[[Request], Awaitable[bool]] | None = None
        """Awaited after a request was carried out; False leaves it without an answer."""
        self.before_request: Callable[[Request], Awaitable[bool]] | None = None
        """Awaited before a request is carried out; False drops it."""
        self.info: EnvironmentInfo = EnvironmentInfo(
            shell=Shell(name="sh", path="/bin/sh"),
            cwd="file:///home/fake",
            capabilities=Capabilities(process_stdin_eof=True, process_terminate_grace=True),
        )
        """What it says of itself."""

    def process(self, process_id: str) -> FakeProcess:
        """Find a process in whatever session."""
        return next(s.processes[process_id] for s in self.sessions.values() if process_id in s.processes)

    async def serve(self, channel: MessageChannel) -> None:
        """Serve one connection to its end.

        Cancelled:
            The connection is served no more; its session is kept, as after any loss.
        """
        connection = _Connection(self, channel)
        try:
            await connection.run()
        finally:
            if connection.session is not None:
                self._detach(connection.session)

    def attach(self, connection: "_Connection", session_id: str | None) -> "_Session | Failure":
        """Give a connection its session."""
        if session_id is None:
            session = _Session(f"session-{next(self._numbers)}")
            self.sessions[session.session_id] = session
        elif session_id not in self.sessions:
            return unknown_session(session_id)
        else:
            session = self.sessions[session_id]
        if session.attached is not None:
            return session_attached(session.session_id)
        if session.expiry is not None:
            session.expiry.cancel()
        session.attached, session.expiry = connection, None
        return session

    def _detach(self, session: "_Session") -> None:
        session.attached = None
        session.expiry = trio.CancelScope()
        self._nursery.start_soon(self._expire, session, session.expiry)

    async def _expire(self, session: "_Session", scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(self._session_kept_s)
            self.sessions.pop(session.session_id, None)
            for process in session.processes.values():
                process.end(_KILLED)

    def launch(self, session: "_Session", params: StartParams) -> StartResult | Failure:
        """Start a program in a session."""
        if params.process_id in session.processes:
            return process_exists(params.process_id)
        program = self._programs.get(params.argv[0])
        if program is None:
            return spawn_failed(SpawnFailureKind.NOT_FOUND, "No such file or directory (os error 2)")

        def send(event: ProcessEvent) -> None:
            if session.attached is not None:
                session.attached.tell(event)

        process = FakeProcess(params, send)
        session.processes[params.process_id] = process
        self.started[params.argv] += 1
        self._nursery.start_soon(process.run, program)
        return StartResult(process_id=params.process_id)


class _Connection:
    """One connection of a fake executor."""

    def __init__(self, executor: FakeExecutor, channel: MessageChannel) -> None:
        self._executor = executor
        self._channel = channel
        self._ready = False
        self._outgoing: trio.MemorySendChannel[bytes]
        self._outgoing, self._to_write = trio.open_memory_channel[bytes](math.inf)
        self.session: _Session | None = None

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, nursery.cancel_scope)
                while True:
                    message = decode_message(await self._channel.receive())
                    if isinstance(message, Request):
                        nursery.start_soon(self._answer, message)
                    elif isinstance(message, Notification) and message.method == INITIALIZED.name:
                        self._ready = True
        except* ChannelClosed:
            pass

    async def _write(self, scope: trio.CancelScope) -> None:
        async for data in self._to_write:
            try:
                await self._channel.send(data)
            except ChannelClosed:
                scope.cancel()

    def tell(self, event: ProcessEvent) -> None:
        """Send news of a process."""
        news = _NEWS_OF[type(event)]
        self._outgoing.send_nowait(encode_message(Notification(news.name, news.encode_params(event))))

    async def _answer(self, request: Request) -> None:
        executor = self._executor
        if executor.before_request is not None and not await executor.before_request(request):
            return
        outcome = await self._carry_out(request)
        if executor.before_answer is not None and not await executor.before_answer(request):
            return
        if isinstance(outcome, Failure):
            answer: Response | ErrorResponse = ErrorResponse(request.id, outcome)
        else:
            answer = Response(request.id, METHODS[request.method].encode_result(outcome))
        self._outgoing.send_nowait(encode_message(answer))

    async def _carry_out(self, request: Request) -> Any:
        method = METHODS.get(request.method)
        if method is None:
            return method_not_found(request.method)
        try:
            params = method.decode_params(request.params)
        except InvalidParams as fault:
            return invalid_params(fault)
        if isinstance(params, InitializeParams):
            return self._initialize(params)
        if not self._ready or self.session is None:
            return initialized_first(method.family)
        if method.family is Family.FILESYSTEM:
            return method_not_found(method.name)  # It has no disk.
        if isinstance(params, Nothing):
            return self._executor.info if method is ENVIRONMENT_INFO else EnvironmentStatus(status="ready")
        return await self._for_process(self.session, params)

    async def _for_process(self, session: _Session, params: Any) -> Any:
        match params:
            case StartParams():
                return self._executor.launch(session, params)
            case ReadParams():
                return await self._read(session, params)
            case _:
                return _to_process(session.processes.get(params.process_id), params)

    def _initialize(self, params: InitializeParams) -> InitializeResult | Failure:
        session = self._executor.attach(self, params.resume_session_id)
        if isinstance(session, Failure):
            return session
        self.session = session
        return InitializeResult(session_id=session.session_id, environment_info=self._executor.info)

    async def _read(self, session: _Session, params: ReadParams) -> Any:
        process = session.processes.get(params.process_id)
        if process is None:
            return unknown_process(params.process_id)
        with trio.move_on_after((params.wait_ms or 0) / 1000):
            while not process.log.has_news(params.after_seq):
                await process.changed.park()
        return process.log.read(params.after_seq, params.max_bytes)


def _to_process(process: FakeProcess | None, params: Any) -> Any:
    match params:
        case WriteParams():
            return WriteResult(status=process.feed(params) if process else WriteStatus.UNKNOWN_PROCESS)
        case TerminateParams():
            return TerminateResult(running=process.end(_KILLED) if process else False)
        case SignalParams():
            if process is not None:
                process.signals += 1
                process.end(_INTERRUPTED)
        case _:
            raise AssertionError(f"{params} is for no process")
    return Empty()
