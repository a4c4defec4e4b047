"""What is lost and comes back: the relay in the middle of a command, and an executor with everything in it."""

import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from actors.cli._demo._stage import Stage, restarted
from actors.cli._executor_process import ExecutorProcess
from actors.environments import ConnectionState, Environment, Watch
from actors.harness import Client, Process
from actors.protocol import OutputGap
from actors.rendezvous import Rendezvous

__all__ = ["loses_its_executor", "loses_its_relay"]

_WAIT_S: Final = 10.0
_LINES: Final = 24
_LINES_BEFORE: Final = 5
_EXIT_CODE: Final = 7
_COUNTING: Final = f"n=0; while [ $n -lt {_LINES} ]; do n=$((n + 1)); echo line $n; sleep 0.05; done; exit {_EXIT_CODE}"


async def loses_its_relay(stage: Stage) -> None:
    """Every connection is cut and the registry forgets everybody; the session and its output go on."""
    environment, watch = stage.current("tools"), _watch_of(stage.current("tools"))
    carried = _rendezvous(stage).statistics().counters
    frames, size_bytes = (
        carried.frames_to_executors + carried.frames_to_harnesses,
        carried.bytes_to_executors + carried.bytes_to_harnesses,
    )
    stage.narrator.fact(f"until now the relay has carried {frames} frames, {size_bytes} bytes, and cannot read them")
    session_id = await _session_of(environment)
    async with environment.processes.start(["sh", "-c", _COUNTING]) as process:
        output = _Numbered(process)
        before = await output.take(_LINES_BEFORE)
        position = process.position
        stage.narrator.fact(f"tools | {before[-1]} (event {position} of its process)")
        async with stage.root.events() as events:
            stage.relay.crash()
            stage.narrator.fact("the relay crashes: every connection is cut, every registration forgotten")
            await _until(lambda: watch.current is ConnectionState.DISCONNECTED, watch.changed)
            stage.check("the cut is noticed", watch.current is ConnectionState.DISCONNECTED, watch.latest.reason)
            await restarted(stage.rendezvous, events)
        back_s = trio.current_time()
        stage.check("the supervisor brings the relay back", True, _rendezvous(stage).url)
        await _until(lambda: watch.current is ConnectionState.CONNECTED, watch.changed)
        resumed_ms = 1000 * (trio.current_time() - back_s)
        same = await _session_of(environment) == session_id
        stage.check("the same session is resumed over it", same, f"{resumed_ms:.0f} ms after the relay was back")
        after = await output.take(_LINES - len(before))
        code = await process.wait()
    told = f"event {position} came before the crash, up to event {process.position} after it"
    whole = before + after == [f"line {number}" for number in range(1, _LINES + 1)]
    stage.check("its output goes on where it had stopped, each line once", whole and output.gaps == 0, told)
    stage.check("the command ends as if nothing had been", code == _EXIT_CODE, f"exit code {code}")
    await stage.settle()


async def loses_its_executor(stage: Stage) -> None:
    """The executor is killed; its supervisor starts another one; the environment finds it."""
    environment, child = stage.current("tools"), stage.executors.child("tools")
    assert child is not None, "the first scene started it"
    before: ExecutorProcess = child.value
    watch = _watch_of(environment)
    async with stage.executors.events() as events:
        os.kill(before.pid, signal.SIGKILL)
        stage.narrator.fact(f"executor process {before.pid} is killed")
        await _until(lambda: watch.current is ConnectionState.DISCONNECTED, watch.changed)
        stage.check("the loss is noticed", watch.current is ConnectionState.DISCONNECTED, watch.latest.reason)
        after: ExecutorProcess = await restarted(child, events)
    stage.check("the supervisor brings the executor back", after.pid != before.pid, f"process {after.pid}")
    await stage.settle()
    result = await environment.run(["echo", "back again"])
    stage.narrator.fact(f"tools | {result.stdout_text.strip()}")
    back = watch.current is ConnectionState.CONNECTED and environment.generation == 1
    stage.check("the environment reconnects when it is used", back, f"{environment!r}")
    await stage.settle()


class _Numbered:
    """Takes whole lines of a process, one after the other, and counts what was lost between them."""

    def __init__(self, process: Process) -> None:
        self._pieces = process.chunks()
        self._lines: deque[str] = deque()
        self._rest = b""
        self.gaps = 0

    async def _next(self) -> str | None:
        while not self._lines:
            piece = await anext(self._pieces, None)
            if piece is None:
                return None
            if isinstance(piece, OutputGap):
                self.gaps += 1
                continue
            *lines, self._rest = (self._rest + piece.chunk).split(b"\n")
            self._lines += [line.decode() for line in lines]
        return self._lines.popleft()

    async def take(self, count: int) -> list[str]:
        """Give the next lines, fewer if there are no more."""
        taken: list[str] = []
        with trio.move_on_after(_WAIT_S):
            while len(taken) < count and (line := await self._next()) is not None:
                taken.append(line)
        return taken


def _rendezvous(stage: Stage) -> Rendezvous:
    return stage.rendezvous.value


def _watch_of(environment: Environment) -> Watch[ConnectionState]:
    watch = environment.subscribe_connection_state()
    assert watch is not None, "a remote environment has a connection to watch"
    return watch


async def _session_of(environment: Environment) -> str:
    async with environment.operation("demo") as client:
        assert isinstance(client, Client), "this manager's clients are the harness's"
        return client.session_id


async def _until(holds: Callable[[], bool], change: Callable[[], Awaitable[object]]) -> None:
    with trio.fail_after(_WAIT_S):
        while not holds():
            await change()
