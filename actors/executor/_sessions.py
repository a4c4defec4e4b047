"""Sessions: who owns which processes, and who hears of them.

A session outlives its connection for a while. While it has none its processes run on and their output is kept;
resumed in time it goes on where it was, else its processes are killed.
"""

import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial

import trio

from actors.executor._errors import SpawnFailed
from actors.executor._events import (
    Observer,
    ProcessEnded,
    ProcessStarted,
    ProcessWillNotDie,
    SessionAttached,
    SessionDetached,
    SessionEnded,
)
from actors.executor._launching import LaunchSpec, ProcessLauncher, Sighting
from actors.executor._limits import Limits
from actors.executor._news import encode_news
from actors.executor._outbox import Outbox
from actors.executor._process import HostedProcess
from actors.executor._refusals import RequestRefused
from actors.executor._reminders import Reminder, Reminders
from actors.executor._statistics import Counters
from actors.executor._variables import Variables
from actors.protocol import (
    ProcessEvent,
    ProcessOutput,
    Survivor,
    invalid_request,
    process_exists,
    session_attached,
    unknown_session,
)

__all__ = ["Session", "Sessions"]


class Session:
    """The processes of one client, and the connection that hears of them, if there is one."""

    def __init__(self, session_id: str, home: "Sessions") -> None:
        self.session_id = session_id
        self._home = home
        self._outbox: Outbox | None = None
        self._processes: dict[str, HostedProcess] = {}
        # Closed processes, the one that closed first in front: those to forget when too much is kept.
        self._closed: OrderedDict[str, HostedProcess] = OrderedDict()
        # What the processes in `_closed` keep.
        self._retained_bytes = 0
        self._forgetting: dict[HostedProcess, Reminder] = {}
        # Kills those whom closed processes left running, the oldest first; also when the process is forgotten itself.
        self._left_behind: deque[Callable[[], object]] = deque()
        self._expiry: Reminder | None = None
        self._ended = False

    @property
    def attached(self) -> bool:
        """Whether a connection has it."""
        return self._outbox is not None

    @property
    def running(self) -> int:
        """How many of its processes are not closed."""
        return len(self._processes) - len(self._closed)

    def process(self, process_id: str) -> HostedProcess | None:
        """Find a process that is known, running or closed."""
        return self._processes.get(process_id)

    def publish(self, event: ProcessEvent) -> None:
        """Send news of a process to the connection, if there is one."""
        if isinstance(event, ProcessOutput):
            self._home.counters.output_bytes += len(event.chunk)
        if self._outbox is not None:
            self._outbox.add_news(encode_news(event))

    async def wait_room(self) -> None:
        """Hold a process back while its client is slow. Without a connection nobody is slow.

        Cancelled:
            Nothing changed.
        """
        if self._outbox is not None:
            await self._outbox.news.wait_room()
        else:
            await trio.lowlevel.checkpoint()

    def start(
        self, process_id: str, spec: LaunchSpec, variables: Variables, started: Callable[[SpawnFailed | None], None]
    ) -> None:
        """Start a process; ``started`` is called before any news of it.

        Raises:
            RequestRefused: There is one with that id, or there are too many.
        """
        if process_id in self._processes:
            raise RequestRefused(process_exists(process_id))
        if self.running >= self._home.limits.processes_max:
            self._home.counters.processes_refused += 1
            raise RequestRefused(
                invalid_request(f"session has reached its limit of {self._home.limits.processes_max} processes")
            )
        process = HostedProcess(process_id, self, self._home.limits)
        self._processes[process_id] = process
        self._home.nursery.start_soon(self._run, process, spec, variables, started)

    async def _run(
        self,
        process: HostedProcess,
        spec: LaunchSpec,
        variables: Variables,
        started: Callable[[SpawnFailed | None], None],
    ) -> None:
        def was_started(failure: SpawnFailed | None) -> None:
            if failure is not None:
                self._home.counters.spawns_failed += 1
                del self._processes[process.process_id]
            else:
                self._note_started(process, spec, variables)
            started(failure)

        try:
            await process.run(self._home.launcher, spec, was_started)
        finally:
            if process.pid:
                self._note_ended(process)

    def _note_started(self, process: HostedProcess, spec: LaunchSpec, variables: Variables) -> None:
        self._home.counters.processes_started += 1
        self._home.observer(
            ProcessStarted(
                session_id=self.session_id,
                process_id=process.process_id,
                pid=process.pid,
                program=spec.argv[0],
                inherited_names=variables.inherited_names,
            )
        )
        if self._ended:  # The session ended while it was being started.
            process.terminate()

    def _note_ended(self, process: HostedProcess) -> None:
        outcome, exited = process.outcome, process.log.exit
        self._home.counters.note_outcome(outcome)
        if not outcome.died:
            self._home.observer(
                ProcessWillNotDie(session_id=self.session_id, process_id=process.process_id, pid=process.pid)
            )
        elif exited is not None:
            self._home.observer(
                ProcessEnded(
                    session_id=self.session_id,
                    process_id=process.process_id,
                    pid=process.pid,
                    exit_code=exited.exit_code,
                    drain_limited=outcome.drain_limited,
                    survivors=_told(outcome.survivors),
                    killed_outside=_told(outcome.killed_outside),
                )
            )
        self._left_behind.extend(process.kills_of_survivors())
        while self._left_behind and (self._ended or len(self._left_behind) > self._home.limits.leftovers_max):
            self._left_behind.popleft()()
        self._keep_for_a_while(process)

    def _keep_for_a_while(self, process: HostedProcess) -> None:
        self._closed[process.process_id] = process
        self._retained_bytes += _kept_bytes(process)
        forget = partial(self._forget, process)
        self._forgetting[process] = self._home.reminders.remind(self._home.limits.closed_s, forget)
        while self._retained_bytes > self._home.limits.retained_bytes_max and len(self._closed) > 1:
            self._home.counters.processes_forgotten_early += 1
            self._forget(next(iter(self._closed.values())))

    def _forget(self, process: HostedProcess) -> None:
        if self._closed.get(process.process_id) is process:
            del self._closed[process.process_id]
            del self._processes[process.process_id]
            self._retained_bytes -= _kept_bytes(process)
            # Else the reminder would hold on to all that was to be given free.
            self._forgetting.pop(process).call_off()

    def attach(self, outbox: Outbox) -> None:
        """Send news here from now on."""
        assert self._outbox is None, "a session has one connection at a time"
        self._outbox = outbox
        self._home.detached.pop(self.session_id, None)
        if self._expiry is not None:
            self._expiry.call_off()
            self._expiry = None

    def detach(self) -> None:
        """Its connection ended: go on without, for a while."""
        self._outbox = None
        self._home.detached[self.session_id] = self
        self._expiry = self._home.reminders.remind(self._home.limits.detached_s, self._expire)
        self._home.observer(SessionDetached(session_id=self.session_id, processes=self.running))

    def _expire(self) -> None:
        self._home.counters.sessions_expired += 1
        self.end()

    def end(self) -> None:
        """Forget it and kill its processes."""
        self._ended = True
        if self._expiry is not None:
            self._expiry.call_off()
        self._home.forget(self)
        self._home.observer(SessionEnded(session_id=self.session_id, processes=self.running))
        for process in self._processes.values():
            process.terminate()
        self.kill_left_behind()

    def kill_left_behind(self) -> None:
        """Kill those whom its processes left running."""
        while self._left_behind:
            self._left_behind.popleft()()


class Sessions:
    """All sessions of one executor."""

    def __init__(
        self,
        *,
        nursery: trio.Nursery,
        launcher: ProcessLauncher,
        limits: Limits,
        counters: Counters,
        observer: Observer,
    ) -> None:
        self.nursery: trio.Nursery = nursery
        self.launcher: ProcessLauncher = launcher
        self.limits: Limits = limits
        self.counters: Counters = counters
        self.observer: Observer = observer
        self.reminders: Reminders = Reminders()
        self._sessions: dict[str, Session] = {}
        # Those without a connection, the one that lost it first in front.
        self.detached: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def attach(self, resume_id: str | None, outbox: Outbox, *, client_name: str) -> Session:
        """Open a session, or resume one.

        Raises:
            RequestRefused: It is not there or no longer, another connection has it, or there are too many.
        """
        session = self._open() if resume_id is None else self._resume(resume_id)
        session.attach(outbox)
        self.observer(
            SessionAttached(session_id=session.session_id, resumed=resume_id is not None, client_name=client_name)
        )
        return session

    def _open(self) -> Session:
        if len(self._sessions) >= self.limits.sessions_max and not self._end_one_that_is_idle():
            self.counters.sessions_refused += 1
            raise RequestRefused(
                invalid_request(f"executor has reached its limit of {self.limits.sessions_max} sessions")
            )
        session = Session(str(uuid.uuid4()), self)
        self._sessions[session.session_id] = session
        self.counters.sessions_opened += 1
        return session

    def _end_one_that_is_idle(self) -> bool:
        """End the session longest without a connection in which nothing runs: short visits must not keep others out."""
        idle = next((session for session in self.detached.values() if not session.running), None)
        if idle is not None:
            self.counters.sessions_ended_early += 1
            idle.end()
        return idle is not None

    def _resume(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestRefused(unknown_session(session_id))
        if session.attached:
            raise RequestRefused(session_attached(session_id))
        self.counters.sessions_resumed += 1
        return session

    def forget(self, session: Session) -> None:
        """It ended; its id is unknown from now on."""
        del self._sessions[session.session_id]
        self.detached.pop(session.session_id, None)

    def kill_left_behind(self) -> None:
        """The executor ends, and with it every session: kill those whom their processes left running."""
        for session in self._sessions.values():
            session.kill_left_behind()

    def running(self) -> int:
        """How many processes are not closed."""
        return sum(session.running for session in self._sessions.values())


# A closed process without output is about this large; unbounded in number they would be as bad as output.
_PROCESS_BYTES = 8 * 1024


def _kept_bytes(process: HostedProcess) -> int:
    return process.log.output.held_bytes + _PROCESS_BYTES


def _told(sighted: tuple[Sighting, ...]) -> tuple[Survivor, ...]:
    return tuple(Survivor(pid=s.pid, name=s.name) for s in sighted)
