"""Kill the host, its engine, its connection or its session at any step of a session's life; see what still holds.

`python -m tests.chaos.code_sessions [SEEDS] [FIRST]` plays 1,000 seeds. A seed says what is killed, at which step of
all tasks together, and in what order the calls come. Of a hundred seeds, four have a host process of their own and real
engines; the others have a host in memory, and a clock of their own.

Whatever happens: no script and no tool call runs twice, each cell is closed exactly once, each call ends within its
bound, and no process, task or connection is left.
"""

import contextlib
import functools
import math
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import psutil
import trio
import trio.testing

from actors.sessions import (
    Json,
    Result,
    Session,
    SessionReset,
    SessionsError,
    ToolCall,
    WaitRequest,
    Yielded,
    open_provider,
)
from actors.sessions.grpc.testing import MemoryNetwork
from actors.sessions.host import EngineNotFound, find_engine
from tests.actors.sessions.client.hosts import Cell, Host, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, request
from tests.interop.codemode.hosts import OURS, running

KINDS: Final = ("host", "engine", "connection", "session")
REAL_EVERY: Final = 100
BOUND_S: Final = 200.0
"""More than any call may take: an opening, an observation, its grace and its RPC."""

SOURCES: Final = {
    "ask": "text(await tools.echo('{tag}'))",
    "later": "await tools.echo('{tag}'); yield_control(); await new Promise(r => setTimeout(r, 20)); text('later')",
    "stay": "await tools.echo('{tag}'); yield_control(); await new Promise(() => {{}})",
    "notify": "notify('{tag}'); text(await tools.echo('{tag}'))",
}


class AtStep(trio.abc.Instrument):
    """Calls a function before the n-th step of all tasks together."""

    def __init__(self, step: int | None, act: Callable[[], None]) -> None:
        self.step, self.act, self.seen = step, act, 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.seen += 1
        if self.seen == self.step:
            self.act()


class Life:
    """One life of a session: everything it can be asked, in an order of its own."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tools = Recorder()
        self.tools.on_call = self.echo
        self.started: list[str] = []
        self.ended: Counter[str] = Counter()
        self.overdue: list[str] = []
        self.tags = 0
        self.generation = 0
        self.killed = False

    async def echo(self, call: ToolCall, _: trio.Event) -> Json:
        await trio.sleep(0.005)
        return call.input

    async def live(self, session: Session) -> None:
        parts = [self.ask, self.notify, self.wait, self.terminate] * 2
        self.chance.shuffle(parts)
        for part in parts:
            began_s = trio.current_time()
            try:
                with trio.fail_after(BOUND_S):
                    await part(session)
            except SessionsError as error:
                self.ended[type(error).__name__] += 1
            except trio.TooSlowError:
                self.overdue.append(f"{part.__name__} took {trio.current_time() - began_s:g} s")
            else:
                self.ended["well"] += 1
        self.generation = session.generation

    async def run(self, session: Session, kind: str) -> str | None:
        """Give the id of a cell that goes on."""
        self.tags += 1
        source = SOURCES[kind].format(tag=f"{kind}#{self.tags}")
        cell = await session.execute(request(source, enabled_tools=[ECHO]), self.tools)
        self.started.append(cell.cell_id)
        response = await cell.initial_response()
        if isinstance(response, Result) and response.error_text is not None:
            self.ended["cell failed"] += 1
        return cell.cell_id if isinstance(response, Yielded) else None

    async def ask(self, session: Session) -> None:
        await self.run(session, "ask")

    async def notify(self, session: Session) -> None:
        await self.run(session, "notify")

    async def wait(self, session: Session) -> None:
        cell_id = await self.run(session, "later")
        while cell_id is not None:
            outcome = await session.wait(WaitRequest(cell_id, 5_000))
            cell_id = cell_id if isinstance(outcome.response, Yielded) else None

    async def terminate(self, session: Session) -> None:
        cell_id = await self.run(session, "stay")
        if cell_id is not None:
            await session.terminate(cell_id)

    async def go_on(self, session: Session) -> None:
        """See that a session runs again once its host is back, after it has said so at most once."""
        try:
            await self.run(session, "ask")
        except SessionReset:
            self.ended["SessionReset"] += 1
            await self.run(session, "ask")
        self.ended["well"] += 1
        self.generation = session.generation

    def check(self) -> None:
        """Raise for what must not be."""
        asked = Counter(str(call.input) for call in self.tools.calls)
        twice = [tag for tag, times in asked.items() if times > 1]
        closed = Counter(self.tools.closed)
        assert not twice, f"ran twice: {twice}"
        assert max(closed.values(), default=0) <= 1, f"closed twice: {closed}"
        assert {*self.started} <= {*closed}, f"never closed: {({*self.started}) - ({*closed})}"
        assert not self.overdue, self.overdue
        assert self.ended["SessionReset"] == (self.generation > 1), "a loss was not told, or more than once"


# --- a host in memory


class World:
    """Where a host in memory is, and what there is to kill of it."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.networks = [self.network]
        self.hosts: list[Host] = []
        self.scope = trio.CancelScope()

    async def dial(self) -> trio.abc.Stream:
        return await self.network.dial()

    async def keep_host(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve, and serve anew whenever the host was killed."""
        while True:
            host = scripted()
            self.hosts.append(host)
            with trio.CancelScope() as self.scope:
                async with serving(host, listener=self.network.listener):
                    task_status.started()
                    task_status = trio.TASK_STATUS_IGNORED
                    await trio.sleep_forever()
            self.network = MemoryNetwork()
            self.networks.append(self.network)

    def cut(self) -> None:
        for network in self.networks:
            for here, there in network.pairs:
                for half in (here.send_stream, here.receive_stream, there.send_stream, there.receive_stream):
                    half.close()

    def kill(self, kind: str) -> None:
        host = self.hosts[-1]
        match kind:
            case "host":
                self.cut()
                self.scope.cancel()
            case "connection":
                self.cut()
            case "session":
                for session in [*host.sessions.values()]:
                    session.end()
            case _:
                for session in host.sessions.values():
                    for cell in [*session.cells.values()]:
                        cell.error = "exec runtime ended unexpectedly"
                        cell.scope.cancel()
                        cell.end("completed")


def scripted() -> Host:
    """Make a host whose Python scripts do what the JavaScript does."""
    host = Host()

    async def play(cell: Cell, kind: str, tag: str) -> None:
        if kind == "notify":
            cell.notify(tag)
        await cell.tool("echo", f'"{tag}"'.encode())
        if kind in {"later", "stay"}:
            cell.yield_control()
            await trio.sleep(0.02 if kind == "later" else math.inf)
        cell.text(tag)

    class Scripts(dict[str, Callable[[Cell], Awaitable[None]]]):
        def __missing__(self, source: str) -> Callable[[Cell], Awaitable[None]]:
            kind = next(kind for kind, text in SOURCES.items() if source.startswith(text.partition("{tag}")[0]))
            return partial(play, kind=kind, tag=_tag(whole[0]))

    whole: list[str] = [""]

    def note(cell: Cell) -> None:
        whole[0] = host.seen_executions[-1]

    host.on_cell = note
    host.scripts = Scripts()
    return host


def _tag(source: str) -> str:
    return source.partition("echo('")[2].partition("'")[0]


async def in_memory(seed: int, kind: str, step: int | None) -> tuple[Life, int]:
    """Live one life beside a host in memory; gives it and how many steps it took."""
    life, world = Life(seed), World()
    async with trio.open_nursery() as nursery:
        await nursery.start(world.keep_host)
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        instrument = AtStep(step, lambda: world.kill(kind))
        async with open_provider("http://in-memory:1", dial=world.dial) as provider:
            await trio.testing.wait_all_tasks_blocked()
            idle = trio.lowlevel.current_statistics().tasks_living
            session = await provider.create_session()
            trio.lowlevel.add_instrument(instrument)
            try:
                await life.live(session)
            finally:
                trio.lowlevel.remove_instrument(instrument)
            await quietly(session)
            live = provider.statistics().sessions_live
            await trio.testing.wait_all_tasks_blocked(0.01)
            ended = trio.lowlevel.current_statistics().tasks_living - idle
        with trio.fail_after(5):
            while any(host.sessions for host in world.hosts):
                await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked()
        left = trio.lowlevel.current_statistics().tasks_living - before
        nursery.cancel_scope.cancel()
    executions = [source for host in world.hosts for source in host.seen_executions]
    assert len(executions) == len({*executions}), "a script ran twice"
    assert (live, ended, left) == (0, 0, 0), f"left: {live} sessions, {ended} tasks of a session, {left} of a provider"
    life.check()
    life.killed = step is not None and instrument.seen >= step
    return life, instrument.seen


async def quietly(session: Session) -> None:
    try:
        await session.shutdown()
    except SessionsError:
        return


# --- a host process with real engines


def end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


async def for_real(seed: int, kind: str, step: int | None) -> tuple[Life, int]:
    """Live one life beside a real host process, which is brought back when it is killed; gives it and its steps."""
    life = Life(seed)
    connections: list[trio.SocketStream] = []
    async with running(OURS) as (url, process):
        address = [url]

        async def dial() -> trio.abc.Stream:
            name, port = address[0].rpartition("/")[2].split(":")
            stream = await trio.open_tcp_stream(name, int(port))
            connections.append(stream)
            return stream

        def kill() -> None:
            match kind:
                case "host":
                    process.kill()
                case "engine":
                    for guard in psutil.Process(process.pid).children():
                        end(guard.children(recursive=True))
                case "session":  # No other program can end a session of a host: what all engines hang on is ended.
                    end(psutil.Process(process.pid).children())
                case _:
                    for stream in connections:
                        stream.socket.close()

        instrument = AtStep(step, kill)
        async with open_provider(url, dial=dial) as provider:
            session = await provider.create_session()
            family = psutil.Process(process.pid).children(recursive=True)
            trio.lowlevel.add_instrument(instrument)
            try:
                await life.live(session)
            finally:
                trio.lowlevel.remove_instrument(instrument)
            if kind == "host" and step is not None and instrument.seen >= step:
                async with running(OURS) as (address[0], again):
                    await life.go_on(session)
                    family += psutil.Process(again.pid).children(recursive=True)
                    await quietly(session)
            else:
                family += psutil.Process(process.pid).children(recursive=True)
                await quietly(session)
            live = provider.statistics().sessions_live
            with trio.fail_after(5):
                while provider.statistics().connections_open:
                    await trio.testing.wait_all_tasks_blocked(0.01)
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive, f"engine processes are left: {alive}"
    assert live == 0
    life.check()
    life.killed = step is not None and instrument.seen >= step
    return life, instrument.seen


# --- seeds


class Steps:
    """How many steps an untouched life has: counted once of each sort, so that seeds spread over all of them.

    Beside a host process a life has fewer steps than with a host in memory, whose tasks are counted too. How many
    they are is not the same each time: the last tenth is left to chance, not to be missed by most.
    """

    total = 0
    total_for_real = 0

    @classmethod
    def of(cls, seed: int) -> int:
        if not cls.total:
            clock = trio.testing.MockClock(autojump_threshold=0)
            _, cls.total = trio.run(in_memory, 0, "host", None, clock=clock)
        if is_real(seed):
            if not cls.total_for_real:
                _, steps = trio.run(for_real, 0, "host", None)
                cls.total_for_real = steps * 9 // 10
            return 1 + (seed // REAL_EVERY * 37 + random.Random(seed).randrange(37)) % cls.total_for_real
        # A step of each hundredth part, and within it as chance has it.
        return 1 + (seed // len(KINDS) * 37 + random.Random(seed).randrange(10)) % cls.total


def is_real(seed: int) -> bool:
    return seed % REAL_EVERY < len(KINDS) and has_engine()


def play(seed: int) -> Life:
    """Play one seed; raises what must not be."""
    kind, step = KINDS[seed % len(KINDS)], Steps.of(seed)
    if is_real(seed):
        return trio.run(for_real, seed, kind, step)[0]
    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(in_memory, seed, kind, step, clock=clock)[0]


@functools.cache
def has_engine() -> bool:
    """Say whether JavaScript can run here."""
    try:
        find_engine()
    except EngineNotFound:
        return False
    return True


def main(seeds: int = 1_000, first: int = 0) -> int:
    """Play seeds, tell what broke and how it went."""
    began_s, ended, broken, killed = time.monotonic(), Counter[str](), list[str](), 0
    for seed in range(first, first + seeds):
        try:
            life = play(seed)
        except Exception as error:
            broken.append(f"seed {seed} ({KINDS[seed % len(KINDS)]}, step {Steps.of(seed)}): {error!r}")
            sys.stdout.write(f"{broken[-1]}\n{''.join(traceback.format_exception(error))}")
            sys.stdout.flush()
        else:
            ended += life.ended
            killed += life.killed
    told = ", ".join(f"{name} {times}" for name, times in ended.most_common())
    seconds = time.monotonic() - began_s
    sys.stdout.write(
        f"{seeds} seeds, {killed} killed something, {len(broken)} broken, {seconds:.0f} s; calls ended: {told}\n"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
