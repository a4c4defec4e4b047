"""What a block raises comes out of it as it is, whatever tasks of ours serve it; so does what opening it raises."""

import errno
import functools
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.blocks import open_helpers
from actors.executor import open_executor, open_posix_launcher
from actors.executor.testing import open_memory_launcher
from actors.sessions import open_provider
from actors.sessions.grpc import open_channel
from actors.sessions.grpc.testing import MemoryNetwork
from actors.sessions.host import RunningHost, open_host, serve_host
from supervision import ChildSpec, StartFailed, open_root
from tests.actors.relay import ends
from tests.actors.sessions.grpc.peers import run_ours
from tests.actors.sessions.grpc.service import CHAT, LEASE, Seen
from tests.support.skips import needs_engine

Block = Callable[[], AbstractAsyncContextManager[Any]]


needs_an_engine = needs_engine()


@asynccontextmanager
async def host_on_a_socket() -> AsyncGenerator[RunningHost, None]:
    with tempfile.TemporaryDirectory() as place:
        async with open_host(f"unix:{place}/host") as host:
            yield host


BLOCKS: dict[str, Block] = {
    "open_provider": lambda: open_provider("http://127.0.0.1:1"),
    "open_provider that cannot connect": lambda: open_provider("ftp://127.0.0.1"),
    "open_channel": lambda: open_channel("http://127.0.0.1:1"),
    "open_helpers": open_helpers,
    "open_executor": open_executor,
    "open_posix_launcher": open_posix_launcher,
    "open_memory_launcher": lambda: open_memory_launcher({}),
}
HOSTS: dict[str, Block] = {
    "open_host on TCP": lambda: open_host("grpc://127.0.0.1:0"),
    "open_host on a socket": host_on_a_socket,
}


async def raised_through(block: AbstractAsyncContextManager[Any], error: BaseException) -> BaseException | None:
    try:
        async with block:
            raise error
    except BaseException as raised:
        return raised
    return None


ERRORS = [ValueError("mine"), KeyboardInterrupt(), ExceptionGroup("mine", [ValueError("1"), KeyError("2")])]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "block",
    [
        *(pytest.param(block, id=name) for name, block in BLOCKS.items()),
        *(pytest.param(block, id=name, marks=needs_an_engine) for name, block in HOSTS.items()),
    ],
)
async def test_what_a_block_raises_comes_out_of_it_as_it_is(block: Block, error: BaseException) -> None:
    """Seen failing for a host whose nursery was round its block, and for a launcher that held only `Exception`s."""
    assert await raised_through(block(), error) is error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_what_the_block_of_a_harness_stream_raises_comes_out_of_it_as_it_is(error: BaseException) -> None:
    async with ends.world() as made:
        assert await raised_through(made.open(), error) is error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_what_the_block_of_a_call_raises_comes_out_of_it_as_it_is(error: BaseException) -> None:
    network = MemoryNetwork()
    async with run_ours(Seen(), [network.listener]), open_channel("http://memory", dial=network.dial) as channel:
        assert await raised_through(channel.stream(LEASE, b""), error) is error
        assert await raised_through(channel.open_call(CHAT), error) is error


@needs_an_engine
async def test_a_port_that_is_taken_is_an_error_of_the_system_that_names_it() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}") as taken:
            async with open_host(f"grpc://127.0.0.1:{port}"):
                pytest.fail("it was opened")

    assert taken.value.errno == errno.EADDRINUSE


@needs_an_engine
async def test_a_folder_that_is_not_there_is_an_error_of_the_system_that_names_the_socket(tmp_path: Path) -> None:
    path = tmp_path / "nosuch" / "host"
    with pytest.raises(FileNotFoundError, match=f"cannot listen on {path}: No such file"):
        async with open_host(f"unix:{path}"):
            pytest.fail("it was opened")


@needs_an_engine
async def test_a_supervisor_hears_the_plain_reason_why_a_host_cannot_listen(tmp_path: Path) -> None:
    path = tmp_path / "nosuch" / "host"
    async with open_root("top") as root:
        with pytest.raises(StartFailed, match="nosuch") as failed:
            await root.start_child(ChildSpec("host", functools.partial(serve_host, f"unix:{path}")))

    assert isinstance(failed.value.__cause__, FileNotFoundError)
