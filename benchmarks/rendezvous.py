"""What does the rendezvous cost? Each question with its unit:

* How much memory do 1,000 idle streams take? (resident MB of the rendezvous process; bar 60)
* How much later does a small frame arrive than straight from one to the other, at 200 a second? (ms at the 99th
  percentile; bar 5)
* How much goes through it? (MB/s of 60 KiB frames one way, and of 1 MiB messages between the two real ends; bar 100)
* How long after a cut has a client its next answer, the relay being back at once, or after a second in which it
  was away? (ms from when it is back, worst of all; bar 300)

Beside it stands a bare proxy: two blocking sockets, and every message of one written to the other. What it costs, any
router of WebSockets written in Python costs. Both take turns. The rendezvous, the bare proxy and both sides of the bulk
are processes of their own, on loopback; give them two cores that do nothing else, or `--alone`, as `executor.py` has
it. CPU is told beside each rate, because on a busy machine only that is steady.

    python -m benchmarks.rendezvous [--streams 1000] [--seconds 6] [--alone] [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import psutil
import trio

from actors.harness import RELAY_RECOVERY, Client, RelayDialer, open_client
from actors.relay import Data, Frame, PhysicalConnection, decode, encode
from actors.rendezvous import bearer, open_registry_client
from benchmarks._relayed import TOKEN
from benchmarks._rendezvous_roles import KEY, executor_connection, harness_connection, line_of, start, stop
from benchmarks.executor import run_alone

ROUNDS = 3
AWAY_S = (0.0, 1.0)
# After so long a connection counts as one that lasted: the way back begins with quick tries again.
LASTED_S = 5.1


@attrs.frozen(kw_only=True)
class Row:
    """One answer."""

    question: str
    unit: str
    value: float
    bar: float | None
    higher_is_better: bool = False
    bare: float | None = None
    """The same of the bare proxy."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value >= self.bar if self.higher_is_better else self.value <= self.bar

    @property
    def ratio(self) -> float | None:
        return self.value / self.bare if self.bare else None

    def as_fields(self) -> dict[str, object]:
        return {**attrs.asdict(self), "ratio": self.ratio, "met": self.met}

    def __str__(self) -> str:
        beside = f", bare proxy {self.bare:.2f}" if self.bare is not None else ""
        ratio = f"; ratio {self.ratio:.2f}" if self.ratio is not None else ""
        judged = "" if self.bar is None else f"; bar {self.bar:g} {'met' if self.met else 'MISSED'}"
        return f"{self.question}: {self.value:.2f} {self.unit}{beside}{ratio}{judged}. {self.note}"


@attrs.define
class Cpu:
    """CPU seconds of a process between two looks."""

    process: psutil.Process
    began: float = 0.0

    def look(self) -> float:
        times = self.process.cpu_times()
        spent = times.user + times.system - self.began
        self.began = times.user + times.system
        return spent


# Memory and latency.


async def measure_idle(url: str, pid: int, streams: int) -> Row:
    process = psutil.Process(pid)
    empty = process.memory_info().rss / 1e6
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
        for number in range(streams):
            if number % 100 == 0:
                await executor_connection(stack, url, f"idle-{number // 100}")
            await harness_connection(stack, url, client, f"idle-{number // 100}", f"stream-{number}")
        await trio.sleep(1)
        idle = process.memory_info().rss / 1e6
    bar = 60 if streams >= 1000 else None
    return Row(question=f"{streams} idle streams", unit="MB", value=idle, bar=bar, note=f"Empty {empty:.1f} MB.")


async def measure_latency(url: str, bare_url: str, seconds: float) -> Row:
    ways: dict[str, list[float]] = {"through": [], "bare": [], "straight": []}
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
        pairs = {"straight": await straight_pair(stack)}
        for name, address in (("through", url), ("bare", bare_url)):
            far = await executor_connection(stack, address, "small")
            pairs[name] = await harness_connection(stack, address, client, "small", "measured"), far
        for _ in range(ROUNDS):
            for name, (near, far) in pairs.items():
                ways[name] += await latencies(near, far, seconds / ROUNDS)
    p50, p99 = ({name: percentile(values, p) for name, values in ways.items()} for p in (50, 99))
    return Row(
        question="added to a small frame, 99th percentile",
        unit="ms",
        value=p99["through"] - p99["straight"],
        bar=5,
        bare=p99["bare"] - p99["straight"],
        note=", ".join(f"{name} {p50[name]:.2f} / {p99[name]:.2f}" for name in ways) + " (median / 99th).",
    )


class Straight:
    """A frame at a time over one socket, from one end of it to the other."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def send(self, frame: bytes) -> None:
        await self._stream.send_all(frame)

    async def receive(self) -> bytes:
        return bytes(await self._stream.receive_some())


async def straight_pair(stack: AsyncExitStack) -> tuple[Straight, Straight]:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    await stack.enter_async_context(listener)
    near = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
    far = await listener.accept()
    for stream in (near, far):
        await stack.enter_async_context(stream)
    return Straight(near), Straight(far)


async def latencies(
    sender: PhysicalConnection | Straight, receiver: PhysicalConnection | Straight, seconds: float
) -> list[float]:
    out: list[float] = []
    count = int(200 * seconds)

    async def receive() -> None:
        while len(out) < count:
            frame = decode(await receiver.receive())  # type: ignore[arg-type]
            if isinstance(frame.body, Data):
                out.append((time.perf_counter() - float(frame.body.payload.decode())) * 1000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        began = trio.current_time()
        for number in range(count):
            await trio.sleep_until(began + number / 200)
            await sender.send(encode(Frame("measured", Data(number, b"%.9f" % time.perf_counter()))))
    return out


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


# Bulk.


def measure_bulk(url: str, bare_url: str, pids: tuple[int, int], kind: str, seconds: float) -> Row:
    rates: dict[str, list[float]] = {"through": [], "bare": []}
    costs: dict[str, list[float]] = {"through": [], "bare": [], "executor": []}
    for _ in range(ROUNDS):
        for name, address, pid in (("through", url, pids[0]), ("bare", bare_url, pids[1])):
            rate, router, executor = bulk_once(address, pid, kind, seconds / 2 / ROUNDS)
            rates[name].append(rate)
            costs[name].append(router)
            costs["executor"].append(executor)
    least = {name: min(values) for name, values in costs.items()}
    return Row(
        question=f"bulk, {kind}s",
        unit="MB/s",
        value=max(rates["through"]),
        bar=100,
        higher_is_better=True,
        bare=max(rates["bare"]),
        note=f"CPU per MB: rendezvous {least['through']:.2f}, bare {least['bare']:.2f}, "
        f"executor's side {least['executor']:.2f} ms.",
    )


def bulk_once(url: str, pid: int, kind: str, seconds: float) -> tuple[float, float, float]:
    """Give the rate, and what a megabyte cost the router and the executor's side, in ms of CPU."""
    source = start(f"{kind}-source", url)
    assert line_of(source) == "ready"
    sink = start(f"{kind}-sink", url, str(seconds))
    cpus = [Cpu(psutil.Process(pid)), Cpu(psutil.Process(source.pid))]
    for cpu in cpus:
        cpu.look()
    rate = float(line_of(sink))
    spent = [1000 * cpu.look() / (rate * seconds) for cpu in cpus]
    for process in (source, sink):
        stop(process)
    return rate, spent[0], spent[1]


# The way back after a cut.


class Road:
    """Everything goes over it, so that it can be cut, and closed for a while."""

    def __init__(self) -> None:
        self.target = 0
        self.is_open = True
        self._scopes: set[trio.CancelScope] = set()

    async def serve(self, near: trio.SocketStream) -> None:
        if not self.is_open:
            return
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            async with await trio.open_tcp_stream("127.0.0.1", self.target) as far, trio.open_nursery() as nursery:
                nursery.start_soon(self._carry, near, far, scope)
                nursery.start_soon(self._carry, far, near, scope)
        self._scopes.discard(scope)

    async def _carry(self, one: trio.SocketStream, other: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            async for data in one:
                await other.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    def cut(self) -> None:
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def client_over_a_road(road: Road) -> AsyncGenerator[Client, None]:
    """A rendezvous, our own executor and our own client of it, each as anybody has them."""
    with ExitStack() as processes, tempfile.TemporaryDirectory() as folder:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, road.serve, 0, host="127.0.0.1"))
            url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            rendezvous = start("rendezvous", url)
            processes.callback(stop, rendezvous)
            road.target = int(line_of(rendezvous).rpartition(":")[2])
            token = Path(folder) / "token"
            token.touch(0o600)
            token.write_text(TOKEN)
            command = [sys.executable, "-m", "actors.cli", "executor", "--registry", url, "--token-file", str(token)]
            command += ["--environment-id", "cut"]
            executor = subprocess.Popen(  # noqa: ASYNC220 - once.
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            processes.callback(stop, executor)
            await trio.to_thread.run_sync(line_of, executor)
            async with open_registry_client(url, bearer(TOKEN)) as registry:
                dialer = RelayDialer(partial(registry.connect, "cut", KEY.public_key), KEY)
                async with open_client("cut", dialer=dialer, recovery=RELAY_RECOVERY) as client:
                    yield client
            nursery.cancel_scope.cancel()


async def measure_resume(away_s: float) -> Row:
    took: list[float] = []
    road = Road()
    async with client_over_a_road(road) as client:
        for _ in range(ROUNDS):
            await client.status()
            await trio.sleep(LASTED_S)
            road.is_open = away_s == 0
            road.cut()
            await trio.sleep(away_s)
            road.is_open, back = True, time.perf_counter()
            await client.status()
            took.append((time.perf_counter() - back) * 1000)
    return Row(
        question=f"first answer after a cut, relay away for {away_s:g} s",
        unit="ms",
        value=max(took),
        bar=300,
        note=f"Each: {', '.join(f'{each:.0f}' for each in took)}.",
    )


def measure(streams: int, seconds: float) -> list[Row]:
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        print(row, file=sys.stderr, flush=True)

    with ExitStack() as stack:
        rendezvous, bare = start("rendezvous"), start("bare")
        for process in (rendezvous, bare):
            stack.callback(stop, process)
        url, bare_url = line_of(rendezvous), line_of(bare)
        if streams:
            tell(trio.run(measure_idle, url, rendezvous.pid, streams))
        tell(trio.run(measure_latency, url, bare_url, seconds))
        for kind in ("frame", "message"):
            tell(measure_bulk(url, bare_url, (rendezvous.pid, bare.pid), kind, seconds))
    for away_s in AWAY_S:
        tell(trio.run(measure_resume, away_s))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--alone", action="store_true", help="run before everything else on the machine")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.alone:
        run_alone()
    rows = measure(args.streams, args.seconds)
    if args.json:
        print(json.dumps([row.as_fields() for row in rows]))
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
