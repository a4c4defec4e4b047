"""What runs beside `rendezvous.py` in processes of its own: `python -m benchmarks._rendezvous_roles ROLE [...]`.

The rendezvous under test; a bare proxy, which is the least a router of WebSockets can be; and who sends and receives
bulk, through either.
"""

import argparse
import os
import selectors
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress
from functools import partial

import attrs
import trio

from actors.noise import Identity, PublicKey
from actors.relay import (
    Ack,
    ConnectionLost,
    Data,
    DialRefused,
    Frame,
    PhysicalConnection,
    RelayLimits,
    Resume,
    Verdict,
    WebSocketDialer,
    decode,
    encode,
    open_harness_stream,
    serve_executor,
)
from actors.rendezvous import RegistryClient, bearer, open_registry_client
from benchmarks._harness import ROOT
from benchmarks._relayed import TOKEN, Uplink

RECORD = 60 * 1024
WINDOW_FRAMES = 32
KEY = Identity.from_seed(bytes(range(96)))

# The process under test imports nothing that is not its own.
RENDEZVOUS = f"""
import sys, trio
from actors.rendezvous import Grant, open_rendezvous

async def main():
    grants = [Grant(token="{TOKEN}", name="all")]
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with open_rendezvous(grants, listeners=listeners, public_url=sys.argv[1] or None):
        print(f"http://127.0.0.1:{{listeners[0].socket.getsockname()[1]}}", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


def start(role: str, *args: str) -> subprocess.Popen[str]:
    program = ["-c", RENDEZVOUS] if role == "rendezvous" else ["-m", "benchmarks._rendezvous_roles", role]
    command = [sys.executable, *program, *(args or ("",))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


async def executor_connection(stack: AsyncExitStack, url: str, environment_id: str) -> PhysicalConnection:
    if url.startswith("ws:"):
        return await stack.enter_async_context(WebSocketDialer().dial(url))
    async with open_registry_client(url, bearer(TOKEN)) as client:
        registration = await client.register(environment_id, KEY.public_key)
    return await stack.enter_async_context(WebSocketDialer().dial(registration.url))


async def dialled(stack: AsyncExitStack, url: str) -> PhysicalConnection:
    """Dial, and again when we may: a thousand streams in a row are more than a rendezvous takes in a second or two."""
    while True:
        try:
            return await stack.enter_async_context(WebSocketDialer().dial(url))
        except DialRefused as refused:
            if refused.retry_after_s is None:
                raise
            await trio.sleep(refused.retry_after_s)


async def harness_connection(
    stack: AsyncExitStack, url: str, client: RegistryClient, environment_id: str, stream_id: str
) -> PhysicalConnection:
    if not url.startswith("ws:"):
        url = (await client.connect(environment_id, KEY.public_key)).websocket_url
    connection = await dialled(stack, url)
    await connection.send(encode(Frame(stream_id, Resume())))
    return connection


def run_bare() -> None:
    """Carry messages between the first two who dial: unmask, frame, write, and nothing else."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"ws://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    with selectors.DefaultSelector() as selector:
        while True:
            one, other = Uplink(listener.accept()[0]), Uplink(listener.accept()[0])
            selector.register(one, selectors.EVENT_READ, other)
            selector.register(other, selectors.EVENT_READ, one)
            for each, to in ((one, other), (other, one)):
                to.send(each.messages())
            try:
                while True:
                    for key, _ in selector.select():
                        assert isinstance(key.fileobj, Uplink)
                        key.fileobj.read_more()
                        key.data.send(key.fileobj.messages())
            except OSError:  # One of them has left, or was killed.
                for each in (one, other):
                    selector.unregister(each)
                    each.close()


# Bulk: the executor's side sends, the harness's side receives.


async def run_frame_source(url: str) -> None:
    # Whoever has received enough leaves.
    async with AsyncExitStack() as stack:
        stack.enter_context(suppress(ConnectionLost))
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
        client = await stack.enter_async_context(open_registry_client(url.replace("ws:", "http:"), bearer(TOKEN)))
        connection = await harness_connection(stack, url, client, "bulk", "bulk")
        for _ in range(2):
            await connection.send(encode(Frame("bulk", Ack())))
        got, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            await connection.receive()
            got += 1
            if got % WINDOW_FRAMES == 0:
                await connection.send(encode(Frame("bulk", Ack())))
        print(got * RECORD / 1e6 / (time.perf_counter() - began), flush=True)


@attrs.frozen(kw_only=True)
class Bundle:
    """What a registry would give, for a way without one."""

    websocket_url: str
    environment_id: str = "messages"
    executor_registration_id: str = "registration-1"
    executor_public_key: PublicKey = KEY.public_key
    harness_key_authorization: str = "an-authorization"


async def say_yes(key: PublicKey, authorization: str) -> Verdict:
    del key, authorization
    await trio.lowlevel.checkpoint()
    return Verdict.VALID


async def run_message_source(url: str) -> None:
    block = os.urandom(1024 * 1024)

    async def handler(stream) -> None:
        await stream.receive()
        while True:
            await stream.send(block)

    async with AsyncExitStack() as stack:
        registration_id, dial, validate = Bundle(websocket_url=url).executor_registration_id, url, say_yes
        if not url.startswith("ws:"):
            client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
            registration = await client.register("messages", KEY.public_key)
            registration_id, dial = registration.executor_registration_id, registration.url
            validate = partial(client.verdict, "messages", registration_id)
        connection = await stack.enter_async_context(WebSocketDialer().dial(dial))
        print("ready", flush=True)
        await serve_executor(
            connection,
            KEY,
            environment_id="messages",
            registration_id=registration_id,
            validate=validate,
            handler=handler,
        )


async def run_message_sink(url: str, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        bundle = Bundle(websocket_url=url)
        if not url.startswith("ws:"):
            client = await stack.enter_async_context(open_registry_client(url, bearer(TOKEN)))
            bundle = await client.connect("messages", KEY.public_key)
        opened = open_harness_stream(bundle, KEY, dialer=WebSocketDialer(), limits=RelayLimits())
        stream = await stack.enter_async_context(opened)
        await stream.send(b"go")
        got, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            got += len(await stream.receive())
        print(got / 1e6 / (time.perf_counter() - began), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role")
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("seconds", nargs="?", type=float, default=1.0)
    args = parser.parse_args()
    match args.role:
        case "bare":
            run_bare()
        case "frame-source":
            trio.run(run_frame_source, args.url)
        case "frame-sink":
            trio.run(run_frame_sink, args.url, args.seconds)
        case "message-source":
            trio.run(run_message_source, args.url)
        case _:
            trio.run(run_message_sink, args.url, args.seconds)


if __name__ == "__main__":
    main()
