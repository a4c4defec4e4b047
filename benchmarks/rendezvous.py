"""What does the rendezvous cost? Three questions, each with its unit:

* How much memory do 1,000 idle streams take? (resident MB of the rendezvous process; bar 60)
* How much later does a small frame arrive than without it, at 200 a second? (ms at the 99th percentile; bar 5)
* How much goes through it? (MB/s of 60 KiB frames one way, and of 1 MiB messages between the two real ends; bar 100)

The rendezvous, the executor's side and the harness's side are processes of their own, on loopback; give it two cores
that do nothing else. CPU is told beside each rate, because on a busy machine only that is steady.

    python benchmarks/rendezvous.py [--streams 1000] [--seconds 5] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress
from functools import partial

import attrs
import psutil
import trio

from actors.noise import Identity
from actors.relay import (
    Ack,
    Data,
    Frame,
    PhysicalConnection,
    RelayLimits,
    Resume,
    WebSocketDialer,
    decode,
    encode,
    open_harness_stream,
    serve_executor,
)
from actors.rendezvous import bearer, open_registry_client

TOKEN = "a-token-for-measuring-only"
RECORD = 60 * 1024
WINDOW_FRAMES = 32
KEY = Identity.from_seed(bytes(range(96)))


# The process under test imports nothing that is not its own.
RENDEZVOUS = f"""
import trio
from actors.rendezvous import Grant, open_rendezvous

async def main():
    async with open_rendezvous([Grant(token="{TOKEN}", name="all")]) as rendezvous:
        print(rendezvous.url, flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


def start(role: str, *args: str) -> subprocess.Popen[str]:
    program = ["-c", RENDEZVOUS] if role == "rendezvous" else [__file__, "--role", role, *args]
    # `-P`: a neighbour of this file has the name of a package.
    return subprocess.Popen([sys.executable, "-P", *program], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


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


async def executor_connection(stack: AsyncExitStack, url: str, environment_id: str) -> PhysicalConnection:
    async with open_registry_client(url, bearer(TOKEN)) as client:
        registration = await client.register(environment_id, KEY.public_key)
    return await stack.enter_async_context(WebSocketDialer().dial(registration.url))


async def harness_connection(stack: AsyncExitStack, client, environment_id: str, stream_id: str) -> PhysicalConnection:
    bundle = await client.connect(environment_id, KEY.public_key)
    connection = await stack.enter_async_context(WebSocketDialer().dial(bundle.websocket_url))
    await connection.send(encode(Frame(stream_id, Resume())))
    return connection


# Memory and latency: one driver process.


async def measure_idle_and_latency(url: str, pid: int, streams: int, seconds: float) -> dict[str, object]:
    process = psutil.Process(pid)
    empty = process.memory_info().rss / 1e6
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
        executors = [await executor_connection(stack, url, f"idle-{n}") for n in range(streams // 100 + 1)]
        for number in range(streams):
            await harness_connection(stack, client, f"idle-{number // 100}", f"stream-{number}")
        await trio.sleep(1)
        idle = process.memory_info().rss / 1e6
        harness = await harness_connection(stack, client, f"idle-{streams // 100}", "measured")
        through = await latencies(harness, executors[-1], seconds)
        near, far = await direct_pair(stack)
        direct = await latencies(near, far, seconds)
    return {
        "resident_mb_empty": round(empty, 1),
        f"resident_mb_with_{streams}_streams": round(idle, 1),
        "latency_ms_p50": [round(percentile(through, 50), 2), round(percentile(direct, 50), 2)],
        "latency_ms_p99": [round(percentile(through, 99), 2), round(percentile(direct, 99), 2)],
        "added_ms_p99": round(percentile(through, 99) - percentile(direct, 99), 2),
    }


async def direct_pair(stack: AsyncExitStack) -> tuple[PhysicalConnection, PhysicalConnection]:
    """A WebSocket without a router: dialled here, answered in a process that only echoes to a second one."""
    echo = start("direct")
    stack.callback(echo.kill)
    port = line_of(echo)
    near = await stack.enter_async_context(WebSocketDialer().dial(f"ws://127.0.0.1:{port}/near"))
    return near, near


async def latencies(sender: PhysicalConnection, receiver: PhysicalConnection, seconds: float) -> list[float]:
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


async def run_direct() -> None:
    """Forward frames back to their sender: the same two hops of a socket, without a router's work."""
    import trio_websocket

    async def serve(request) -> None:
        socket = await request.accept()
        with suppress(trio_websocket.ConnectionClosed):
            while True:
                await socket.send_message(await socket.get_message())

    async with trio.open_nursery() as nursery:
        server = await nursery.start(
            partial(trio_websocket.serve_websocket, serve, "127.0.0.1", 0, None, receive_buffer_size=65536)
        )
        print(server.port, flush=True)


# Bulk: the executor's side sends, the harness's side receives, each in its own process.


async def run_frame_source(url: str) -> None:
    async with AsyncExitStack() as stack:
        connection = await executor_connection(stack, url, "bulk")
        print("ready", flush=True)
        payload, credit, seq = os.urandom(RECORD), 0, 0
        while True:
            while credit == 0:
                frame = decode(await connection.receive())  # type: ignore[arg-type]
                credit += WINDOW_FRAMES if isinstance(frame.body, Ack) else 0
            await connection.send(encode(Frame("bulk", Data(seq, payload))))
            seq, credit = seq + 1, credit - 1


async def run_frame_sink(url: str, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
        connection = await harness_connection(stack, client, "bulk", "bulk")
        for _ in range(2):
            await connection.send(encode(Frame("bulk", Ack())))
        got, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            await connection.receive()
            got += 1
            if got % WINDOW_FRAMES == 0:
                await connection.send(encode(Frame("bulk", Ack())))
        print(got * RECORD / 1e6 / (time.perf_counter() - began), flush=True)


async def run_message_source(url: str) -> None:
    block = os.urandom(1024 * 1024)

    async def handler(stream) -> None:
        await stream.receive()
        while True:
            await stream.send(block)

    async with open_registry_client(url, bearer(TOKEN)) as client:
        registration = await client.register("messages", KEY.public_key)
        validate = partial(client.verdict, "messages", registration.executor_registration_id)
        async with WebSocketDialer().dial(registration.url) as connection:
            print("ready", flush=True)
            await serve_executor(
                connection,
                KEY,
                environment_id="messages",
                registration_id=registration.executor_registration_id,
                validate=validate,
                handler=handler,
            )


async def run_message_sink(url: str, seconds: float) -> None:
    async with open_registry_client(url, bearer(TOKEN)) as client:
        bundle = await client.connect("messages", KEY.public_key)
        async with open_harness_stream(bundle, KEY, dialer=WebSocketDialer(), limits=RelayLimits()) as stream:
            await stream.send(b"go")
            got, began = 0, time.perf_counter()
            while time.perf_counter() - began < seconds:
                got += len(await stream.receive())
            print(got / 1e6 / (time.perf_counter() - began), flush=True)


def measure_bulk(url: str, pid: int, kind: str, seconds: float) -> dict[str, object]:
    source = start(f"{kind}-source", "--url", url)
    assert line_of(source) == "ready"
    cpus = {"rendezvous": Cpu(psutil.Process(pid)), "executor": Cpu(psutil.Process(source.pid))}
    sink = start(f"{kind}-sink", "--url", url, "--seconds", str(seconds))
    for cpu in cpus.values():
        cpu.look()
    rate = float(line_of(sink))
    spent = {f"{name}_cpu_ms_per_mb": round(1000 * cpu.look() / (rate * seconds), 2) for name, cpu in cpus.items()}
    for process in (source, sink):
        process.kill()
        process.wait()
    return {f"{kind}_mb_per_s": round(rate, 1), **{f"{kind}_{name}": value for name, value in spent.items()}}


def measure(streams: int, seconds: float) -> dict[str, object]:
    rendezvous = start("rendezvous")
    url = line_of(rendezvous)
    try:
        figures = trio.run(measure_idle_and_latency, url, rendezvous.pid, streams, seconds)
        for kind in ("frame", "message"):
            figures |= measure_bulk(url, rendezvous.pid, kind, seconds)
    finally:
        rendezvous.kill()
        rendezvous.wait()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    args = parser.parse_args()
    match args.role:
        case "direct":
            trio.run(run_direct)
        case "frame-source":
            trio.run(run_frame_source, args.url)
        case "frame-sink":
            trio.run(run_frame_sink, args.url, args.seconds)
        case "message-source":
            trio.run(run_message_source, args.url)
        case "message-sink":
            trio.run(run_message_sink, args.url, args.seconds)
        case _:
            figures = measure(args.streams, args.seconds)
            print(json.dumps(figures) if args.json else "\n".join(f"{k:40} {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
