"""Is our gRPC as fast as the reference implementation, when both are driven from Python?

Three servers (ours, grpcio's synchronous one, grpc.aio) answer the same grpcio client over a unix socket, and
three clients call the same grpcio server, each in a process of its own. Runs are interleaved; the best round
counts, since other work on the machine only ever takes away. On a busy machine look at the rows "server cpu":
what a server answers per second of its own CPU hardly depends on who else runs.

    python benchmarks/grpc.py            # everything, about a minute
    python benchmarks/grpc.py --rounds 5 --json

Bars (ours against the better of the two others): unary, one after another >= 0.75; 100 at once >= 1.0; 64 KiB
messages >= 0.9. A killed caller is noticed within 10 ms. A server with 1,000 open leases stays within 80 MB.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# This file has the name of the package it measures against: its folder must not be searched.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import grpc  # noqa: E402
import psutil  # noqa: E402
import trio  # noqa: E402

from actors.sessions import grpc as ours  # noqa: E402

SMALL = b"sixteen bytes!!!"
CHUNK = bytes(64 * 1024)
CHUNKS = 1_500
ECHO, PUSH, LEASE = "/bench.Bench/Echo", "/bench.Bench/Push", "/bench.Bench/Lease"
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

# --- servers: each prints "ready" and serves until it is killed; lost leases are written to stdout with the
# time


def say(*words: object) -> None:
    print(*words, flush=True)


def serve_ours(path: str) -> None:
    async def echo(call: ours.ServerCall, request: bytes) -> bytes:
        return request

    async def push(call: ours.ServerCall, request: bytes, send: ours.Send[bytes]) -> None:
        for _ in range(int(request)):
            await send(CHUNK)

    async def lease(call: ours.ServerCall, request: bytes, send: ours.Send[bytes]) -> None:
        await send(b"open")
        try:
            await trio.sleep_forever()
        finally:
            say("lost", time.monotonic())

    async def main() -> None:
        raw = ours.RAW
        server = ours.Server(
            [
                ours.unary(ours.Method(ECHO, raw, raw), echo),
                ours.server_stream(ours.Method(PUSH, raw, raw, server_streaming=True), push),
                ours.server_stream(ours.Method(LEASE, raw, raw, server_streaming=True), lease),
            ]
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, ours.listen_unix(path))
            say("ready")

    trio.run(main)


def serve_sync(path: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def push(request: bytes, context: object) -> Iterator[bytes]:
        for _ in range(int(request)):
            yield CHUNK

    server = grpc.server(ThreadPoolExecutor(128), options=OPTIONS)
    handlers = {
        "Echo": grpc.unary_unary_rpc_method_handler(lambda request, context: request),
        "Push": grpc.unary_stream_rpc_method_handler(push),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Bench", handlers),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    say("ready")
    server.wait_for_termination()


def serve_aio(path: str) -> None:
    async def echo(request: bytes, context: object) -> bytes:
        return request

    async def push(request: bytes, context: object) -> object:
        for _ in range(int(request)):
            yield CHUNK

    async def lease(request: bytes, context: object) -> object:
        yield b"open"
        try:
            await asyncio.sleep(1e6)
        finally:
            say("lost", time.monotonic())

    async def main() -> None:
        server = grpc.aio.server(options=OPTIONS)
        handlers = {
            "Echo": grpc.unary_unary_rpc_method_handler(echo),
            "Push": grpc.unary_stream_rpc_method_handler(push),
            "Lease": grpc.unary_stream_rpc_method_handler(lease),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Bench", handlers),))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        say("ready")
        await server.wait_for_termination()

    asyncio.run(main())


SERVERS = {"ours": serve_ours, "grpcio": serve_sync, "grpc.aio": serve_aio}

# --- clients: each measures one thing for so many seconds and returns calls or megabytes per second


def drive_sync(path: str, what: str, seconds: float) -> float:
    with grpc.insecure_channel(f"unix:{path}", options=OPTIONS) as channel:
        echo, push = channel.unary_unary(ECHO), channel.unary_stream(PUSH)
        echo(SMALL)
        if what == "stream":
            begin = time.perf_counter()
            size = sum(len(chunk) for chunk in push(b"%d" % CHUNKS))
            return size / 1e6 / (time.perf_counter() - begin)
        if what == "sequential":
            count, begin = 0, time.perf_counter()
            while (now := time.perf_counter()) < begin + seconds:
                echo(SMALL)
                count += 1
            return count / (now - begin)
        counts = [0] * 100
        begin = time.perf_counter()

        def work(index: int) -> None:
            while time.perf_counter() < begin + seconds:
                echo(SMALL)
                counts[index] += 1

        threads = [threading.Thread(target=work, args=(index,)) for index in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.perf_counter() - begin)


def drive_aio(path: str, what: str, seconds: float) -> float:
    async def main() -> float:
        async with grpc.aio.insecure_channel(f"unix:{path}", options=OPTIONS) as channel:
            echo, push = channel.unary_unary(ECHO), channel.unary_stream(PUSH)
            await echo(SMALL)
            begin = time.perf_counter()
            if what == "stream":
                size = 0
                async for chunk in push(b"%d" % CHUNKS):
                    size += len(chunk)
                return size / 1e6 / (time.perf_counter() - begin)
            counts = [0] * (1 if what == "sequential" else 100)

            async def work(index: int) -> None:
                while time.perf_counter() < begin + seconds:
                    await echo(SMALL)
                    counts[index] += 1

            await asyncio.gather(*(work(index) for index in range(len(counts))))
            return sum(counts) / (time.perf_counter() - begin)

    return asyncio.run(main())


def drive_ours(path: str, what: str, seconds: float) -> float:
    raw = ours.RAW
    echo_method = ours.Method(ECHO, raw, raw)
    push_method = ours.Method(PUSH, raw, raw, server_streaming=True)

    async def main() -> float:
        async with ours.open_channel(f"unix:{path}") as channel:
            await channel.unary(echo_method, SMALL)
            begin = time.perf_counter()
            if what == "stream":
                size = 0
                async with channel.stream(push_method, b"%d" % CHUNKS) as chunks:
                    async for chunk in chunks:
                        size += len(chunk)
                return size / 1e6 / (time.perf_counter() - begin)
            counts = [0] * (1 if what == "sequential" else 100)

            async def work(index: int) -> None:
                while time.perf_counter() < begin + seconds:
                    await channel.unary(echo_method, SMALL)
                    counts[index] += 1

            async with trio.open_nursery() as nursery:
                for index in range(len(counts)):
                    nursery.start_soon(work, index)
            return sum(counts) / (time.perf_counter() - begin)

    return trio.run(main)


CLIENTS = {"ours": drive_ours, "grpcio": drive_sync, "grpc.aio": drive_aio}
KINDS = {"sequential": 0.75, "concurrent": 1.0, "stream": 0.9}

# --- the run


@contextmanager
def running(kind: str, folder: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    path = f"{folder}/{kind}-{time.monotonic_ns()}.sock"
    command = [sys.executable, __file__, "--serve", kind, path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process, path
    finally:
        process.kill()
        process.wait()


def drive(kind: str, path: str, what: str, seconds: float) -> float:
    command = [sys.executable, __file__, "--drive", kind, path, what, str(seconds)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_rates(folder: str, rounds: int, seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    best: dict[str, dict[str, dict[str, float]]] = {"server": {}, "client": {}, "server cpu": {}}

    def note(side: str, what: str, kind: str, rate: float) -> None:
        found = best[side].setdefault(what, {})
        found[kind] = max(found.get(kind, 0.0), rate)

    for _ in range(rounds):
        for what in KINDS:
            for kind in SERVERS:
                with running(kind, folder) as (server, path):
                    before = cpu_s(server.pid)
                    rate = drive("grpcio", path, what, seconds)
                    note("server", what, kind, rate)
                    units = CHUNKS * len(CHUNK) / 1e6 if what == "stream" else rate * seconds
                    # Units per second of the server's CPU: here, too, the best is the largest.
                    note("server cpu", what, kind, units / (cpu_s(server.pid) - before))
            with running("grpcio", folder) as (_, path):
                for kind in CLIENTS:
                    note("client", what, kind, drive(kind, path, what, seconds))
    return best


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def measure_loss_ms(kind: str, folder: str) -> float:
    """Kill a caller that holds a lease; how long until the handler knows?"""
    found: list[float] = []
    with running(kind, folder) as (server, path):
        for _ in range(5):
            caller = subprocess.Popen([sys.executable, __file__, "--hold", path], stdout=subprocess.PIPE, text=True)
            assert caller.stdout is not None
            assert caller.stdout.readline() == "open\n"
            begin = time.monotonic()
            caller.send_signal(signal.SIGKILL)
            assert server.stdout is not None
            found.append((float(server.stdout.readline().split()[1]) - begin) * 1e3)
            caller.wait()
    return sorted(found)[len(found) // 2]


def hold(path: str) -> None:
    channel = grpc.insecure_channel(f"unix:{path}")
    for _ in channel.unary_stream(LEASE)(b""):
        say("open")


def measure_lease_mb(kind: str, folder: str, leases: int = 1_000) -> tuple[float, float]:
    """Open 1,000 leases on ten connections: seconds until all are open, and what the server then holds."""
    with running(kind, folder) as (server, path):
        own = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.insecure_channel(f"unix:{path}", options=own) for _ in range(10)]
        begin = time.perf_counter()
        calls = [channels[index % 10].unary_stream(LEASE)(b"") for index in range(leases)]
        for call in calls:
            next(call)
        seconds = time.perf_counter() - begin
        megabytes = psutil.Process(server.pid).memory_info().rss / 1e6
        for channel in channels:
            channel.close()
        return seconds, megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return SERVERS[arguments.serve[0]](arguments.serve[1])
    if arguments.drive:
        kind, path, what, seconds = arguments.drive
        return say(CLIENTS[kind](path, what, float(seconds)))
    if arguments.hold:
        return hold(arguments.hold)
    with tempfile.TemporaryDirectory() as folder:
        rates = measure_rates(folder, arguments.rounds, arguments.seconds)
        loss_ms = {kind: measure_loss_ms(kind, folder) for kind in ("ours", "grpc.aio")}
        leases = {kind: measure_lease_mb(kind, folder) for kind in ("ours", "grpc.aio")}
    if arguments.json:
        return say(json.dumps({"rates": rates, "loss_ms": loss_ms, "leases": leases, "load": os.getloadavg()}))
    for side, table in rates.items():
        for what, bar in KINDS.items():
            row = table[what]
            others = max(rate for kind, rate in row.items() if kind != "ours")
            unit = "MB/s" if what == "stream" else "calls/s"
            if side == "server cpu":
                unit = "MB/cpu-s" if what == "stream" else "calls/cpu-s"
            cells = "  ".join(f"{kind} {rate:8.0f}" for kind, rate in row.items())
            ratio = row["ours"] / others
            bars = f"bar {bar}" if side == "server" else ""
            say(f"{side:10} {what:11} {cells}  {unit:11} ratio {ratio:.2f} {bars}")
    say("killed caller noticed after ms:", {kind: round(ms, 1) for kind, ms in loss_ms.items()}, "bar 10")
    for kind, (seconds, megabytes) in leases.items():
        say(
            f"1,000 leases: {kind} open after {seconds:.2f} s, {megabytes:.0f} MB",
            "bar 80" if kind == "ours" else "",
        )
    return None


if __name__ == "__main__":
    main()
