"""Case P16 and worse: nothing outside is read, made or changed, whatever stands in the workspace."""

import base64
import contextlib
import json
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.executor import ExecutorEvent, PathRefused, RootUnusable, open_executor
from actors.executor._file_tree import Links, open_file_tree
from actors.executor._routes import LeftRoots
from tests.actors.executor.client import Client, Refused, memory_client

SECRET = b"the secret outside"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """W, and beside it O, with every kind of link in W."""
    root, outside = tmp_path / "W", tmp_path / "O"
    for folder in (root, root / "d", outside, tmp_path / "W-evil"):
        folder.mkdir()
    (outside / "secret").write_bytes(SECRET)
    (tmp_path / "W-evil" / "x").write_bytes(SECRET)
    (root / "f").write_text("inside")
    for name, target in {
        "to-file-outside": "../O/secret",
        "to-file-outside-absolute": str(outside / "secret"),
        "dangling-outside": "../O/not-yet",
        "to-folder-outside": "../O",
        "to-file-inside": "f",
        "to-file-inside-absolute": str(root / "f"),
        "to-file-inside-by-outside": "../O/../W/f",
        "chain": "chain-2",
        "chain-2": "to-file-outside",
        "loop": "loop",
        "d/up": "../../O",
    }.items():
        (root / name).symlink_to(target)
    return root


@pytest.fixture
async def client(workspace: Path) -> AsyncIterator[Client]:
    async with open_executor(file_roots=[workspace]) as executor, memory_client(executor, buffered=1000) as client:
        yield client


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def snapshot(folder: Path) -> dict[str, Any]:
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    } | {str(folder): sorted(os.listdir(folder))}


async def every_operation(client: Client, path: str, root: Path) -> dict[str, Any]:
    """Do everything to a path; give what was answered."""
    uri = f"file://{path}"
    inside = f"file://{root}/f"
    options = {"maxDepth": 5, "maxDirectories": 9, "maxEntries": 99, "followDirectorySymlinks": True}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("read", "fs/readFile", {"path": uri}),
        ("open", "fs/open", {"handleId": "r", "path": uri}),
        ("block", "fs/readBlock", {"handleId": "r", "offset": 0, "len": 99}),
        ("shut", "fs/close", {"handleId": "r"}),
        ("stat", "fs/getMetadata", {"path": uri}),
        ("list", "fs/readDirectory", {"path": uri}),
        ("walk", "fs/walk", {"path": uri, "options": options}),
        ("canonicalize", "fs/canonicalize", {"path": uri}),
        ("copy", "fs/copy", {"sourcePath": f"{uri}/secret", "destinationPath": f"file://{root}/c", "recursive": True}),
        ("watch", "fs/watchMissing", {"watchId": 1, "missing": [f"{uri}/zz"], "present": uri}),
        ("mkdir", "fs/createDirectory", {"path": f"{uri}/new/newer"}),
        ("mkdir-one", "fs/createDirectory", {"path": f"{uri}/new", "recursive": False}),
        ("create", "fs/writeFile", {"path": f"{uri}/new", "dataBase64": b64(b"new")}),
        ("replace", "fs/open", {"handleId": "w", "path": uri, "mode": "replace"}),
        ("append", "fs/writeBlock", {"handleId": "w", "offset": 99, "chunk": b64(b"new")}),
        ("commit", "fs/close", {"handleId": "w"}),
        ("copy onto", "fs/copy", {"sourcePath": inside, "destinationPath": uri, "recursive": False}),
        ("copy under", "fs/copy", {"sourcePath": inside, "destinationPath": f"{uri}/new", "recursive": False}),
        ("write", "fs/writeFile", {"path": uri, "dataBase64": b64(b"new")}),
        ("remove under", "fs/remove", {"path": f"{uri}/secret"}),
    ]
    answers: dict[str, Any] = {}
    for name, method, params in calls:
        try:
            answers[name] = await client.call(method, **params)
        except Refused as refused:
            answers[name] = refused
    return answers


OUTSIDE = ["to-file-outside", "to-file-outside-absolute", "dangling-outside", "to-folder-outside", "chain", "d/up"]


@pytest.mark.parametrize("name", OUTSIDE)
async def test_p16_nothing_outside_is_read_made_or_changed_through_a_link(
    name: str, client: Client, workspace: Path
) -> None:
    outside = workspace.parent / "O"
    before = snapshot(outside)

    answers = await every_operation(client, f"{workspace}/{name}", workspace)

    assert snapshot(outside) == before
    told = json.dumps([a if isinstance(a, dict) else [a.message, a.data] for a in answers.values()])
    assert b64(SECRET) not in told
    assert "/O" not in told
    for operation in ("read", "open", "stat", "list", "walk", "canonicalize", "replace", "copy onto", "write"):
        refused = answers[operation]
        assert isinstance(refused, Refused), operation
        assert refused.message == f"path `{workspace}/{name}` is outside of the roots of this executor"
        assert refused.data == {"kind": "outsideRoots", "path": f"{workspace}/{name}"}
    assert (workspace / name).is_symlink()


@pytest.mark.parametrize("name", ["to-file-inside", "to-file-inside-absolute", "to-file-inside-by-outside"])
async def test_p16_links_that_end_inside_work(name: str, client: Client, workspace: Path) -> None:
    uri = f"file://{workspace}/{name}"

    assert (await client.call("fs/readFile", path=uri))["dataBase64"] == b64(b"inside")
    await client.call("fs/writeFile", path=uri, dataBase64=b64(b"changed"))
    assert (workspace / "f").read_bytes() == b"changed"
    assert (workspace / name).is_symlink()
    assert (await client.call("fs/canonicalize", path=uri))["path"] == f"file://{workspace}/f"


@pytest.mark.parametrize("name", [*OUTSIDE, "loop", "to-file-inside"])
async def test_p16_removing_a_link_removes_the_link(name: str, client: Client, workspace: Path) -> None:
    before = snapshot(workspace.parent / "O")

    await client.call("fs/remove", path=f"file://{workspace}/{name}", force=False)

    assert not (workspace / name).is_symlink()
    assert snapshot(workspace.parent / "O") == before
    assert (workspace / "f").exists()


async def test_p16_a_loop_ends(client: Client, workspace: Path) -> None:
    with pytest.raises(Refused, match=r"Symbolic link loop \(os error 40\)"):
        await client.call("fs/readFile", path=f"file://{workspace}/loop")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("{W}/..", -32600),
        ("{W}/a/../../x", -32600),
        ("{W}/%2e%2e/O/secret", -32600),
        ("{W}/..%2FO%2Fsecret", -32600),
        ("{W}/d/..%2F..%2FO%2Fsecret", -32600),
        ("{W}-evil/x", -32600),
        ("{O}/secret", -32600),
        ("/etc/passwd", -32600),
        ("/proc/self/root/etc/passwd", -32600),
        ("/", -32600),
        ("", -32600),
        ("{W}/a%00b", -32602),
        ("{W}/" + "n" * 300, -32603),
        ("{W}/" + "n/" * 3000 + "n", -32004),
    ],
)
async def test_p16_names_that_lead_nowhere_good_are_refused(
    path: str, code: int, client: Client, workspace: Path
) -> None:
    named = path.replace("{W}", str(workspace)).replace("{O}", str(workspace.parent / "O"))

    for method in ("fs/readFile", "fs/getMetadata", "fs/readDirectory"):
        with pytest.raises(Refused) as refused:
            await client.call(method, path=f"file://{named}")
        assert refused.value.code == code, method
    assert refused.value.data is None or SECRET.decode() not in str(refused.value.data)


async def test_p16_the_root_may_be_reached_through_a_link(workspace: Path) -> None:
    (workspace.parent / "W-link").symlink_to("W")
    async with (
        open_executor(file_roots=[workspace.parent / "W-link"]) as executor,
        memory_client(executor) as client,
    ):
        for root in ("W-link", "W"):
            found = await client.call("fs/readFile", path=f"file://{workspace.parent}/{root}/to-file-inside-absolute")

            assert found["dataBase64"] == b64(b"inside")
        with pytest.raises(Refused, match="outside of the roots"):
            await client.call("fs/readFile", path=f"file://{workspace.parent}/W-link/chain")


async def test_a_link_from_one_root_into_another_works(workspace: Path) -> None:
    roots = [workspace, workspace.parent / "O"]
    async with open_executor(file_roots=roots) as executor, memory_client(executor) as client:
        found = await client.call("fs/readFile", path=f"file://{workspace}/chain")

        assert found["dataBase64"] == b64(SECRET)


async def test_a_root_itself_is_not_removed_nor_replaced(client: Client, workspace: Path) -> None:
    for path in (f"{workspace}", f"{workspace}/d%2F.."):
        with pytest.raises(Refused, match="is a root of this executor"):
            await client.call("fs/remove", path=f"file://{path}")

    assert (workspace / "f").exists()


async def test_merging_a_copy_replaces_links_and_does_not_write_through_them(client: Client, workspace: Path) -> None:
    (workspace / "from").mkdir()
    (workspace / "from" / "x").write_text("copied")
    (workspace / "to").mkdir()
    (workspace / "to" / "x").symlink_to("../../O/secret")

    params = {"sourcePath": f"file://{workspace}/from", "destinationPath": f"file://{workspace}/to", "recursive": True}
    await client.call("fs/copy", **params)

    assert (workspace.parent / "O" / "secret").read_bytes() == SECRET
    assert (workspace / "to" / "x").read_text() == "copied"
    assert not (workspace / "to" / "x").is_symlink()


async def test_a_walk_that_follows_links_stays_inside(client: Client, workspace: Path) -> None:
    options = {"maxDepth": 9, "maxDirectories": 99, "maxEntries": 99, "followDirectorySymlinks": True}

    walked = await client.call("fs/walk", path=f"file://{workspace}", options=options)

    assert [entry["path"].removeprefix(f"file://{workspace}/") for entry in walked["entries"]] == ["d", "f"]


@pytest.mark.parametrize(("cwd", "runs"), [("{W}/d", True), ("{W}/d/up", False), ("{W}/..", False), ("/tmp", False)])
async def test_processes_start_inside_only(cwd: str, runs: bool, client: Client, workspace: Path) -> None:
    uri = "file://" + cwd.replace("{W}", str(workspace))

    if not runs:
        with pytest.raises(Refused, match="outside of the roots"):
            await client.start("p", "/bin/pwd", cwd=uri)
        return
    await client.start("p", "/bin/pwd", cwd=uri)
    await client.finish("p")

    assert client.output("p").decode().strip() == f"{workspace}/d"


async def test_a_root_that_is_no_folder_is_refused_at_once(workspace: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    for root in (workspace / "f", workspace / "missing"):
        with pytest.raises(RootUnusable, match="name a folder that exists"):
            async with open_executor(file_roots=[workspace, root]):
                pass

    assert len(os.listdir("/proc/self/fd")) == before


@contextlib.contextmanager
def swapping(root: Path, *, folder: bool) -> Iterator[None]:
    """Somebody makes `s` a folder (or file), and a link to the outside, and a folder, as fast as it goes."""
    if folder:
        (root / "s").mkdir()
    (root / "s" / "secret" if folder else root / "s").write_bytes(b"inside")
    (root / "t").symlink_to("../O" if folder else "../O/secret")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            os.rename(root / "s", root / "u")
            os.rename(root / "t", root / "s")
            os.rename(root / "s", root / "t")
            os.rename(root / "u", root / "s")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["s/secret", "s"])
def test_whoever_swaps_a_folder_or_file_for_a_link_wins_nothing(path: str, workspace: Path) -> None:
    """Seen to kill: a folder or the last name opened without O_NOFOLLOW; the last name opened by its whole path."""
    seen: set[bytes] = set()
    with open_file_tree([str(workspace)]) as tree, swapping(workspace, folder=path != "s"):
        for _ in range(15_000):
            with contextlib.suppress(OSError, LeftRoots), tree.at(f"{workspace}/{path}", Links.FOLLOW) as spot:
                file = spot.open(os.O_RDONLY)
                seen.add(os.read(file, 99))
                os.close(file)

    assert seen == {b"inside"}


async def test_nothing_stays_open_whatever_is_refused(workspace: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with open_executor(file_roots=[workspace]) as executor:
        async with memory_client(executor, buffered=1000) as client:
            for name in (*OUTSIDE, "loop", "to-file-inside", "d", "f", "missing"):
                await every_operation(client, f"{workspace}/{name}", workspace)
        await trio.testing.wait_all_tasks_blocked()

    assert len(os.listdir("/proc/self/fd")) == before


async def test_what_is_refused_outside_the_roots_is_counted_and_told_by_the_path_that_was_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    events: list[ExecutorEvent] = []
    async with (
        open_executor(file_roots=[tmp_path / "in"], observer=events.append) as executor,
        memory_client(executor) as client,
    ):
        link = f"file://{tmp_path}/in/link"
        with pytest.raises(Refused):
            await client.call("fs/readFile", path=f"{link}/secret")
        with pytest.raises(Refused):
            await client.call("fs/watchMissing", watchId=1, missing=["file:///etc/x"], present=None)
        with pytest.raises(Refused):
            await client.start("p", "/bin/true", cwd="file:///")
        with pytest.raises(Refused):
            await client.start("p", "/bin/true", cwd=link)
        await client.call("capabilityRoots/discoverV1", roots=[{"id": "r", "path": "file:///etc"}])
        with pytest.raises(Refused):
            await client.call("fs/readFile", path=f"file://{tmp_path}/in/missing")

        told = [(event.method, event.path) for event in events if isinstance(event, PathRefused)]
        assert told == [
            ("fs/readFile", f"{tmp_path}/in/link/secret"),
            ("fs/watchMissing", "/etc/x"),
            ("process/start", "/"),
            ("process/start", f"{tmp_path}/in/link"),
            ("capabilityRoots/discoverV1", "/etc"),
        ]
        assert executor.statistics().paths_refused == 5
