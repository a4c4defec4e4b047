"""How does our executor compare with the existing one? Both in one run, in turns, on loopback, over each transport.

* How many `environment/status` are answered a second, one at a time and with 64 in flight? (bar 0.4 of the existing)
* How long from `process/start` of `true` until its `process/closed`? (ms; bar 5)
* How fast comes the output of `head -c 50000000 /dev/zero`, and a file of 16 MiB through `fs/readFile`? (MB/s; bar 0.5)
* How much memory does an idle executor take? (resident MB; bar 1.2)
* Over Noise, how long from a cut of the relay, which is back at once, to the first answer of the resumed session?
  (ms; bar 300)

Over Noise this process is registry, rendezvous and harness in one (`_relayed.py`), so that no router is measured;
`rendezvous.py` measures ours. The existing executor is `codex exec-server`; where it is comes from the environment
variable GREENROOM_CODEX_BIN. Without it only ours is measured, and the ratios are left out. The client is this
process: blocking sockets and no decoding of what it only counts, so that next to nothing of a figure is its own. It
acknowledges at once (TCP_QUICKACK): the existing one leaves Nagle's algorithm on, and would wait 40 ms for that again
and again. Best of the rounds: on a busy machine the others say how busy it was. CPU of the server is told beside the
rates, for the same reason.

    GREENROOM_CODEX_BIN=.../bin/codex python -m benchmarks.executor [--only plain|noise] [--rounds 5] [--quick] [--json]

`--alone` has the benchmark and all that it starts run before everything else on the machine, as on an idle one; it
takes the right to do so (SCHED_RR), and is not for a machine that others need.
"""

import argparse
import base64
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import attrs
import psutil

from benchmarks._blocking import Asker, receive_some
from benchmarks._relayed import ENVIRONMENT, TOKEN, Relay, RelayedConnection

_GIVEN_UP_MAX = 100
FILE_BYTES = 16 * 1024 * 1024
IN_FLIGHT = 64
STATUS = b'{"id":7,"method":"environment/status","params":null}'


class Connection(Asker):
    """A WebSocket client that does as little as it can."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("ws://").strip("/").split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(bytes(16)).decode()
        lines = [
            "GET / HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._input = bytearray()
        while (end := self._input.find(b"\r\n\r\n")) < 0:
            self._input += receive_some(self._socket)
        del self._input[: end + 4]
        self.call("initialize", {"clientName": "benchmark"})
        self.send({"method": "initialized"})

    def close(self) -> None:
        self._socket.close()

    def send(self, message: object) -> None:
        self._socket.sendall(frame(json.dumps(message).encode()))

    def send_raw(self, messages: list[bytes]) -> None:
        self._socket.sendall(b"".join(map(frame, messages)))

    def receive(self) -> bytes:
        """Give the next message; pings need no answer in so short a time."""
        while True:
            held = self._input
            length, start = (held[1] & 0x7F, 2) if len(held) >= 2 else (0, 1 << 30)
            if length >= 126 and len(held) >= 10:
                start = 4 if length == 126 else 10
                length = int.from_bytes(held[2:start], "big")
            elif length >= 126:
                start = 1 << 30
            if len(held) >= start + length:
                message = bytes(held[start : start + length])
                is_text = held[0] & 0x0F in {1, 2}
                del held[: start + length]
                if is_text:
                    return message
                continue
            self._input += receive_some(self._socket)


def frame(data: bytes) -> bytes:
    """Write a client's frame, with a mask of nothing."""
    if len(data) < 126:
        return bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data
    return bytes([0x81, 0xFE]) + len(data).to_bytes(2, "big") + bytes(4) + data


@attrs.frozen
class Body:
    """An executor that runs."""

    name: str
    process: psutil.Process
    open: Callable[[], Connection | RelayedConnection]
    cut: Callable[[], None] | None = None
    """Cut the relay and wait until the executor is back."""
    resume: Callable[[str], RelayedConnection] | None = None
    idle_mb: float = 0.0

    @contextmanager
    def connected(self) -> Iterator[Connection | RelayedConnection]:
        connection = self.open()
        try:
            yield connection
        finally:
            connection.close()

    def at_rest(self) -> "Body":
        """Tell how large it is after one client has come and gone."""
        self.open().close()
        time.sleep(0.2)
        return attrs.evolve(self, idle_mb=self.process.memory_info().rss / 1e6)


@contextmanager
def started_process(command: list[str], home: str, *, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    variables = {**os.environ, "CODEX_HOME": home, "CODEX_API_KEY": TOKEN, "OPENAI_API_KEY": TOKEN}
    process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL, env=variables)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def plain(name: str, command: list[str], home: str) -> Iterator[Body]:
    command = [*command, "--listen", "ws://127.0.0.1:0"]
    with started_process(command, home, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while not (found := re.search(rb"ws://[^\s\"]+", process.stdout.readline())):
            pass
        yield Body(name, psutil.Process(process.pid), partial(Connection, found[0].decode())).at_rest()


@contextmanager
def relayed(name: str, command: list[str], home: str) -> Iterator[Body]:
    relay = Relay()
    token = Path(home) / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    where = ["--registry" if name == "ours" else "--remote", relay.registry_url, "--environment-id", ENVIRONMENT]
    command = [*command, *where, *(["--token-file", str(token)] if name == "ours" else [])]
    with closing(relay), started_process(command, home, stdout=subprocess.DEVNULL) as process:
        relay.wait_for_executor()
        opened = partial(RelayedConnection, relay)
        yield Body(name, psutil.Process(process.pid), opened, relay.cut, opened).at_rest()


def sequential(body: Body, scale: float) -> float:
    count = int(4000 * scale)
    request = [STATUS]
    with body.connected() as connection:
        began = time.perf_counter()
        for _ in range(count):
            connection.send_raw(request)
            connection.receive()
        return count / (time.perf_counter() - began)


def in_flight(body: Body, scale: float) -> float:
    count = int(12_000 * scale)
    request = [STATUS]
    with body.connected() as connection:
        began = time.perf_counter()
        connection.send_raw(request * IN_FLIGHT)
        for _ in range(count // 16):
            for _ in range(16):
                connection.receive()
            connection.send_raw(request * 16)
        for _ in range(IN_FLIGHT):
            connection.receive()
        return count / (time.perf_counter() - began)


def start_to_close_ms(body: Body, scale: float) -> float:
    took: list[float] = []
    with body.connected() as connection:
        for number in range(int(60 * scale) or 1):
            began = time.perf_counter()
            connection.send(started(f"p{number}", ["/bin/true"]))
            connection.wait_for(b"process/closed")
            took.append((time.perf_counter() - began) * 1e3)
    return sorted(took)[len(took) // 2]


def started(process_id: str, argv: list[str]) -> dict[str, object]:
    params = {"processId": process_id, "argv": argv, "cwd": "file:///", "env": {}, "tty": False}
    return {"id": process_id, "method": "process/start", "params": params}


def output_mb_s(body: Body, scale: float) -> float:
    size = int(50_000_000 * scale)
    with body.connected() as connection:
        began = time.perf_counter()
        connection.send(started("p", ["/usr/bin/head", "-c", str(size), "/dev/zero"]))
        connection.wait_for(b"process/closed")
        return size / 1e6 / (time.perf_counter() - began)


def read_file_mb_s(body: Body, path: str) -> float:
    request = json.dumps({"id": 7, "method": "fs/readFile", "params": {"path": f"file://{path}"}}).encode()
    with body.connected() as connection:
        began = time.perf_counter()
        connection.send_raw([request])
        connection.receive()
        return FILE_BYTES / 1e6 / (time.perf_counter() - began)


def new_session(body: Body) -> str:
    """Open one, by a later dial of the executor if it gave up the last: between questions nobody answers its pings."""
    assert body.cut is not None
    for _ in range(_GIVEN_UP_MAX):
        try:
            return body.open().session_id
        except OSError:
            body.cut()
    return body.open().session_id


def resume_ms(body: Body, scale: float) -> float:
    assert body.cut is not None
    assert body.resume is not None
    took: list[float] = []
    for _ in range(int(5 * scale) or 1):
        session_id = new_session(body)
        began = time.perf_counter()
        body.cut()
        with closing(body.resume(session_id)) as resumed:
            resumed.call("environment/status", None)
            took.append((time.perf_counter() - began) * 1e3)
    return sorted(took)[len(took) // 2]


@attrs.frozen
class Figure:
    """One question."""

    name: str
    unit: str
    measure: Callable[[Body], float]
    bar_ratio: float | None = None
    bar: float | None = None
    higher_is_better: bool = True


def measured(figure: Figure, bodies: list[Body], rounds: int) -> dict[str, object]:
    values: dict[str, list[float]] = {body.name: [] for body in bodies}
    cpu: dict[str, list[float]] = {body.name: [] for body in bodies}
    for number in range(rounds):
        # Turns about: whoever goes first finds another machine.
        for body in bodies if number % 2 else bodies[::-1]:
            before = body.process.cpu_times()
            values[body.name].append(figure.measure(body))
            after = body.process.cpu_times()
            cpu[body.name].append(after.user + after.system - before.user - before.system)
    best = {name: (max if figure.higher_is_better else min)(each) for name, each in values.items()}
    told: dict[str, object] = {"figure": figure.name, "unit": figure.unit, **{k: round(v, 2) for k, v in best.items()}}
    told |= {f"{name}_cpu_s": round(min(each), 3) for name, each in cpu.items()}
    ratio = best["ours"] / best["existing"] if "existing" in best else None
    met = figure.bar is None or best["ours"] <= figure.bar
    if ratio is not None:
        told["ratio"] = round(ratio, 2)
        if figure.bar_ratio is not None:
            met = ratio >= figure.bar_ratio if figure.higher_is_better else ratio <= figure.bar_ratio
    bar = figure.bar if figure.bar is not None else f"{figure.bar_ratio} x"
    return told | {"bar": bar, "met": met if ratio is not None or figure.bar is not None else None}


def figures_of(transport: str, file: Path, scale: float) -> list[Figure]:
    figures = [
        Figure("resident memory, idle", "MB", lambda body: body.idle_mb, 1.2, None, False),
        Figure("status, one at a time", "/s", lambda body: sequential(body, scale), 0.4),
        Figure(f"status, {IN_FLIGHT} in flight", "/s", lambda body: in_flight(body, scale), 0.4),
        Figure("`true`, start to close", "ms", lambda body: start_to_close_ms(body, scale), None, 5, False),
        Figure("output of a process", "MB/s", lambda body: output_mb_s(body, scale), 0.5),
        Figure("`fs/readFile`, 16 MiB", "MB/s", lambda body: read_file_mb_s(body, str(file)), 0.5),
    ]
    if transport == "noise":
        figures.append(Figure("cut to first answer", "ms", lambda body: resume_ms(body, scale), None, 300, False))
    return [attrs.evolve(figure, name=f"{transport}: {figure.name}") for figure in figures]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("plain", "noise"))
    parser.add_argument("--quick", action="store_true", help="a fifth of the work, for a look")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--alone", action="store_true", help="run before everything else on the machine")
    options = parser.parse_args()
    if options.alone:
        run_alone()
    scale = 0.2 if options.quick else 1.0
    commands = {"ours": [sys.executable, "-m", "actors.cli", "executor"]}
    if codex := os.environ.get("GREENROOM_CODEX_BIN", ""):
        commands["existing"] = [codex, "exec-server"]
    else:
        print("only ours: GREENROOM_CODEX_BIN does not say where the existing executor is", file=sys.stderr)
    rows: list[dict[str, object]] = []
    for transport, running in (("plain", plain), ("noise", relayed)):
        if options.only in (None, transport):
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                (file := folder / "file").write_bytes(os.urandom(FILE_BYTES))
                bodies = [
                    stack.enter_context(running(name, command, str(folder))) for name, command in commands.items()
                ]
                for figure in figures_of(transport, file, scale):
                    rows.append(row := measured(figure, bodies, options.rounds))
                    print(json.dumps(row) if options.json else line(row), flush=True)
    return 1 if any(row["met"] is False for row in rows) else 0


def run_alone() -> None:
    """Have us, and all that we start, run before everything else."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def line(row: dict[str, object]) -> str:
    facts = [
        f"{name} {row[name]} {row['unit']} ({row[f'{name}_cpu_s']} s CPU)"
        for name in ("ours", "existing")
        if name in row
    ]
    ratio = f"; ratio {row['ratio']}" if "ratio" in row else ""
    met = {True: "met", False: "MISSED", None: "not judged"}[row["met"]]  # type: ignore[index]
    return f"{row['figure']}: {', '.join(facts)}{ratio}; bar {row['bar']} {met}"


if __name__ == "__main__":
    sys.exit(main())
