"""One contract, two bodies: files (spec 6.4)."""

import base64
import os
import random
from typing import Any

import pytest

from actors.harness import AlreadyExists, DirectoryInTheWay, FileKind, NotADirectory, NotAFile, NotFound
from tests.interop.codex.bodies import Place
from tests.interop.codex.test_processes import INTERNAL, b64
from tests.interop.codex.test_talk import INVALID_PARAMS, INVALID_REQUEST, refusal

NOT_FOUND = -32004


async def test_a_file_is_written_and_read(place: Place) -> None:
    content = random.Random(1).randbytes(300_000)
    async with place.harness() as client:
        await client.files.write_bytes(place.root / "sp ace é", content)
        await client.files.write_bytes(place.root / "sp ace é", content[:5])

        assert (place.root / "sp ace é").read_bytes() == content[:5]
        (place.root / "sp ace é").write_bytes(content)
        assert await client.files.read_bytes(place.root / "sp ace é") == content


async def test_a_large_file_arrives_intact(place: Place) -> None:
    content = random.Random(2).randbytes(3 * 1024 * 1024 + 17)
    (place.root / "large").write_bytes(content)
    async with place.harness() as client:
        assert await client.files.read_bytes(place.root / "large") == content


async def test_a_folder_is_made_listed_and_removed(place: Place) -> None:
    async with place.harness() as client:
        files = client.files
        await files.make_directory(place.root / "a" / "b", parents=True)
        await files.write_text(place.root / "a" / "text", "hello\n")
        entries = await files.list(place.root / "a")
        with pytest.raises(AlreadyExists):
            await files.make_directory(place.root / "a")
        with pytest.raises(NotFound):
            await files.make_directory(place.root / "x" / "y")
        await files.remove(place.root / "a" / "text")
        await files.remove(place.root / "a", recursive=True)

        assert [(entry.name, entry.kind) for entry in entries] == [("b", FileKind.DIRECTORY), ("text", FileKind.FILE)]
        assert os.listdir(place.root) == []


async def test_what_stands_at_a_path_is_told(place: Place) -> None:
    (place.root / "file").write_bytes(b"12345")
    (place.root / "link").symlink_to("file")
    async with place.harness() as client:
        file, link = [await client.files.stat(place.root / name) for name in ("file", "link")]
        real = await client.files.canonicalize(place.root / "link")
        file_itself = (place.root / "file").resolve()

        assert (file.kind, file.is_link, file.size_bytes) == (FileKind.FILE, False, 5)
        assert file.modified_at_ms == int(os.stat(place.root / "file").st_mtime_ns // 1_000_000)
        assert (link.kind, link.is_link, link.size_bytes) == (FileKind.FILE, True, 5)
        assert real == str(file_itself)


async def test_a_tree_is_walked_breadth_first(place: Place) -> None:
    for name in ("b/c/deep", "a/file", ".hid/secret"):
        (place.root / name).parent.mkdir(parents=True)
        (place.root / name).write_text("x")
    (place.root / "link").symlink_to("a")
    (place.root / "to-file").symlink_to("a/file")
    async with place.harness() as client:
        tree = await client.files.walk(place.root, enter_hidden=False)
        flat = await client.files.walk(place.root, depth_max=0)
        short = await client.files.walk(place.root, entries_max=2)
        followed = await client.files.walk(place.root, follow_links=True, depth_max=0)

        names = [entry.path.removeprefix(f"{place.root}/") for entry in tree.entries]
        assert names == [".hid", "a", "b", "a/file", "b/c", "b/c/deep"]
        assert len(flat.entries) == 3
        assert (len(short.entries), short.truncated) == (2, True)
        assert len(followed.entries) == 4


async def test_files_links_and_folders_are_copied(place: Place) -> None:
    (place.root / "d").mkdir()
    (place.root / "d" / "file").write_text("x")
    (place.root / "d" / "link").symlink_to("file")
    async with place.harness() as client:
        await client.files.copy(place.root / "d" / "file", place.root / "one")
        await client.files.copy(place.root / "d" / "link", place.root / "two")
        await client.files.copy(place.root / "d", place.root / "three", recursive=True)

        assert (place.root / "one").read_text() == "x"
        assert os.readlink(place.root / "two") == "file"
        assert os.readlink(place.root / "three" / "link") == "file"


async def test_a_file_copied_onto_itself_keeps_its_bytes_at_ours_and_is_emptied_by_the_other(place: Place) -> None:
    """9.2, item 6."""
    (place.root / "ten").write_bytes(b"0123456789")
    async with place.harness() as client:
        await client.files.copy(place.root / "ten", place.root / "ten")

    assert (place.root / "ten").read_bytes() == (b"0123456789" if place.is_ours else b"")


async def test_removing_a_link_leaves_what_it_leads_to(place: Place) -> None:
    (place.root / "file").write_text("x")
    (place.root / "link").symlink_to("file")
    async with place.harness() as client:
        await client.files.remove(place.root / "link")

    assert os.listdir(place.root) == ["file"]


async def test_blocks_of_a_file_are_read_and_written(place: Place) -> None:
    content = random.Random(3).randbytes(2_500_000)
    async with place.harness() as client:
        async with client.files.open_write(place.root / "blocks") as writer:
            await writer.write(content)
        async with client.files.open_read(place.root / "blocks") as reader:
            blocks = [block async for block in reader]

    assert (place.root / "blocks").read_bytes() == b"".join(blocks) == content
    assert max(len(block) for block in blocks) == 1024 * 1024


async def test_open_files_have_names_modes_and_bounds(place: Place) -> None:
    (place.root / "ten").write_bytes(b"0123456789")
    path = place.uri("ten")
    async with place.talk() as client:
        assert await client.call("fs/open", handleId="h", path=path) == {"handleId": "h"}
        twice = await refusal(client, "fs/open", handleId="h", path=path)
        part = await client.call("fs/readBlock", handleId="h", offset=3, len=4)
        rest = await client.call("fs/readBlock", handleId="h", offset=8, len=4)
        zero = await refusal(client, "fs/readBlock", handleId="h", offset=0, len=0)
        huge = await refusal(client, "fs/readBlock", handleId="h", offset=0, len=1024 * 1024 + 1)
        wrong = await refusal(client, "fs/writeBlock", handleId="h", offset=0, chunk="eA==")
        unknown = await refusal(client, "fs/readBlock", handleId="x", offset=0, len=1)
        assert await client.call("fs/close", handleId="h") == {}
        for number in range(128):
            await client.call("fs/open", handleId=f"h{number}", path=path)
        many = await refusal(client, "fs/open", handleId="one more", path=path)

    assert (base64.b64decode(part["chunk"]), part["eof"]) == (b"3456", False)
    assert (base64.b64decode(rest["chunk"]), rest["eof"]) == (b"89", True)
    assert twice == (INVALID_REQUEST, "file handle `h` already exists")
    assert zero == huge == (INVALID_REQUEST, "file read block length must be between 1 and 1048576")
    assert wrong == (INTERNAL, "Bad file descriptor (os error 9)")
    assert unknown == (NOT_FOUND, "unknown file handle `x`")
    assert many == (INVALID_REQUEST, "at most 128 file handles may be open per connection")


MISSING = "No such file or directory (os error 2)"
REFUSED: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("fs/readFile", "no", {}, NOT_FOUND, MISSING),
    ("fs/getMetadata", "no", {}, NOT_FOUND, MISSING),
    ("fs/getMetadata", "broken", {}, NOT_FOUND, MISSING),
    ("fs/canonicalize", "no", {}, NOT_FOUND, MISSING),
    ("fs/readDirectory", "no", {}, NOT_FOUND, MISSING),
    ("fs/readDirectory", "file", {}, INTERNAL, "Not a directory (os error 20)"),
    ("fs/writeFile", "no/x", {"dataBase64": ""}, NOT_FOUND, MISSING),
    ("fs/createDirectory", "d", {"recursive": False}, INTERNAL, "File exists (os error 17)"),
    ("fs/remove", "no", {"force": False}, NOT_FOUND, MISSING),
    ("fs/remove", "d", {"recursive": True, "followSymlinks": False}, INTERNAL, ""),
    ("fs/open", "no", {"handleId": "h"}, NOT_FOUND, MISSING),
    ("fs/getMetadata", "link", {"followSymlinks": False}, INVALID_REQUEST, "path contains a symbolic link"),
]


async def test_what_goes_wrong_has_its_code_and_text(place: Place) -> None:
    (place.root / "file").write_text("x")
    (place.root / "d" / "e").mkdir(parents=True)
    (place.root / "link").symlink_to("file")
    (place.root / "broken").symlink_to("nowhere")
    async with place.talk() as client:
        for method, name, more, code, text in REFUSED:
            found = await refusal(client, method, path=place.uri(name), **more)

            assert found == (code, text or "recursive no-follow removal is unsupported"), (method, name)


async def test_only_plain_files_are_read(place: Place) -> None:
    os.mkfifo(place.root / "fifo")
    (place.root / "d").mkdir()
    async with place.talk() as client:
        for path in (place.root / "fifo", place.root / "d", "/dev/null"):
            found = await refusal(client, "fs/readFile", path=f"file://{path}")

            assert found == (INVALID_REQUEST, f"path `{path}` is not a file")


NO_PATHS = [
    ("plain/path", INVALID_PARAMS, "invalid URI: relative URL without a base"),
    ("https://host/x", INVALID_PARAMS, "unsupported path URI scheme `https`"),
    ("file:///x?query", INVALID_PARAMS, "query parameters are not allowed in path URIs"),
    ("file:///x#part", INVALID_PARAMS, "fragments are not allowed in path URIs"),
    ("file://far/x", INVALID_REQUEST, "'file://far/x' is invalid on 'linux'"),
]


async def test_a_path_that_is_none_is_refused(place: Place) -> None:
    async with place.talk() as client:
        for path, code, text in NO_PATHS:
            found = await refusal(client, "fs/readFile", path=path)

            assert found[0] == code
            assert text in found[1]


async def test_paths_may_be_written_in_several_ways(place: Place) -> None:
    (place.root / "a b").write_text("x")
    path = str(place.root / "a b").replace(" ", "%20")
    async with place.talk() as client:
        for shown in (f"file://{path}", f"file://localhost{path}", f"FILE://{path}", f"file:{path}"):
            assert await client.call("fs/readFile", path=shown) == {"dataBase64": b64(b"x")}
        up = await client.call("fs/readFile", path=f"file://{place.root.as_posix()}/x/../a%20b")

        assert up == {"dataBase64": b64(b"x")}


async def test_bad_base64_changes_nothing(place: Place) -> None:
    (place.root / "file").write_text("x")
    async with place.talk() as client:
        found = await refusal(client, "fs/writeFile", path=place.uri("file"), dataBase64="!")

    assert found[0] == INVALID_REQUEST
    assert found[1].startswith("fs/writeFile requires valid base64 dataBase64: ")
    assert (place.root / "file").read_text() == "x"


async def test_copies_that_make_no_sense_are_refused(place: Place) -> None:
    (place.root / "d").mkdir()
    os.mkfifo(place.root / "fifo")
    async with place.talk() as client:
        found = [
            await refusal(
                client, "fs/copy", sourcePath=place.uri(source), destinationPath=place.uri(to), recursive=recursive
            )
            for source, to, recursive in [
                ("d", "x", False),
                ("d", "d/e", True),
                ("fifo", "x", False),
                ("no", "x", False),
            ]
        ]

    assert found == [
        (INVALID_REQUEST, "fs/copy requires recursive: true when sourcePath is a directory"),
        (INVALID_REQUEST, "fs/copy cannot copy a directory to itself or one of its descendants"),
        (INVALID_REQUEST, "fs/copy only supports regular files, directories, and symlinks"),
        (NOT_FOUND, MISSING),
    ]


async def test_our_client_tells_what_went_wrong_by_type(place: Place) -> None:
    (place.root / "file").write_text("x")
    (place.root / "d").mkdir()
    async with place.harness() as client:
        with pytest.raises(NotFound):
            await client.files.read_bytes(place.root / "no")
        with pytest.raises(NotAFile):
            await client.files.read_bytes(place.root / "d")
        with pytest.raises(NotADirectory):
            await client.files.list(place.root / "file")
        with pytest.raises(DirectoryInTheWay):
            await client.files.write_bytes(place.root / "d", b"x")


async def test_a_file_that_is_missed_is_told_once_when_it_comes(place: Place) -> None:
    (place.root / "present").write_text("x")
    async with place.talk() as client:
        answer = await client.call(
            "fs/watchMissing", watchId=7, missing=[place.uri("later")], present=place.uri("present")
        )
        (place.root / "later").write_text("x")
        while not client.news:
            await client.call("environment/status")

    assert answer == {"watching": True}
    assert client.news == [{"method": "fs/missingChanged", "params": {"watchId": 7}}]
