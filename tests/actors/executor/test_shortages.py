"""The system has no more descriptors or threads to give: whoever asked is told, and nobody else notices."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio

from actors.executor import Executor, LaunchSpec, SpawnFailed, Terminal, open_executor, open_posix_launcher
from actors.executor._process_table import SharedTable, read_table
from actors.executor._spawning import Spawner
from actors.executor._threads import NoThread, in_thread
from tests.actors.executor.client import Client, Refused, memory_client

EXHAUSTED = "Too many open files (os error 24)"
NO_FILE = "No file descriptors available (os error 24)"
NO_THREAD = "Resource temporarily unavailable (os error 11)"
STATUS: dict[str, Any] = {"status": "ready"}


@contextmanager
def descriptors_left(count: int) -> Generator[None, None, None]:
    """Let the system give us only so many more descriptors, really."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] <= highest:
        held.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1 + count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in held:
            os.close(fd)


@contextmanager
def no_threads() -> Generator[None, None, None]:
    """Let Python start no thread, and say so in its words."""

    def refuse(*_: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio._threads.start_thread_soon", refuse)
        yield


async def refusal(client: Client, method: str, /, **params: Any) -> str:
    with pytest.raises(Refused) as refused:
        await client.call(method, **params)
    return str(refused.value.message)


async def assert_served(client: Client) -> None:
    assert await client.call("environment/status") == STATUS


@pytest.mark.parametrize("kind", [{}, {"pipeStdin": True}, {"tty": True}], ids=["plain", "with input", "terminal"])
async def test_a_start_without_descriptors_is_refused_and_nobody_else_notices(kind: dict[str, Any]) -> None:
    """Seen to end the executor when the pipes are made outside of what is judged."""
    async with open_executor() as executor, memory_client(executor) as client, memory_client(executor) as bystander:
        await bystander.start("long", "/bin/sleep", "1000")
        outcomes: list[str] = []
        left = 0
        for left in range(12):
            with descriptors_left(left):
                try:
                    outcomes.append((await client.start(f"p{left}", "/bin/true", **kind))["processId"])
                except Refused as refused:
                    outcomes.append(refused.message)
            if outcomes[-1] != EXHAUSTED:
                break
            await assert_served(bystander)

        assert outcomes.pop() == f"p{left}"
        assert outcomes == [EXHAUSTED] * left
        assert left > 2
        await client.finish(f"p{left}")


async def test_a_launch_without_descriptors_leaves_none_open() -> None:
    def open_now() -> list[str]:
        return sorted(os.listdir("/proc/self/fd"))

    specs = [
        LaunchSpec(argv=("/bin/true",), cwd="/", pipe_stdin=True),
        LaunchSpec(argv=("/bin/true",), cwd="/", pipe_stdin=True, terminal=Terminal()),
    ]
    async with open_posix_launcher() as launcher:
        before = open_now()
        for spec in specs:
            for left in range(3):
                with descriptors_left(left), pytest.raises(SpawnFailed):
                    await launcher.launch(spec)
                assert open_now() == before


async def test_file_requests_without_descriptors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    url = (tmp_path / "file").as_uri()
    async with open_executor() as executor, memory_client(executor) as client:
        await in_thread(lambda: None)
        with descriptors_left(0):
            assert await refusal(client, "fs/readFile", path=url) == NO_FILE
            assert await refusal(client, "fs/readDirectory", path=tmp_path.as_uri()) == NO_FILE
        assert (await client.call("fs/readFile", path=url))["dataBase64"]


async def _ask_all(executor: Executor, client: Client, folder: Path) -> set[str]:
    told: set[str] = set()

    async def ask(method: str, /, **params: Any) -> None:
        told.add(await refusal(client, method, **params))

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(partial(ask, "fs/readFile", path=(folder / "file").as_uri()))
        nursery.start_soon(partial(ask, "fs/readDirectory", path=folder.as_uri()))
        nursery.start_soon(partial(ask, "fs/open", handleId="h", path=(folder / "file").as_uri(), mode="read"))
    return told


async def test_file_requests_without_threads_are_refused_and_the_connection_lives(tmp_path: Path) -> None:
    """Seen to fail when what Python says of it goes by unheard: the connection ended."""
    (tmp_path / "file").write_text("text")
    async with open_executor() as executor, memory_client(executor) as client:
        with no_threads():
            assert await _ask_all(executor, client, tmp_path) == {NO_THREAD}
            missing = (tmp_path / "not yet").as_uri()
            watch = {"watchId": 1, "missing": [missing], "present": (tmp_path / "file").as_uri()}
            assert await refusal(client, "fs/watchMissing", **watch) == NO_THREAD
            await assert_served(client)
        assert (await client.call("fs/readFile", path=(tmp_path / "file").as_uri()))["dataBase64"]


async def test_an_http_request_without_threads_is_refused_and_the_connection_lives() -> None:
    async with open_executor(http=True) as executor, memory_client(executor) as client:
        with no_threads():
            message = await refusal(client, "http/request", requestId="r", method="GET", url="http://127.0.0.1:1/")
            await assert_served(client)
    assert "error sending request" in message


async def test_a_process_dies_and_is_told_without_threads() -> None:
    """Who looks for survivors does so in a thread, if there is one. Seen to end the executor."""
    async with open_executor() as executor, memory_client(executor) as client:
        await client.start("shell", "/bin/sh", "-c", "sleep 1000 & sleep 1000")
        with no_threads():
            await client.call("process/terminate", processId="shell")
            await client.finish("shell")


async def test_a_table_that_cannot_be_read_is_read_when_it_can() -> None:
    """A table read without descriptors is no empty one."""
    with descriptors_left(0), pytest.raises(OSError, match="Too many"):
        read_table()

    refused = 0

    def read() -> dict[int, Any]:
        nonlocal refused
        if refused < 2:
            refused += 1
            raise OSError(24, "")
        return read_table()

    assert os.getpid() in await SharedTable(read).fresh()
    assert refused == 2


async def test_a_child_is_waited_for_without_handle_and_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> int:
        raise OSError(24, "no more descriptors")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    with no_threads():
        child = await Spawner(in_task=True).spawn(
            ("sh", "-c", "exit 5"), executable="/bin/sh", stdin=nothing, stdout=nothing, stderr=nothing, env={}, cwd="/"
        )
        os.close(nothing)
        assert await child.wait() == 5


async def test_a_launch_that_needs_a_thread_is_refused_without_one() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    with no_threads(), pytest.raises(NoThread):
        await Spawner(in_task=False).spawn(
            ("true",), executable="/bin/true", stdin=nothing, stdout=nothing, stderr=nothing, env={}, cwd="/"
        )
    os.close(nothing)


async def test_what_work_in_a_thread_raises_is_its_own() -> None:
    def fail() -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        await in_thread(fail)
