"""Files as a user of the harness meets them, on a real executor confined to one folder."""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.executor import ExecutorEndpoint, serve_executor
from actors.harness import (
    AlreadyExists,
    Client,
    DirectoryInTheWay,
    DirectoryNotEmpty,
    FileError,
    FileKind,
    FileStreamLost,
    FileTooLarge,
    InvalidArgument,
    LinkInTheWay,
    NotADirectory,
    NotAFile,
    NotFound,
    OutsideRoots,
    RequestRejected,
    StdinUnavailable,
    open_client,
)
from actors.protocol import FS_CLOSE, CloseParams
from tests.actors.harness.world import open_world
from tests.support.cancelling import cancel_at_each_step
from tests.support.settling import eventually


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[ExecutorEndpoint]:
    async with trio.open_nursery() as nursery:
        yield await nursery.start(lambda task_status: serve_executor(file_roots=[tmp_path], task_status=task_status))
        nursery.cancel_scope.cancel()


@pytest.fixture
async def client(endpoint: ExecutorEndpoint) -> AsyncIterator[Client]:
    async with open_client(endpoint.url) as client:
        yield client


async def test_a_file_is_written_and_read_as_bytes_and_as_text(client: Client, tmp_path: Path) -> None:
    await client.files.write_bytes(tmp_path / "a", b"\x00\xff")
    await client.files.write_text(f"file://{tmp_path}/b", "é")

    assert await client.files.read_bytes(str(tmp_path / "a")) == b"\x00\xff"
    assert await client.files.read_text(tmp_path / "b") == "é"
    assert (tmp_path / "b").read_bytes() == "é".encode()


async def test_what_stands_at_a_path_is_told(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"123")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")

    found = await client.files.stat(tmp_path / "link")
    itself = await client.files.stat(tmp_path / "broken", follow_links=False)

    assert (found.kind, found.is_link, found.size_bytes) == (FileKind.FILE, True, 3)
    assert (itself.kind, itself.is_link) == (FileKind.BROKEN_LINK, True)
    assert (await client.files.stat(tmp_path)).kind is FileKind.DIRECTORY
    assert {e.name: (e.kind, e.is_link) for e in await client.files.list(tmp_path)} == {
        "broken": (FileKind.BROKEN_LINK, True),
        "f": (FileKind.FILE, False),
        "fifo": (FileKind.SPECIAL, False),
        "link": (FileKind.FILE, True),
    }
    assert [await client.files.exists(tmp_path / name) for name in ("f", "broken", "x", "f/x")] == [True] + [False] * 3
    assert await client.files.canonicalize(tmp_path / "link") == str(tmp_path / "f")


async def test_folders_are_made_walked_copied_and_removed(client: Client, tmp_path: Path) -> None:
    files = client.files
    await files.make_directory(tmp_path / "a" / "b", parents=True)
    await files.make_directory(tmp_path / "a" / "b", parents=True)
    await files.write_bytes(tmp_path / "a" / "b" / "f", b"1")
    await files.copy(tmp_path / "a", tmp_path / "c", recursive=True)

    tree = await files.walk(tmp_path / "c")
    assert [(entry.path, entry.kind) for entry in tree.entries] == [
        (f"{tmp_path}/c/b", FileKind.DIRECTORY),
        (f"{tmp_path}/c/b/f", FileKind.FILE),
    ]
    assert not tree.truncated
    assert (await files.walk(tmp_path, entries_max=1)).truncated
    with pytest.raises(DirectoryNotEmpty):
        await files.remove(tmp_path / "c")
    await files.remove(tmp_path / "c", recursive=True)
    await files.remove(tmp_path / "c", missing_ok=True)
    with pytest.raises(NotFound):
        await files.remove(tmp_path / "c")


REFUSED: dict[str, tuple[type[FileError], type[OSError] | None, Callable[[Client, Path], Awaitable[object]]]] = {
    "missing": (NotFound, FileNotFoundError, lambda c, p: c.files.read_bytes(p / "missing")),
    "folder read": (NotAFile, None, lambda c, p: c.files.read_bytes(p / "d")),
    "folder written": (DirectoryInTheWay, IsADirectoryError, lambda c, p: c.files.write_bytes(p / "d", b"")),
    "file listed": (NotADirectory, NotADirectoryError, lambda c, p: c.files.list(p / "f")),
    "made twice": (AlreadyExists, FileExistsError, lambda c, p: c.files.make_directory(p / "d")),
    "loop": (LinkInTheWay, None, lambda c, p: c.files.read_bytes(p / "loop")),
    "outside": (OutsideRoots, PermissionError, lambda c, p: c.files.read_bytes("/etc/passwd")),
    "outside by a link": (OutsideRoots, PermissionError, lambda c, p: c.files.write_bytes(p / "out", b"x")),
    "too large": (FileTooLarge, None, lambda c, p: c.files.read_bytes(p / "f", bytes_max=2)),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_goes_wrong_is_told_by_type_with_the_path_that_was_asked_for(
    name: str, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("123")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/etc/greenroom-must-not-exist")
    kind, python_kind, call = REFUSED[name]

    with pytest.raises(kind) as caught:
        await call(client, tmp_path)

    assert isinstance(caught.value, RequestRejected)
    assert python_kind is None or isinstance(caught.value, python_kind)
    assert str(caught.value).startswith(caught.value.path)


@pytest.mark.parametrize("path", ["", "a", "../a", "/a\0b"])
async def test_a_path_that_is_not_absolute_is_refused_before_it_is_sent(path: str, client: Client) -> None:
    with pytest.raises(InvalidArgument, match="path"):
        await client.files.read_bytes(path)


async def test_blocks_are_read_and_written(client: Client, tmp_path: Path) -> None:
    data = os.urandom(2_500_000)
    async with client.files.open_write(tmp_path / "f") as writer:
        await writer.write(data)
        assert not (tmp_path / "f").exists()

    assert (tmp_path / "f").read_bytes() == data
    async with client.files.open_read(tmp_path / "f", offset=5) as reader:
        blocks = [block async for block in reader]
    assert b"".join(blocks) == data[5:]
    assert [len(block) for block in blocks] == [1048576, 1048576, 402843]


@pytest.mark.slow
async def test_a_file_too_large_for_one_message_goes_in_blocks_unasked(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", 60 * 1024 * 1024)

    assert len(await client.files.read_bytes(tmp_path / "f")) == 60 * 1024 * 1024
    await client.files.write_bytes(tmp_path / "g", b"x" * (12 * 1024 * 1024))
    assert (tmp_path / "g").stat().st_size == 12 * 1024 * 1024


async def test_a_writer_that_fails_leaves_the_file_as_it_was(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")

    async def fail() -> None:
        async with client.files.open_write(tmp_path / "f") as writer:
            await writer.write(b"new")
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await fail()
    await client.files.exists(tmp_path / "f")

    await only(tmp_path, "f")
    assert (tmp_path / "f").read_text() == "old"


async def only(folder: Path, *names: str) -> None:
    """Wait until nothing else is left: cleaning up is done by the client's own tasks."""
    await eventually(lambda: sorted(os.listdir(folder)) == sorted(names))


async def open_files_are(count: int) -> None:
    await eventually(lambda: len(os.listdir("/proc/self/fd")) == count)


async def use_blocks(client: Client, folder: Path) -> None:
    async with client.files.open_write(folder / "f") as writer:
        await writer.write(b"new")
    async with client.files.open_read(folder / "f") as reader:
        assert await reader.read() == b"new"


OPERATIONS: dict[str, Callable[[Client, Path], Awaitable[object]]] = {
    "blocks": use_blocks,
    "write_bytes": lambda c, p: c.files.write_bytes(p / "f", b"new"),
    "read_bytes": lambda c, p: c.files.read_bytes(p / "f"),
    "list": lambda c, p: c.files.list(p),
    "walk": lambda c, p: c.files.walk(p),
    "stat": lambda c, p: c.files.stat(p / "f"),
    "exists": lambda c, p: c.files.exists(p / "f"),
    "canonicalize": lambda c, p: c.files.canonicalize(p / "f"),
    "make_directory": lambda c, p: c.files.make_directory(p, parents=True),
    "copy": lambda c, p: c.files.copy(p / "f", p / "f"),
    "remove": lambda c, p: c.files.remove(p / "x", missing_ok=True),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_cancellation_at_any_step_leaves_no_file_open_and_none_half_written(
    name: str, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    await client.files.read_bytes(tmp_path / "f")
    before = len(os.listdir("/proc/self/fd"))

    async def nothing_is_left() -> None:
        await only(tmp_path, "f")
        await open_files_are(before)
        assert (tmp_path / "f").read_bytes() in {b"old", b"new"}

    await cancel_at_each_step(lambda: OPERATIONS[name](client, tmp_path), check=nothing_is_left)


async def test_an_executor_without_files_says_so(autojump_clock: object) -> None:
    async with open_world() as world:
        with pytest.raises(RequestRejected, match="does not implement `fs/readFile` yet"):
            await world.client.files.read_bytes("/f")


async def test_a_stream_that_lost_its_connection_is_never_silently_short(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10)
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with open_client(endpoint.url) as client:
            async with client.files.open_read(tmp_path / "f", block_bytes=4) as reader:
                assert await reader.read() == b"xxxx"
                # What a lost and resumed connection looks like from here: the open file is unknown.
                await close_behind_its_back(client, reader)
                with pytest.raises(FileStreamLost, match="after 4 bytes"):
                    await reader.read()
            with pytest.raises(FileStreamLost):
                await lose_a_writer(client, tmp_path / "f")
        nursery.cancel_scope.cancel()

    assert (tmp_path / "f").read_bytes() == b"x" * 10


async def lose_a_writer(client: Client, path: Path) -> None:
    async with client.files.open_write(path) as writer:
        await writer.write(b"new")
        await close_behind_its_back(client, writer)


async def close_behind_its_back(client: Client, stream: object) -> None:
    handle_id = stream._handle.handle_id  # type: ignore[attr-defined]
    await client._core.call(FS_CLOSE, CloseParams(handle_id=handle_id, discard=True))


async def test_what_is_no_path_text_or_bytes_is_refused_by_its_name(client: Client, tmp_path: Path) -> None:
    """Seen failing with Python's own `TypeError`s, which name nothing that the caller wrote."""
    files, path = client.files, tmp_path / "f"
    given: Any = lambda value: value  # noqa: E731  # Past the type checkers.
    wrong: list[tuple[str, str, Callable[[], Awaitable[object]]]] = [
        ("text", "must be text, not bytes; write_bytes() takes bytes", lambda: files.write_text(path, given(b"b"))),
        ("text", "must be text, not int", lambda: files.write_text(path, given(5))),
        ("data", "must be bytes, not str; write_text() takes text", lambda: files.write_bytes(path, given("s"))),
        ("data", "must be bytes, not list", lambda: files.write_bytes(path, given([1]))),
        ("path", "must be text or a path, not int", lambda: files.read_text(given(5))),
        ("path", "must be text or a path, not bytes", lambda: files.stat(given(b"/f"))),
    ]
    for field, words, use in wrong:
        with pytest.raises(InvalidArgument, match=rf"^{field}: {re.escape(words)}"):
            await use()
    assert not path.exists()

    async with files.open_write(path) as writer:
        with pytest.raises(InvalidArgument, match="data: must be bytes, not str; encode a text first"):
            await writer.write(given("s"))


async def test_text_that_is_none_names_the_file_and_what_to_do(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError, match=rf"invalid start byte, in {tmp_path}/f: read_bytes\(\) gives it"):
        await client.files.read_text(tmp_path / "f")
    with pytest.raises(UnicodeEncodeError, match=rf"for {tmp_path}/f: choose another encoding, or write_bytes\(\)"):
        await client.files.write_text(tmp_path / "f", "\u20ac", encoding="ascii")

    assert await client.files.read_text(tmp_path / "f", errors="replace") == "\ufffd"


async def test_a_folder_is_copied_only_when_that_is_written(client: Client, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(FileError, match=rf"^{tmp_path}/d is a folder: write copy\(\.\.\., recursive=True\)"):
        await client.files.copy(tmp_path / "d", tmp_path / "e")


async def test_a_program_and_its_arguments_may_be_paths(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("here")

    ran = await client.run([Path("/bin/cat"), tmp_path / "f"], cwd=tmp_path)

    assert (ran.argv, ran.stdout) == (("/bin/cat", f"{tmp_path}/f"), b"here")


async def test_input_that_was_closed_is_told_from_one_that_never_was_open(client: Client, tmp_path: Path) -> None:
    async with client.processes.start(["/bin/cat"], cwd=tmp_path, pipe_stdin=True) as process:
        await process.stdin.aclose()
        with pytest.raises(StdinUnavailable, match=r"^standard input of process '/bin/cat' \(`\w+`\) was closed here"):
            await process.stdin.write(b"x")
    async with client.processes.start(["/bin/true"], cwd=tmp_path, pipe_stdin=True) as process:
        await process.wait()
        for use in (process.stdin.write(b"x"), process.stdin.aclose()):
            with pytest.raises(StdinUnavailable, match=r"'/bin/true' .* is closed: its process has ended"):
                await use
    async with client.processes.start(["/bin/cat"], cwd=tmp_path) as process:
        with pytest.raises(StdinUnavailable, match=r"'/bin/cat' .* is not open; start it with pipe_stdin=True"):
            await process.stdin.write(b"x")
