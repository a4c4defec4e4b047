"""What ends an engine process, on both engines: each way costs its own cell, and nothing else.

After each end the process is gone, the session's next cell runs in another one with the values that were stored
before, and the process of another session still is the one it was.
"""

import functools
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import open_channel
from actors.sessions.host import HostOptions, _engines, _launching, _pool, serve_host
from tests.actors.sessions.host.engines import ENGINES, IN_PROC, engine_pids, gone, handle_of
from tests.actors.sessions.host.peer import Peer, Seen, open_peer, tool

pytestmark = [IN_PROC, pytest.mark.slow]
HEAP_BYTES = 64 * 1024 * 1024
ENDED = "exec runtime ended unexpectedly"
HEAP = f"exec cell ran out of memory: its JavaScript heap is limited to {HEAP_BYTES} bytes"
PATIENCE_S = 20


@attrs.frozen(kw_only=True)
class End:
    """What was seen of the end of a cell, and of all others after it."""

    outcome: str | None
    texts: list[str]
    error: str | None
    replaced: bool = True
    kept: list[str] = attrs.field(factory=lambda: ["1"])
    other_kept: list[str] = attrs.field(factory=lambda: ["2"])
    other_stayed: bool = True


@pytest.fixture(autouse=True)
def _patient_host(monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine may keep a process from coming to rest in its usual time, which is no fault of the process; and
    # its session's next cell is to wait for that one, not to take another.
    monkeypatch.setattr(_pool, "_START_AT_FIRST_S", 1.0)
    monkeypatch.setattr(_pool, "_SMOOTHING", 0.0)


class House:
    """A host with two sessions, each with a process and a stored value of its own."""

    def __init__(self, peer: Peer, other: Peer, ours: int, others: int) -> None:
        self.peer, self.other, self.ours, self.others = peer, other, ours, others

    async def end(self, run: Callable[[int], Awaitable[Seen]]) -> End:
        """Let something end the session's process, whose handle it is given; then run a cell in each session."""
        with trio.fail_after(PATIENCE_S):
            with handle_of(self.ours) as process:
                seen = await run(process)
                with trio.move_on_after(5):  # What is seen then says more than that it took too long.
                    await gone(process)
            after, other = await self.peer.run("text(load('k'))"), await self.other.run("text(load('k'))")
            now = engine_pids() - {self.others}
            replaced, stayed = self.ours not in now, self.others in engine_pids()
            (self.ours,) = now
        return End(
            outcome=seen.outcome,
            texts=seen.texts,
            error=seen.error,
            replaced=replaced,
            kept=after.texts,
            other_kept=other.texts,
            other_stayed=stayed,
        )

    async def run_and_end(self, source: str) -> End:
        return await self.end(lambda _: self.peer.run(source, yield_time_ms=60_000, enabled_tools=[tool("t")]))


@asynccontextmanager
async def opened(path: str, nursery: trio.Nursery) -> AsyncGenerator[House, None]:
    options = HostOptions(engine_path=path, warm_engines=0)
    endpoint: str = await nursery.start(functools.partial(serve_host, options=options), "grpc://127.0.0.1:0")
    limits = wire.SessionCellExecutionLimits(max_heap_size_bytes=HEAP_BYTES)
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery, cell_execution_limits=limits)
        other = await open_peer(channel, nursery)
        await other.run("store('k', 2)")
        (others,) = engine_pids()
        await peer.run("store('k', 1)")
        (ours,) = engine_pids() - {others}
        try:
            yield House(peer, other, ours, others)
        finally:
            await leave(peer, other)


async def leave(*peers: Peer) -> None:
    for peer in peers:
        peer.leased.cancel()
        with trio.move_on_after(5, shield=True):
            await peer.ended.wait()


@pytest.fixture(params=ENGINES)
async def house(request: pytest.FixtureRequest, nursery: trio.Nursery) -> AsyncIterator[House]:
    async with opened(request.param, nursery) as house:
        yield house


LOOPS = {
    "plain": "for (;;);",
    "caught": "for (;;) { try { for (;;); } catch {} finally { continue } }",
    "microtasks": "const turn = () => Promise.resolve().then(turn); await turn();",
    "awaits": "for (;;) await null;",
    "timer": "await new Promise(() => setTimeout(() => { for (;;); }, 1));",
    "toJSON": "text({ toJSON() { for (;;); } });",
    "regular expression": "/^(a+)+$/.test('a'.repeat(60) + 'b');",
    "sort": "new Array(1e6).fill(0).map((_, i) => 1e6 - i).sort(() => { for (;;); });",
}


async def test_an_endless_loop_is_ended_by_a_termination_and_costs_its_process_only(house: House) -> None:
    """Killed: a terminated cell whose process is not killed; one whose process is kept for the next cell."""

    async def terminate(_: int, loop: str) -> Seen:
        first = await house.peer.run(f"text('before'); store('k', 3); yield_control(); {loop} text('after')")
        with trio.fail_after(5):
            terminated = (await house.peer.terminate(first.cell_id))[1]
        assert (first.outcome, first.texts) == ("yielded", ["before"])
        return terminated

    ends = {name: await house.end(functools.partial(terminate, loop=loop)) for name, loop in LOOPS.items()}

    terminated = End(outcome="terminated", texts=[], error=None)
    assert {name: end for name, end in ends.items() if end != terminated} == {}


GREED = {
    "arrays": "const a = []; for (;;) a.push(new Array(1000).fill(a.length))",
    "arrays after an await": "await null; const a = []; for (;;) a.push(new Array(1000).fill(a.length))",
    "small objects": "const a = []; for (;;) a.push({ a: a.length })",
    "one great array": "'x'.repeat(5e8).split('')",
    "text": "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length, [...'x'.repeat(1e5)])",
}


async def test_a_cell_that_takes_too_much_memory_is_told_so_and_costs_its_process_only(house: House) -> None:
    """Killed: a death by the heap that is told as any other. Seen failing for the one great array."""
    ends = {name: await house.run_and_end(f"text('before'); {source}") for name, source in GREED.items()}

    full = End(outcome="completed", texts=["before"], error=HEAP)
    assert {name: end for name, end in ends.items() if end != full} == {}


async def test_buffers_are_refused_to_the_script_or_end_its_process_and_cost_no_other(house: House) -> None:
    """No heap counts them: a limit of the system stops them, or the watch over memory."""
    with trio.fail_after(PATIENCE_S):
        seen = await house.peer.run(
            "text('before'); const a = []; for (;;) a.push(new Uint8Array(50e6).fill(1))", yield_time_ms=60_000
        )
        after, other = await house.peer.run("text(load('k'))"), await house.other.run("text(load('k'))")

    assert (seen.outcome, seen.texts, after.texts, other.texts) == ("completed", ["before"], ["1"], ["2"])
    assert str(seen.error).startswith(("RangeError: Array buffer allocation failed", "exec cell ran out of memory"))
    assert house.others in engine_pids()


UNREST = {
    "awaits": "(async () => { for (;;) await null })(); exit();",
    "finally": "try { exit() } finally { for (;;); }",
    "microtasks": "const turn = () => Promise.resolve().then(turn); turn(); exit();",
    "then": "Promise.resolve().then(() => { for (;;); }); exit();",
    "heap": "const a = []; (async () => { for (;;) { await null; a.push(new Array(1000).fill(1)) } })(); exit()",
}


async def test_a_process_that_does_not_come_to_rest_after_its_cell_is_ended(house: House) -> None:
    """Killed: a process that never rests and is kept."""
    ends = {name: await house.run_and_end(f"text('whole'); {source}") for name, source in UNREST.items()}

    whole = End(outcome="completed", texts=["whole"], error=None)
    assert {name: end for name, end in ends.items() if end != whole} == {}


REGISTRIES = {
    "plain": "new FinalizationRegistry(() => {})",
    "by the prototype": "new (FinalizationRegistry.prototype.constructor)(() => {})",
    "subclass": "new (class extends FinalizationRegistry {})(() => {})",
    "reflect": "Reflect.construct(FinalizationRegistry, [() => {}])",
    "another target": "Reflect.construct(FinalizationRegistry, [() => {}], Object)",
    "of another one": "new (Object.getPrototypeOf(new FinalizationRegistry(() => {})).constructor)(() => {})",
}


async def test_a_process_whose_cell_made_a_registry_is_not_used_again(house: House) -> None:
    """Killed: a registry that is not noticed, whose callbacks then run during another cell."""
    ends = {name: await house.run_and_end(f"const made = {way}; text(typeof made)") for name, way in REGISTRIES.items()}

    made = End(outcome="completed", texts=["object"], error=None)
    assert {name: end for name, end in ends.items() if end != made} == {}


async def test_a_crash_keeps_what_was_put_out_and_costs_its_cell_only(house: House) -> None:
    """Killed: a process whose end its cell is not told of; a death by a signal that is told as one by the heap."""

    async def crash(process: int, number: signal.Signals) -> Seen:
        told = len(house.peer.notifications)
        source = "text('before'); store('k', 3); notify('on'); await new Promise(() => {})"
        async with house.peer.executing(source, yield_time_ms=60_000) as (_, events):
            await house.peer.until(lambda: len(house.peer.notifications) > told)
            signal.pidfd_send_signal(process, number)
            return Seen((await events.receive()).outcome)

    numbers = (signal.SIGKILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGTERM)
    ends = {number.name: await house.end(functools.partial(crash, number=number)) for number in numbers}

    crashed = End(outcome="completed", texts=["before"], error=ENDED)
    assert {name: end for name, end in ends.items() if end != crashed} == {}


# What no script can make a harness do, a harness of our own does, in place of running the cell that asks for it.
FAULTS = {
    "a length that is no length": "writeAll(new Uint8Array([255, 255, 255, 255]))",
    "a frame without a head": "writeAll(new Uint8Array([1, 0, 0, 0, 91]))",
    "no JSON": "writeText(4, '[nothing')",
    "JSON that is no frame": "write({ kind: 'text' })",
    "a frame of no known kind": "write(['nonsense', cell])",
    "a frame without a number": "write(['done'])",
    "a number where text belongs": "write(['store', cell, 1, 2])",
    "more stored than there is room for": "for (const k of 'ab') write(['store', cell, k, '1'.repeat(5e6)])",
    "a tool that nobody offered": "write(['call', cell, 1, 77, null])",
    "an image without a place": "write(['image', cell])",
    "half a frame and an end": "writeAll(new Uint8Array([200, 0, 0, 0, 1])); leave()",
    "frames of other cells": "for (const n of [cell - 1, cell + 1]) { write(['store', n, 'k', '9']);"
    " write(['done', n, 'x', false]) } leave()",
    "an exit": "leave()",
    "a closed pipe, where an engine can close it": "host ? leave() : fs.closeSync(1)",
    "an error of its own": "throw 'fault'",
}


@pytest.mark.parametrize("path", ENGINES)
async def test_a_process_that_breaks_the_protocol_or_leaves_costs_its_cell_only(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    """Killed: bad frames that are passed over; whole frames before a bad one that are dropped; a length looked at only
    once more has come; frames of another cell that are taken for the running one's; an exit its cell is not told of."""
    real, spot = _engines.HARNESS.read_text(), "bridge.inside = prelude"
    assert real.count(spot) == 1
    faults = "\n".join(f"case '// {name}': {fault}; return;" for name, fault in FAULTS.items())
    harness = tmp_path / "harness.mjs"
    harness.write_text(
        real.replace(
            spot, f"if (source.startsWith('//')) say.text(cell, 'before');\n  switch (source) {{ {faults} }}\n  {spot}"
        )
    )
    for module in (_engines, _launching):
        monkeypatch.setattr(module, "HARNESS", harness)
    async with opened(path, nursery) as house:
        ends = {name: await house.run_and_end(f"// {name}") for name in FAULTS}

    broken = End(outcome="completed", texts=["before"], error=ENDED)
    assert {name: end for name, end in ends.items() if end != broken} == {}


@pytest.mark.parametrize("path", ENGINES)
async def test_a_process_is_replaced_after_so_many_cells_and_when_it_grew(path: str, nursery: trio.Nursery) -> None:
    """Killed: a process that is never replaced; no look at what a process keeps once its cell is over."""
    options = HostOptions(engine_path=path, warm_engines=0, cells_per_engine_max=3)
    endpoint: str = await nursery.start(functools.partial(serve_host, options=options), "grpc://127.0.0.1:0")
    async with open_channel(endpoint) as channel:
        peer = await open_peer(channel, nursery)
        await peer.run("")
        (first,) = engine_pids()
        with handle_of(first) as worn:
            await peer.run("")
            kept = engine_pids()
            await peer.run("")
            await gone(worn)
        await peer.run("")
        (second,) = engine_pids()
        with handle_of(second) as grown:
            await peer.run("globalThis.kept = new Uint8Array(200e6).fill(1)")
            await gone(grown)
        last = await peer.run("text(typeof kept)")
        await leave(peer)

    assert kept == {first}
    assert last.texts == ["undefined"]


async def test_a_termination_does_not_wait_for_what_a_spinning_process_cannot_take(
    house: House, nursery: trio.Nursery
) -> None:
    """Answers of tools fill the pipe of a process that does not read any more. Killed: a kill behind the writes
    that wait."""

    async def silent(_: wire.ToolCall) -> None:
        return None

    async def terminate(_: int) -> Seen:
        source = "for (let i = 0; i < 4; i++) tools.t(i); await new Promise(r => setTimeout(r, 1)); for (;;);"
        first = await house.peer.run(source, enabled_tools=[tool("t")], yield_time_ms=200)
        with trio.fail_after(5):
            for call in house.peer.calls:
                await house.peer.complete(call.invocation_id, "x" * 3_000_000)
            return (await house.peer.terminate(first.cell_id))[1]

    await nursery.start(house.peer.answer_tools, silent)
    end = await house.end(terminate)

    assert len(house.peer.calls) == 4
    assert end == End(outcome="terminated", texts=[], error=None)
