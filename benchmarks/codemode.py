"""Is our code-session host as fast as a deployed one, when one client drives both in turns?

A grpcio client calls our host and the one that GREENROOM_CODEMODE_HOST_BIN names, each in a process of its own, in
turns; the best round counts, since other work on the machine only ever takes away. Without that program only ours is
measured, and the reason is printed. On a busy machine look at `cpu ms`: what the host, its engine processes included,
spends on one of each hardly depends on who else runs.

    GREENROOM_CODEMODE_HOST_BIN=.../codex-code-mode-host python benchmarks/codemode.py
    python benchmarks/codemode.py --rounds 5 --seconds 4 --only cells,tools --json

`--alone` has the benchmark and all that it starts run before everything else on the machine, as on an idle one; it
takes the right to do so (SCHED_RR), and is not for a machine that others need.

Bars (ours against the other): cells one after another >= 1.2; 16 at once >= 1.0; tool round trips >= 0.9; text >= 0.75.
An endless loop is ended within 20 ms, the first answer after a start comes within 400 ms, and the host process holds at
most 60 MB then. Ours is compiled before it starts, as the installation of a package does it.
"""

import argparse
import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# The folder of this file has a `grpc` of its own: it must not be searched.
ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

import grpc  # noqa: E402
import psutil  # noqa: E402

from actors.sessions._wire import code_mode_pb2 as wire  # noqa: E402

OTHER = "GREENROOM_CODEMODE_HOST_BIN"
LISTEN = ("--listen", "grpc://127.0.0.1:0")
SERVICE = "/codex.code_mode.v1.CodeModeHost/"
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
]
BARS = {"cells": 1.2, "cells_16": 1.0, "tools": 0.9, "text": 0.75}
UNITS = {"cells": "cells/s", "cells_16": "cells/s", "cells_16_sessions": "cells/s", "tools": "calls/s",
         "tools_at_once": "calls/s", "text": "MB/s", "text_3_bytes": "MB/s", "small_texts": "items/s"}  # fmt: skip


class Session:
    """One session of a host, driven by a blocking client."""

    def __init__(self, channel: grpc.Channel) -> None:
        def unary(name: str, response: type) -> Callable:
            return channel.unary_unary(
                SERVICE + name,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=response.FromString,
            )

        def stream(name: str) -> Callable:
            return channel.unary_stream(SERVICE + name, request_serializer=lambda message: message.SerializeToString())

        self._execute, self._subscribe = stream("Execute"), stream("SubscribeToToolCalls")
        self._complete = unary("CompleteToolCall", wire.CompleteToolCallResponse)
        self._terminate = unary("Terminate", wire.WaitResponse)
        self._close = unary("CloseSession", wire.CloseSessionResponse)
        self._lease = stream("OpenSession")(wire.OpenSessionRequest())
        self.id = wire.SessionEvent.FromString(next(self._lease)).opened.session_id
        threading.Thread(target=self._ignore, args=(self._lease,), daemon=True).start()

    def _ignore(self, events: Iterator[bytes]) -> None:
        try:
            for _ in events:
                pass
        except grpc.RpcError:
            pass

    def run(self, source: str, *tools: str, yield_ms: int = 60_000) -> bytes:
        """Run a cell and return its outcome, not read: to read it is no work of the host."""
        request = wire.ExecuteRequest(
            session_id=self.id,
            execution_id=str(uuid.uuid4()),
            tool_call_id="call",
            source=source,
            yield_time_ms=yield_ms,
        )
        for name in tools:
            request.enabled_tools.add(
                name=name, tool_name=wire.ToolName(name=name), description="d", kind=wire.TOOL_KIND_FUNCTION
            )
        return [*self._execute(request)][-1]

    def terminate(self, cell_id: str) -> None:
        self._terminate(wire.TerminateRequest(session_id=self.id, cell_id=cell_id))

    def echo_tools(self) -> None:
        """Answer each call with what it was given."""
        calls = self._subscribe(wire.SubscribeToToolCallsRequest(session_id=self.id))
        calls.initial_metadata()

        def answer() -> None:
            try:
                for data in calls:
                    call = wire.ToolCall.FromString(data)
                    answered = wire.CompleteToolCallRequest(session_id=self.id, invocation_id=call.invocation_id)
                    answered.succeeded.output_json = call.input_json
                    self._complete(answered)
            except grpc.RpcError:
                pass

        threading.Thread(target=answer, daemon=True).start()

    def close(self) -> None:
        self._close(wire.CloseSessionRequest(session_id=self.id))


def command_of(kind: str) -> list[str]:
    if kind == "ours":
        return [sys.executable, "-c", "import sys, _greenroom; sys.exit(_greenroom.main())", "codemode-host", *LISTEN]
    return [os.environ[OTHER], *LISTEN]


@functools.cache
def compiled() -> str:
    """Compile what a host imports, as the installation of a package does, whatever this environment says."""
    place = tempfile.mkdtemp(prefix="greenroom-compiled-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-c", "import actors.cli._codemode_host, actors.sessions.host._serving"],
        check=True,
        env=environment(place),
    )
    return place


def environment(place: str | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": place or compiled()}


class Running:
    """A host process, and what it has cost so far."""

    def __init__(self, process: subprocess.Popen[str], endpoint: str) -> None:
        self.process, self.endpoint = psutil.Process(process.pid), endpoint

    def cpu_s(self) -> float:
        total = 0.0
        for one in (self.process, *self.process.children(recursive=True)):
            try:
                times = one.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system
        return total


@contextmanager
def running(kind: str) -> Iterator[tuple[Running, grpc.Channel]]:
    process = subprocess.Popen(
        command_of(kind),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip().removeprefix("http://")
        with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
            yield Running(process, endpoint), channel
    finally:
        process.kill()
        process.wait()


def at_once(workers: int, seconds: float, make: Callable[[], Callable[[], object]]) -> int:
    calls = [make() for _ in range(workers)]
    for call in calls:
        call()
    counts = [0] * workers
    end = time.perf_counter() + seconds

    def work(index: int) -> None:
        while time.perf_counter() < end:
            calls[index]()
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def measure(kind: str, seconds: float, only: set[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Ask one fresh host everything: rates, and CPU milliseconds for one of each."""
    rates: dict[str, float] = {}
    cpu_ms: dict[str, float] = {}
    compiled()
    begin = time.perf_counter()
    with running(kind) as (host, channel):
        session = Session(channel)
        session.run("text(1)")
        rates["first_answer_ms"] = (time.perf_counter() - begin) * 1e3
        rates["resident_mb"] = host.process.memory_info().rss / 1e6

        def timed(what: str, work: Callable[[], float]) -> None:
            if only and what.split("_")[0] not in only:
                return
            before, began = host.cpu_s(), time.perf_counter()
            count = work()
            rates[what] = count / (time.perf_counter() - began)
            cpu_ms[what] = (host.cpu_s() - before) / count * 1e3

        def cells() -> float:
            end, count = time.perf_counter() + seconds, 0
            while time.perf_counter() < end:
                session.run("text(1)")
                count += 1
            return count

        def of_another_session() -> Callable[[], object]:
            other = Session(channel)
            return lambda: other.run("text(1)")

        timed("cells", cells)
        timed("cells_16", lambda: at_once(16, seconds, lambda: lambda: session.run("text(1)")))
        timed("cells_16_sessions", lambda: at_once(16, seconds, of_another_session))
        measure_tools(session, timed)
        measure_text(session, timed)
        if not only or "ending" in only:
            rates["ending_ms"] = ending_ms(session)
        session.close()
    return rates, cpu_ms


Timed = Callable[[str, Callable[[], float]], None]


def measure_tools(session: Session, timed: Timed) -> None:
    session.echo_tools()
    session.run("for (let i = 0; i < 20; i++) await tools.echo(i)", "echo")

    def in_turn() -> float:
        session.run("for (let i = 0; i < 500; i++) await tools.echo(i)", "echo")
        return 500

    def together() -> float:
        session.run("await Promise.all(Array.from({length: 1000}, (_, i) => tools.echo(i)))", "echo")
        return 1000

    timed("tools", in_turn)
    timed("tools_at_once", together)


def measure_text(session: Session, timed: Timed) -> None:
    large = "const x = {}; for (let i = 0; i < 32; i++) text(x)"

    def megabytes(value: str) -> Callable[[], float]:
        return lambda: sum(len(session.run(large.format(value))) for _ in range(4)) / 1e6

    def items() -> float:
        session.run("for (let i = 0; i < 20_000; i++) text('x')")
        return 20_000

    timed("text", megabytes("'x'.repeat(1 << 20)"))
    timed("text_3_bytes", megabytes("'\\u20ac'.repeat(349525)"))
    timed("small_texts", items)


def ending_ms(session: Session) -> float:
    took: list[float] = []
    for _ in range(15):
        outcome = wire.ExecuteEvent.FromString(session.run("yield_control(); for (;;);")).outcome
        time.sleep(0.02)
        begin = time.perf_counter()
        session.terminate(outcome.cell_id)
        took.append((time.perf_counter() - begin) * 1e3)
    return sorted(took)[len(took) // 2]


def best_of(rounds: list[dict[str, float]], *, small: Callable[[str], bool]) -> dict[str, float]:
    names = {name for one in rounds for name in one}
    return {name: (min if small(name) else max)(one[name] for one in rounds if name in one) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="", help="cells,tools,text,small,ending")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", action="store_true", help="run before everything else on the machine")
    arguments = parser.parse_args()
    if arguments.alone:
        run_alone()
    only = {name for name in arguments.only.split(",") if name}
    kinds = ["ours"]
    if os.environ.get(OTHER):
        kinds.append("other")
    else:
        print(f"only ours: {OTHER} does not name another host", file=sys.stderr)
    rounds: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind in kinds:
            rounds[kind].append(measure(kind, arguments.seconds, only))
    rates = {
        kind: best_of([one for one, _ in rounds[kind]], small=lambda name: name.endswith(("_ms", "_mb")))
        for kind in kinds
    }
    cpu_ms = {kind: best_of([one for _, one in rounds[kind]], small=lambda _: True) for kind in kinds}
    if arguments.json:
        print(json.dumps({"rates": rates, "cpu_ms": cpu_ms, "load": os.getloadavg()}))
        return
    for what, unit in UNITS.items():
        if what in rates["ours"]:
            print(row(what, unit, rates, cpu_ms))
    for what, bar in (("ending_ms", 20), ("first_answer_ms", 400), ("resident_mb", 60)):
        if what in rates["ours"]:
            print(f"{what:18} " + "  ".join(f"{kind} {rates[kind][what]:8.1f}" for kind in kinds) + f"  bar {bar}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def run_alone() -> None:
    """Have us, and all that we start, run before everything else."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def row(what: str, unit: str, rates: dict[str, dict[str, float]], cpu_ms: dict[str, dict[str, float]]) -> str:
    cells = "  ".join(f"{kind} {rates[kind][what]:9.0f}" for kind in rates)
    spent = "  ".join(f"{kind} {cpu_ms[kind][what]:7.3f}" for kind in rates)
    ratio = ""
    if "other" in rates:
        ratio = f"ratio {rates['ours'][what] / rates['other'][what]:.2f}"
        ratio += f"  of cpu {cpu_ms['other'][what] / max(cpu_ms['ours'][what], 1e-9):.2f}"
    bar = f"  bar {BARS[what]}" if what in BARS else ""
    return f"{what:18} {cells}  {unit:8} cpu ms {spent}  {ratio}{bar}"


if __name__ == "__main__":
    main()
