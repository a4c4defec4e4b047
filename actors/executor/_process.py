"""One process of a session, from its launch to its close.

Reads its pipes, numbers what they bring, and tells exit and close in an order that :mod:`_ending` decides. Kills it
when asked, once, and whoever a kill of its group would miss. Does not know connections: news goes to whom it was
given.
"""

import math
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import attrs
import trio

from actors.executor._ending import CutOff, Ended, Ending, Event, Exited, FoundEmpty, TellExit
from actors.executor._errors import SpawnFailed
from actors.executor._launching import (
    LaunchedProcess,
    LaunchSpec,
    OutputEnd,
    ProcessLauncher,
    Sighting,
    exit_code,
)
from actors.executor._limits import Limits
from actors.executor._stdin import StdinQueue
from actors.protocol import ProcessEvent, ProcessLog, Stream, Survivor

__all__ = ["Audience", "HostedProcess", "Outcome"]

# How long looking through the system's table may hold up a kill or a close.
_LOOK_S = 0.5
# How long the pipes of a killed group take to end when nobody else holds them.
_SETTLE_S = 0.05
# The killed need a moment until the system shows them as dead.
_DYING_S = (0.005, 0.02, 0.1)


class Audience(Protocol):
    """To whom a process tells what happens to it."""

    def publish(self, event: ProcessEvent) -> None:
        """Take one event; never waits."""
        ...

    def wait_room(self) -> Awaitable[None]:
        """Wait until more may be published."""
        ...


@attrs.frozen(kw_only=True)
class Outcome:
    """How a process ended."""

    drain_limited: bool = False
    """Whether a pipe was given up while somebody still held it."""
    survivors: tuple[Sighting, ...] = ()
    """Whom it left running behind."""
    killed_outside: tuple[Sighting, ...] = ()
    """Whom a kill of the group would have missed, and who was killed one by one."""
    died: bool = True
    """False: it was killed and did not die within the limit."""


class HostedProcess:
    """A process with its log, its input and its end."""

    def __init__(self, process_id: str, audience: Audience, limits: Limits) -> None:
        self.process_id = process_id
        self.log: ProcessLog = ProcessLog(process_id)
        self.stdin: StdinQueue | None = None
        """Its input, when it has one."""
        self.launched: trio.Event = trio.Event()
        """Set once it is known whether it could be started."""
        self.outcome: Outcome = Outcome()
        """Complete when the log is closed."""
        self._audience, self._limits = audience, limits
        self._process: LaunchedProcess | None = None
        self._ending = Ending.of(())
        self._all_told = trio.Event()
        self._news = trio.lowlevel.ParkingLot()
        # One for each pump that waits for its pipe; cancelled so that the pump looks once more.
        self._waits: dict[Stream, trio.CancelScope] = {}
        self._drain_until_s = math.inf
        self._read_since_exit: dict[Stream, int] = {}
        self._read_past_limit: dict[Stream, int] = {}
        self._nursery: trio.Nursery | None = None
        self._grace: trio.CancelScope | None = None
        self._kill_asked = self._killed = False

    @property
    def running(self) -> bool:
        """Whether it was started and its exit has not been told."""
        return self._process is not None and self.log.exit is None

    @property
    def pid(self) -> int:
        """The system's number; 0 before it was started."""
        return self._process.pid if self._process is not None else 0

    async def run(
        self, launcher: ProcessLauncher, spec: LaunchSpec, started: Callable[[SpawnFailed | None], None]
    ) -> None:
        """Start it and stay with it until its close.

        Args:
            launcher: Starts it.
            spec: What to start.
            started: Called once, before any news, with why it could not be started or ``None``.

        Cancelled:
            Its group is killed and it is reaped, within the limit; no news of that.
        """
        try:
            process = await launcher.launch(spec)
        except SpawnFailed as failure:
            self.launched.set()
            started(failure)
            return
        try:
            self._begin(process, spec)
            started(None)
            await self._live(process)
        finally:
            await self._put_away(process)

    def _begin(self, process: LaunchedProcess, spec: LaunchSpec) -> None:
        self._process = process
        self._ending = Ending.of(process.outputs)
        self._read_since_exit = dict.fromkeys(process.outputs, 0)
        self._read_past_limit = dict.fromkeys(process.outputs, 0)
        if process.stdin is not None:
            limits = self._limits
            self.stdin = StdinQueue(
                bytes_max=limits.stdin_bytes_max,
                waiting_max=limits.stdin_waiting_max,
                waiting_bytes_max=limits.stdin_waiting_bytes_max,
                write_ids_max=limits.write_ids_max,
                end_byte=b"\x04" if spec.terminal else None,
            )
        self.launched.set()

    async def _live(self, process: LaunchedProcess) -> None:
        async with trio.open_nursery() as self._nursery:
            for stream, end in process.outputs.items():
                self._nursery.start_soon(self._pump, stream, end)
            if self.stdin is not None and process.stdin is not None:
                self._nursery.start_soon(self.stdin.feed, process.stdin)
            self._note_exit(await process.wait())
            await self._all_told.wait()
            if not self.log.closed:
                await self._close(process)

    async def _pump(self, stream: Stream, end: OutputEnd) -> None:
        while True:
            data = end.read_nowait()
            if data:
                self._tell(self.log.add_output(stream, data))
                if self._has_read(stream, end, len(data)):
                    return
                await self._audience.wait_room()
            elif data is not None:
                self._take(Ended(stream))
                return
            else:
                if self._is_dry(stream):
                    return
                with trio.CancelScope(deadline=self._drain_until_s) as self._waits[stream]:
                    await end.wait_readable()
                del self._waits[stream]

    def _is_dry(self, stream: Stream) -> bool:
        """Note that a pipe has nothing at the moment; true when it was given up for that."""
        if self._ending.code is None:
            return False
        self._take(FoundEmpty(stream))
        if trio.current_time() < self._drain_until_s:
            return False
        self._take(CutOff(stream))
        return True

    def _has_read(self, stream: Stream, end: OutputEnd, count: int) -> bool:
        """Count what came after the exit; true when the pipe was given up.

        A pipe holds at most its capacity. So when that much was read since the exit, all from before it was read;
        and when that much was read past the drain limit, a writer is still at it who will not stop.
        """
        if self.log.exit is None and self._ending.code is not None:
            self._read_since_exit[stream] += count
            if self._read_since_exit[stream] >= end.capacity_bytes:
                self._take(FoundEmpty(stream))
        if trio.current_time() >= self._drain_until_s:
            self._read_past_limit[stream] += count
            if self._read_past_limit[stream] >= end.capacity_bytes:
                self._take(CutOff(stream))
                return True
        return False

    def _note_exit(self, status: int) -> None:
        self._drain_until_s = trio.current_time() + self._limits.drain_s
        self._take(Exited(exit_code(status)))
        for waiting in self._waits.values():
            waiting.cancel()
        if self.stdin is not None:
            self.stdin.close()

    def _take(self, event: Event) -> None:
        self._ending, effects = self._ending.handle(event)
        for effect in effects:
            if isinstance(effect, TellExit):
                self._tell(self.log.add_exit(effect.code))
            else:
                if self._process is not None and not self._may_have_left_some(self._process):
                    # In the same breath as the exit: one message's way for both.
                    self._tell_close(())
                self._all_told.set()

    def _tell(self, event: ProcessEvent) -> None:
        self._audience.publish(event)
        self._news.unpark_all()

    async def _close(self, process: LaunchedProcess) -> None:
        """Look whom it left behind, if there can be anybody, and tell the close."""
        survivors: tuple[Sighting, ...] = ()
        if self._may_have_left_some(process):
            survivors = await self._look_behind(process)
            process.leave(*survivors)
        self._tell_close(survivors)

    def _may_have_left_some(self, process: LaunchedProcess) -> bool:
        return self._ending.cut or process.left_members

    def _tell_close(self, survivors: tuple[Sighting, ...]) -> None:
        self.outcome = attrs.evolve(self.outcome, drain_limited=self._ending.cut, survivors=survivors)
        told = tuple(Survivor(pid=s.pid, name=s.name) for s in survivors)
        self._tell(self.log.add_close(drain_limited=self._ending.cut, survivors=told))

    async def _look_behind(self, process: LaunchedProcess) -> tuple[Sighting, ...]:
        found: tuple[Sighting, ...] = ()
        kill = self._kill_asked or self._limits.kill_leftovers
        with trio.move_on_after(_LOOK_S):
            found = await process.find_survivors()
            for dying_s in _DYING_S if kill else ():
                self._kill_each(process, found)
                await trio.sleep(dying_s)
                found = await process.find_survivors()
                if not found:
                    break
        return found

    def interrupt(self) -> None:
        """Send an interrupt to the group, if it is running."""
        if self._process is not None and self.running:
            self._process.signal_group(signal.SIGINT)

    def terminate(self, *, grace_s: float | None = None) -> bool:
        """Kill the group and whoever descends from it.

        Args:
            grace_s: Ask with SIGTERM first and kill after so long; kill at once when ``None``. A second call can
                only make it sooner.

        Returns:
            Whether it was running.
        """
        if self._process is None or not self.running or self._nursery is None:
            return False
        self._kill_asked = True
        if grace_s:
            self._process.signal_group(signal.SIGTERM)
        until_s = trio.current_time() + (grace_s or 0.0)
        if self._grace is None:
            self._grace = trio.CancelScope(deadline=until_s)
            self._nursery.start_soon(self._kill_after_grace, self._process, self._grace)
        else:
            self._grace.deadline = min(self._grace.deadline, until_s)
        return True

    async def _kill_after_grace(self, process: LaunchedProcess, grace: trio.CancelScope) -> None:
        with grace:
            # Not only the exit: a member of the group may ignore what its leader obeyed.
            await self._all_told.wait()
        await self._kill(process)

    async def _kill(self, process: LaunchedProcess) -> None:
        """Kill the group once, and each descendant that is not in it: looked for before their parents die."""
        found: tuple[Sighting, ...] = ()
        with trio.move_on_after(_LOOK_S):
            found = await process.find_survivors(holders=False)
        if self._killed:
            return
        # Said and done in one breath: who is cancelled while looking has not killed, and another must.
        self._killed = True
        process.signal_group(signal.SIGKILL)
        self._kill_each(process, tuple(s for s in found if s.group != process.pid))
        with trio.move_on_after(_SETTLE_S):
            await self._all_told.wait()
            return
        with trio.move_on_after(_LOOK_S):
            # Somebody still holds a pipe.
            self._kill_each(process, await process.find_survivors())

    def _kill_each(self, process: LaunchedProcess, sighted: tuple[Sighting, ...]) -> None:
        known = {s.pid for s in self.outcome.killed_outside}
        killed = tuple(s for s in sighted if process.kill_sighted(s) and s.group != process.pid)
        new = tuple(s for s in killed if s.pid not in known)
        self.outcome = attrs.evolve(self.outcome, killed_outside=(*self.outcome.killed_outside, *new))

    def kills_of_survivors(self) -> tuple[Callable[[], object], ...]:
        """Give what kills each of those it left running, if it is still the same; of use for ever."""
        if self._process is None:
            return ()
        return tuple(partial(self._process.kill_sighted, sighted) for sighted in self.outcome.survivors)

    async def wait_news(self, after_seq: int | None, *, wait_s: float) -> None:
        """Wait until a read after this position brings something new, or so long.

        Cancelled:
            Nothing changed.
        """
        with trio.move_on_after(wait_s):
            while not self.log.has_news(after_seq):
                await self._news.park()

    async def _put_away(self, process: LaunchedProcess) -> None:
        if not self.log.closed:
            await self._kill_and_reap(process)
            self.log.fail("the executor stopped")
        for end in process.outputs.values():
            end.close()
        if process.stdin is not None:
            process.stdin.close()
        self._news.unpark_all()

    async def _kill_and_reap(self, process: LaunchedProcess) -> None:
        self.outcome = attrs.evolve(self.outcome, died=self._ending.code is not None)
        with trio.move_on_after(self._limits.kill_s, shield=True):
            await self._kill(process)
            if not self.outcome.died:
                await process.wait()
                self.outcome = attrs.evolve(self.outcome, died=True)
