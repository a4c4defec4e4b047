"""Files over the wire, on a real disk: whole or not at all, never hanging, and nobody else held up."""

import base64
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.executor import Executor, Limits, open_executor
from actors.executor._file_reading import read_file
from actors.protocol import FILE_HANDLES_MAX
from tests.actors.executor.client import Client, Refused, memory_client
from tests.support.settling import eventually, until


@pytest.fixture
async def executor() -> AsyncIterator[Executor]:
    async with open_executor() as executor:
        yield executor


@pytest.fixture
async def client(executor: Executor) -> AsyncIterator[Client]:
    async with memory_client(executor, buffered=1000) as client:
        yield client


def uri(path: Path | str) -> str:
    return f"file://{path}"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def read(client: Client, path: Path) -> bytes:
    return base64.b64decode((await client.call("fs/readFile", path=uri(path)))["dataBase64"])


async def write(client: Client, path: Path, data: bytes, **more: Any) -> None:
    await client.call("fs/writeFile", path=uri(path), dataBase64=b64(data), **more)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def no_more_open_files() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() == before


async def test_a_file_is_written_and_read(client: Client, tmp_path: Path) -> None:
    await write(client, tmp_path / "new", b"\x00\xff")

    assert await read(client, tmp_path / "new") == b"\x00\xff"
    assert os.listdir(tmp_path) == ["new"]


async def test_large_answers_are_the_bytes_the_codec_would_write(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)))
    await client.call("fs/open", handleId="h", path=uri(tmp_path / "f"))

    read = await client.answer(await client.ask("fs/readFile", {"path": uri(tmp_path / "f")}))
    block = await client.answer(await client.ask("fs/readBlock", {"handleId": "h", "offset": 250, "len": 7}))

    assert read["result"] == {"dataBase64": b64(bytes(range(256)))}
    assert block["result"] == {"chunk": b64(bytes(range(250, 256))), "eof": True}


async def test_writing_keeps_the_mode_and_goes_through_a_link(client: Client, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("old")
    (tmp_path / "script").chmod(0o751)
    (tmp_path / "link").symlink_to("script")

    await write(client, tmp_path / "link", b"new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "script").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "script").stat().st_mode) == 0o751


async def test_bad_base64_is_refused_and_the_file_kept(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")

    with pytest.raises(Refused, match="fs/writeFile requires valid base64 dataBase64: Invalid symbol 33") as refused:
        await client.call("fs/writeFile", path=uri(tmp_path / "f"), dataBase64="!!")

    assert refused.value.code == -32600
    assert (tmp_path / "f").read_text() == "old"


async def test_whoever_looks_sees_all_of_the_old_file_or_all_of_the_new(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "f"
    old, new = b"o" * 300_000, b"n" * 300_000
    path.write_bytes(old)
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, watch)
        for turn in range(20):
            await write(client, path, new if turn % 2 == 0 else old)
        done.set()

    assert seen <= {old, new}


async def test_9_2_6_a_file_copied_onto_itself_keeps_its_bytes(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    (tmp_path / "soft").symlink_to("f")
    os.link(tmp_path / "f", tmp_path / "hard")

    for source, destination in [("f", "f"), ("f", "soft"), ("f", "hard"), ("hard", "f"), ("soft", "soft")]:
        await client.call(
            "fs/copy", sourcePath=uri(tmp_path / source), destinationPath=uri(tmp_path / destination), recursive=False
        )

    assert (tmp_path / "f").read_bytes() == b"0123456789"
    assert (tmp_path / "soft").is_symlink()
    assert (tmp_path / "f").stat().st_nlink == 2


async def test_9_2_8_a_lost_connection_leaves_a_file_that_was_being_replaced_as_it_was(
    executor: Executor, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")

    with no_more_open_files():
        async with memory_client(executor) as client:
            await client.call("fs/open", handleId="w", path=uri(tmp_path / "f"), mode="replace")
            await client.call("fs/writeBlock", handleId="w", offset=0, chunk=b64(b"new"))

    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


async def test_what_was_written_takes_its_place_at_close_and_not_when_discarded(client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    for handle, more in [("a", {"discard": True}), ("b", {})]:
        await client.call("fs/open", handleId=handle, path=uri(tmp_path / "f"), mode="replace")
        await client.call("fs/writeBlock", handleId=handle, offset=0, chunk=b64(handle.encode()))
        result = await client.call("fs/close", handleId=handle, **more)

        assert result == ({} if more else {"replaced": True})
        assert (tmp_path / "f").read_text() == ("old" if more else "b")


@pytest.mark.parametrize("method", ["readFile", "writeFile", "open", "replace", "copy", "copyOnto"])
async def test_9_2_9_a_fifo_hangs_nobody_and_is_refused(method: str, client: Client, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "f").write_text("x")
    fifo = uri(tmp_path / "fifo")
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "readFile": ("fs/readFile", {"path": fifo}),
        "writeFile": ("fs/writeFile", {"path": fifo, "dataBase64": ""}),
        "open": ("fs/open", {"handleId": "h", "path": fifo}),
        "replace": ("fs/open", {"handleId": "h", "path": fifo, "mode": "replace"}),
        "copy": ("fs/copy", {"sourcePath": fifo, "destinationPath": uri(tmp_path / "g"), "recursive": False}),
        "copyOnto": ("fs/copy", {"sourcePath": uri(tmp_path / "f"), "destinationPath": fifo, "recursive": False}),
    }
    name, params = calls[method]

    with trio.fail_after(5), pytest.raises(Refused) as refused:
        await client.call(name, **params)

    assert refused.value.code == -32600
    assert await client.call("environment/status") == {"status": "ready"}


async def test_9_2_12_a_file_too_large_for_an_answer_fails_alone(client: Client, tmp_path: Path) -> None:
    for name, size_bytes in {"large": 60 * 1024 * 1024, "huge": 512 * 1024 * 1024 + 1}.items():
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, size_bytes)

    with pytest.raises(Refused, match="does not fit into one answer; read it in blocks") as refused:
        await client.call("fs/readFile", path=uri(tmp_path / "large"))
    assert refused.value.code == -32603
    with pytest.raises(Refused, match="file is too large to read: limit is 536870912 bytes"):
        await client.call("fs/readFile", path=uri(tmp_path / "huge"))
    assert await client.call("environment/status") == {"status": "ready"}


async def test_9_2_21_what_goes_wrong_is_told_with_its_path_and_kind(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^No such file or directory \(os error 2\)$") as refused:
        await read(client, tmp_path / "missing")

    assert refused.value.code == -32004
    assert refused.value.data == {"kind": "notFound", "path": str(tmp_path / "missing")}


async def test_9_2_22_links_are_seen(client: Client, tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "f").write_text("x")
    (tmp_path / "good").symlink_to("f")

    listed = await client.call("fs/readDirectory", path=uri(tmp_path))
    itself = await client.call("fs/getMetadata", path=uri(tmp_path / "broken"), linkItself=True)
    options = {"maxDepth": 1, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": False}
    walked = await client.call("fs/walk", path=uri(tmp_path), options=options)

    assert {entry["fileName"]: entry.get("isSymlink", False) for entry in listed["entries"]} == {
        "f": False,
        "good": True,
    }
    assert listed["brokenLinks"] == ["broken"]
    assert (itself["isSymlink"], itself["isFile"], itself["isDirectory"]) == (True, False, False)
    assert [entry["path"] for entry in walked["leftOut"]] == [uri(tmp_path / "broken"), uri(tmp_path / "good")]


async def test_9_2_1_a_long_copy_holds_up_neither_a_status_nor_another_file(client: Client, tmp_path: Path) -> None:
    source, copied = tmp_path / "s", tmp_path / "copied"
    for number in range(600):
        (source / f"d{number % 10}").mkdir(parents=True, exist_ok=True)
        (source / f"d{number % 10}" / str(number)).write_text("x")
    (tmp_path / "f").write_text("x")

    params = {"sourcePath": uri(source), "destinationPath": uri(copied), "recursive": True}
    copying = await client.ask("fs/copy", params)
    await client.call("environment/status")
    assert await read(client, tmp_path / "f") == b"x"
    # It appears when it is whole. (Looked at once: a walk that begins before it is there may find it half-way.)
    if copied.exists():
        assert len(list(copied.rglob("*"))) == 610
    await client.answer(copying)

    assert len(list(copied.rglob("*"))) == 610


async def test_a_folder_whose_copy_fails_leaves_nothing(client: Client, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "a").write_text("x")
    os.mkfifo(tmp_path / "d" / "e" / "fifo")

    with pytest.raises(Refused, match="only supports regular files, directories, and symlinks"):
        await client.call(
            "fs/copy", sourcePath=uri(tmp_path / "d"), destinationPath=uri(tmp_path / "c"), recursive=True
        )

    assert sorted(os.listdir(tmp_path)) == ["d"]


async def test_an_unfinished_copy_is_taken_back_when_its_connection_ends(executor: Executor, tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    for number in range(1000):
        (source / str(number)).write_bytes(b"x" * 100)

    with no_more_open_files():
        async with memory_client(executor) as client:
            params = {"sourcePath": uri(source), "destinationPath": uri(tmp_path / "c"), "recursive": True}
            await client.ask("fs/copy", params)
            await eventually(lambda: len(os.listdir(tmp_path)) > 1)
        await eventually(lambda: os.listdir(tmp_path) == ["s"])


async def test_what_is_done_to_one_open_file_is_done_in_the_order_it_was_asked_for(
    client: Client, tmp_path: Path
) -> None:
    asked = [await client.ask("fs/open", {"handleId": "w", "path": uri(tmp_path / "f"), "mode": "replace"})]
    asked += [
        await client.ask("fs/writeBlock", {"handleId": "w", "offset": 0, "chunk": b64(str(number).encode())})
        for number in range(50)
    ]
    asked.append(await client.ask("fs/close", {"handleId": "w"}))
    asked.append(await client.ask("fs/writeBlock", {"handleId": "w", "offset": 0, "chunk": b64(b"late")}))

    answers = [await client.answer(request_id) for request_id in asked]

    assert ["result" in answer for answer in answers] == [True] * 52 + [False]
    assert (tmp_path / "f").read_text() == "49"


async def test_a_block_of_a_file_that_could_not_be_opened_is_refused(client: Client, tmp_path: Path) -> None:
    opening = await client.ask("fs/open", {"handleId": "h", "path": uri(tmp_path / "missing")})
    reading = await client.ask("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1})

    assert (await client.answer(opening))["error"]["code"] == -32004
    assert (await client.answer(reading))["error"]["message"] == "unknown file handle `h`"
    await client.call("fs/writeFile", path=uri(tmp_path / "f"), dataBase64="")
    await client.call("fs/open", handleId="h", path=uri(tmp_path / "f"))


async def test_open_files_of_a_connection_are_bounded_and_closed_with_it(executor: Executor, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")

    with no_more_open_files():
        async with memory_client(executor) as client:
            for number in range(FILE_HANDLES_MAX):
                await client.call("fs/open", handleId=str(number), path=uri(tmp_path / "f"))
            with pytest.raises(Refused, match="at most 128 file handles may be open per connection"):
                await client.call("fs/open", handleId="more", path=uri(tmp_path / "f"))
            await client.call("fs/close", handleId="0")
            await client.call("fs/open", handleId="more", path=uri(tmp_path / "f"))


async def test_files_that_nobody_takes_are_not_piled_up(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"x" * 1_000_000)
    read: list[str] = []

    def count(*args: Any) -> bytes:
        read.append(args[1])
        return read_file(*args)

    monkeypatch.setattr("actors.executor._file_requests.read_file", count)
    async with memory_client(executor, buffered=1) as client, trio.open_nursery() as nursery:
        asked: list[Any] = []

        async def ask() -> None:
            while len(asked) < 30:
                asked.append(await client.ask("fs/readFile", {"path": uri(tmp_path / "f")}))

        client.hold = trio.Event()
        nursery.start_soon(ask)
        await until(lambda: len(read) >= 4)
        await nothing_is_under_way(executor)
        read_at_first = len(read)
        client.hold.set()
        await until(lambda: len(asked) == 30, within_s=20)
        for request_id in asked:
            await client.answer(request_id)

    assert read_at_first <= 8
    assert len(read) == 30


async def nothing_is_under_way(executor: Executor) -> None:
    threads = executor._files.threads
    await trio.testing.wait_all_tasks_blocked()
    while threads.borrowed_tokens:
        await until(lambda: not threads.borrowed_tokens)
        await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("offset", [2**63, 2**64 - 1])
async def test_offsets_beyond_every_file_are_refused(offset: int, client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    await client.call("fs/open", handleId="h", path=uri(tmp_path / "f"))

    with pytest.raises(Refused, match="Invalid argument"):
        await client.call("fs/readBlock", handleId="h", offset=offset, len=1)


async def test_a_tree_is_removed_and_links_in_it_are_not_followed(client: Client, tmp_path: Path) -> None:
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "f").write_text("x")
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "l").symlink_to(tmp_path / "keep")

    await client.call("fs/remove", path=uri(tmp_path / "d"), recursive=True, force=False)

    assert sorted(os.listdir(tmp_path)) == ["keep"]
    assert (tmp_path / "keep" / "f").exists()


async def test_a_name_that_is_no_text_can_be_had(client: Client, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")

    listed = await client.call("fs/readDirectory", path=uri(tmp_path))
    options = {"maxDepth": 1, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": False}
    walked = await client.call("fs/walk", path=uri(tmp_path), options=options)

    assert listed["entries"][0]["fileName"] == "�"
    assert walked["entries"][0]["path"] == uri(tmp_path) + "/%FF"
    assert (await client.call("fs/readFile", path=walked["entries"][0]["path"]))["dataBase64"] == b64(b"x")


async def test_a_walk_goes_on_past_a_link_in_a_circle(client: Client, tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    (deep / "a").mkdir()
    options = {"maxDepth": 9, "maxDirectories": 9, "maxEntries": 9, "followDirectorySymlinks": True}
    (deep / "loop").symlink_to("loop")

    walked = await client.call("fs/walk", path=uri(deep), options=options)

    assert [entry["path"] for entry in walked["entries"]] == [uri(deep / "a")]
    assert [entry["kind"] for entry in walked["leftOut"]] == ["link"]
    assert walked["errors"] == []


async def test_work_in_a_sandbox_is_refused_and_not_done_without_one(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="sandboxed filesystem operations require configured runtime paths"):
        await write(client, tmp_path / "f", b"x", sandbox={"permissions": {"type": "managed"}})

    assert not (tmp_path / "f").exists()

    await write(client, tmp_path / "f", b"x", sandbox={"permissions": {"type": "disabled"}})

    assert (tmp_path / "f").read_bytes() == b"x"


async def test_watches_are_bounded(tmp_path: Path) -> None:
    async with open_executor(limits=Limits(watches_max=2)) as executor, memory_client(executor) as client:
        params = {"missing": [uri(tmp_path / "x")], "present": uri(tmp_path)}
        for number in range(2):
            assert (await client.call("fs/watchMissing", watchId=number, **params))["watching"]
        with pytest.raises(Refused, match="at most 2 watches"):
            await client.call("fs/watchMissing", watchId=3, **params)
        (tmp_path / "x").mkdir()
        await until(lambda: len(client.news) == 2)

        assert {news["method"] for news in client.news} == {"fs/missingChanged"}
