"""What was observed of the existing executor (spec 9.2) and must not be observed of ours, over either road.

The items that have to do with the registry, the relay or a virtual clock have their tests where those are;
`tests/environment_cases.txt` names one for each of the 26. Where the other's fault shows every time, it is looked at
too: a fault that was mended there is worth knowing.
"""

import base64
import json
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from actors.executor import serve_executor
from actors.harness import ChannelClosed, DirectoryNotEmpty, NotFound, WebSocketDialer, open_client
from actors.relay import Data, decode
from tests.actors.executor.client import Refused
from tests.interop.codex.bodies import OURS, Place, open_place, open_world
from tests.interop.codex.test_processes import b64, wait_output
from tests.support.settling import eventually, process_end

SOON_S = 15.0


async def test_02_exit_and_end_of_a_process_come_without_a_delay_of_the_network(our_place: Place) -> None:
    """There 48 ms on a plain WebSocket: each small message waited for the peer to acknowledge the one before it."""
    took_s: list[float] = []
    async with our_place.talk() as client:
        for number in range(9):
            await client.start(f"p{number}", "/bin/true")
            began_s = trio.current_time()
            await client.finish(f"p{number}")
            took_s.append(trio.current_time() - began_s)

    assert min(took_s) < 0.03


@pytest.mark.slow
async def test_05_a_process_is_started_directly_and_not_by_a_program_that_starts_it(tmp_path: Path) -> None:
    """There each start first ran the whole program of the executor itself, ten times as long as starting one."""
    took_s: list[float] = []
    plain_s: list[float] = []
    async with open_place(OURS, "plain", tmp_path) as place, place.talk() as client:
        for number in range(15):
            began_s = trio.current_time()
            await client.start(f"p{number}", "/bin/true")
            took_s.append(trio.current_time() - began_s)
            await client.finish(f"p{number}")
            began_s = trio.current_time()
            subprocess.run(["/bin/true"], check=True)  # noqa: ASYNC221  # Nothing is to run beside it.
            plain_s.append(trio.current_time() - began_s)
        await client.start("parent", "/bin/sh", "-c", "echo $PPID")
        await client.finish("parent")

    assert int(client.output("parent")) == os.getpid()
    assert statistics.median(took_s) < 6 * statistics.median(plain_s)


async def test_07_our_client_never_removes_more_than_it_was_told_to(place: Place) -> None:
    """There a path alone removes a whole tree, and one that is wrong succeeds: the client says what it wants."""
    (place.root / "d" / "e").mkdir(parents=True)
    async with place.harness() as client:
        with pytest.raises(DirectoryNotEmpty):
            await client.files.remove(place.root / "d")
        with pytest.raises(NotFound):
            await client.files.remove(place.root / "no")

    assert (place.root / "d" / "e").is_dir()


async def test_08_a_file_that_is_replaced_block_by_block_is_whole_at_every_moment(place: Place) -> None:
    (place.root / "file").write_text("old")
    async with place.talk() as client:
        await client.call("fs/open", handleId="h", path=place.uri("file"), mode="replace")
        opened = (place.root / "file").read_text()
        await client.call("fs/writeBlock", handleId="h", offset=0, chunk=b64(b"new"))
        written = (place.root / "file").read_text()
        await client.call("fs/close", handleId="h")

    assert (opened, written) == (("old", "old") if place.is_ours else ("", "new"))
    assert (place.root / "file").read_text() == "new"


async def test_09_a_pipe_that_nobody_reads_hangs_no_connection(our_place: Place) -> None:
    os.mkfifo(our_place.root / "fifo")
    with trio.fail_after(SOON_S):
        async with our_place.talk() as client:
            for method, more in (("fs/writeFile", {"dataBase64": "eA=="}), ("fs/open", {"handleId": "h"})):
                with pytest.raises(Refused, match="is not a file"):
                    await client.call(method, path=our_place.uri("fifo"), **more)

            assert await client.call("environment/status") == {"status": "ready"}


async def test_10_an_end_of_the_connection_has_a_reason(tmp_path: Path) -> None:
    """There the connection is cut without a word."""
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with WebSocketDialer().dial(endpoint.url) as channel:
            await channel.send(b'{"id":1,"method":"initialize","params":{"clientName":"x"}}')
            await channel.receive()
            await channel.send(b'{"id":7,"result":{}}')
            with pytest.raises(ChannelClosed, match="code 1002: answer to a request that was never made"):
                await channel.receive()
        nursery.cancel_scope.cancel()


async def test_11_a_burst_of_requests_is_answered(our_place: Place) -> None:
    """There more than 128 that wait to be handled end the stream, now and then."""
    with trio.fail_after(SOON_S):
        async with our_place.talk() as client:
            for number in range(1000, 1400):
                await client.raw(json.dumps({"id": number, "method": "environment/status"}))
            for number in range(1000, 1400):
                assert (await client.answer(number))["result"] == {"status": "ready"}


async def test_16_what_a_process_does_not_read_is_bounded_and_then_waits(our_place: Place) -> None:
    async with our_place.talk() as client:
        await client.start("p", "/bin/sleep", "100", pipeStdin=True)
        block = b64(bytes(64 * 1024))
        writes = [
            await client.ask("process/write", {"processId": "p", "writeId": f"w{number}", "chunk": block})
            for number in range(40)
        ]
        for write in writes[:16]:
            assert (await client.answer(write))["result"] == {"status": "accepted"}
        # A terminate overtakes those that wait, and then they are refused.
        assert await client.call("process/terminate", processId="p") == {"running": True}
        last = await client.answer(writes[-1])

        assert last["error"]["message"] == "failed to write to process stdin"


async def test_18_a_termination_may_ask_first_and_reaches_who_left_the_group(our_place: Place) -> None:
    async with our_place.talk() as client:
        script = "trap 'echo asked; exit 5' TERM; setsid sleep 1000 & echo $!; while :; do sleep 0.05; done"
        await client.start("p", "/bin/sh", "-c", script)
        daemon = int(await wait_output(client, "p", b"\n"))
        assert await client.call("process/terminate", processId="p", graceMs=10_000) == {"running": True}
        closed = await client.finish("p")
        exited = await client.wait_news("process/exited", "p")

        assert exited["exitCode"] == 5
        assert b"asked\n" in client.output("p")
        await client.call("process/terminate", processId="p")
        await process_end(daemon, within_s=SOON_S)
        assert closed["seq"] > exited["seq"]


async def test_20_a_terminal_has_the_size_that_was_asked_for(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/stty", "size", tty=True, rows=50, cols=132)
        await client.finish("p")

        assert client.output("p").split() == ([b"50", b"132"] if place.is_ours else [b"24", b"80"])


async def test_21_what_went_wrong_is_told_with_its_path(our_place: Place) -> None:
    async with our_place.talk() as client:
        with pytest.raises(Refused) as program:
            await client.start("p", "/no/such")
        with pytest.raises(Refused) as folder:
            await client.start("p", "/bin/true", cwd="file:///no/folder")
        with pytest.raises(Refused) as file:
            await client.call("fs/readFile", path="file:///no/file")

    texts = {program.value.message, folder.value.message, file.value.message}
    assert texts == {"No such file or directory (os error 2)"}
    assert [(one.value.data or {})["path"] for one in (program, folder, file)] == ["/no/such", "/no/folder", "/no/file"]


async def test_22_a_link_that_leads_nowhere_is_seen(our_place: Place) -> None:
    (our_place.root / "broken").symlink_to("nowhere")
    async with our_place.harness() as client:
        (entry,) = await client.files.list(our_place.root)
        status = await client.files.stat(our_place.root / "broken", follow_links=False)

        assert (entry.name, entry.is_link, entry.kind) == ("broken", True, status.kind)
        assert status.is_link


async def test_25_output_comes_in_large_pieces_and_small_messages_share_a_record(tmp_path: Path) -> None:
    """There each message, however small, is a frame, and a piece of output is never above 8 KiB."""
    (tmp_path / "home").mkdir()
    size = 2_000_000
    async with open_world(OURS, tmp_path / "home") as world:
        place = Place(OURS, "relay", "env", world.relay_dialer(), tmp_path)
        async with place.talk() as client:
            await client.start("p", "/usr/bin/head", "-c", str(size), "/dev/zero")
            await client.finish("p")
            pieces = [len(base64.b64decode(one["params"]["chunk"])) for one in client.news if "chunk" in one["params"]]
            before = len(world.dialer.frames)
            for number in range(1000, 1320):
                await client.raw(json.dumps({"id": number, "method": "environment/status"}))
            for number in range(1000, 1320):
                await client.answer(number)
            frames = [decode(frame).body for frame in world.dialer.frames[before:]]

    assert sum(pieces) == size
    assert max(pieces) > 4 * 8192
    assert len([body for body in frames if isinstance(body, Data)]) < 480, "640 messages"


@pytest.mark.slow
async def test_26_memory_of_a_large_transfer_is_given_back(tmp_path: Path) -> None:
    """There 43 MiB at rest became 103 MiB after 16 MiB of transfers, for good."""
    (tmp_path / "large").write_bytes(os.urandom(16 * 1024 * 1024))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            command = [sys.executable, "-m", "actors.cli", "executor", "--listen", "ws://127.0.0.1:0"]
            run = partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
            process = await nursery.start(run)
            url = (await process.stdout.receive_some(1000)).decode().strip()
            idle_kib = resident_kib(process.pid)
            async with open_client(url) as client:
                for _ in range(4):
                    read = await client.files.read_bytes(tmp_path / "large", bytes_max=1 << 26)
                    assert len(read) == 16 * 1024 * 1024
                await client.files.write_bytes(tmp_path / "copy", bytes(16 * 1024 * 1024))
            # When the connection has ended all of it is back.
            await eventually(lambda: resident_kib(process.pid) <= idle_kib + 12 * 1024, within_s=SOON_S)
            nursery.cancel_scope.cancel()


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
