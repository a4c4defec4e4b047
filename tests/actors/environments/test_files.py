"""Files through an environment: connecting if need be, confined to the roots, the same as through a client."""

import os
from pathlib import Path

import pytest
import trio

from actors.environments import (
    Connectors,
    Environment,
    EnvironmentClosed,
    EnvironmentFiles,
    FixedEndpoint,
    HarnessConnector,
    LocalConnector,
    PlainEndpoint,
    ReadyInfo,
    SelectedCapabilityRoot,
    Snapshot,
    open_manager,
)
from actors.executor import serve_executor
from actors.harness import FileKind, NotFound, OutsideRoots
from supervision import open_root
from tests.actors.environments.waiting import found
from tests.support.cancelling import cancel_at_each_step


async def use(environment: Environment, folder: Path) -> None:
    """Do everything once."""
    files = environment.files
    await files.make_directory(folder / "d" / "e", parents=True)
    await files.write_text(folder / "d" / "f", "é")
    assert await files.read_text(folder / "d" / "f") == "é"
    assert await files.read_bytes(folder / "d" / "f") == "é".encode()
    assert (await files.stat(folder / "d" / "f")).size_bytes == 2
    assert [(entry.name, entry.kind) for entry in await files.list(folder / "d")] == [
        ("e", FileKind.DIRECTORY),
        ("f", FileKind.FILE),
    ]
    await files.wait_until_exists(folder / "d" / "f")
    await files.copy(folder / "d", folder / "c", recursive=True)
    assert len((await files.walk(folder, depth_max=1)).entries) == 6
    assert await files.canonicalize(folder / "d" / ".." / "c") == str(folder / "c")
    async with files.open_write(folder / "g") as writer:
        await writer.write(b"block")
    async with files.open_read(folder / "g", offset=1) as reader:
        assert [block async for block in reader] == [b"lock"]
    await files.remove(folder / "g")
    assert not await files.exists(folder / "g")
    await files.remove(folder / "c", recursive=True)
    with pytest.raises(NotFound):
        await files.read_bytes(folder / "c" / "f")
    with pytest.raises(OutsideRoots):
        await files.read_bytes("/etc/passwd")


async def test_files_of_this_machine(tmp_path: Path) -> None:
    connectors = Connectors(plain=HarnessConnector(), local=LocalConnector(file_roots=[tmp_path]))
    snapshot = Snapshot(include_local=True, default="local")
    async with open_root() as root, open_manager(root, connectors=connectors, snapshot=snapshot) as manager:
        environment = found(manager, "local")
        with trio.fail_after(30):
            await use(environment, tmp_path)

        assert manager.statistics().operations == 0
    assert os.listdir(tmp_path) == ["d"]


async def test_files_of_an_environment_over_a_socket(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(
            lambda task_status: serve_executor(file_roots=[tmp_path], task_status=task_status)
        )
        async with open_root() as root, open_manager(root) as manager:
            environment = manager.upsert("tools", FixedEndpoint(PlainEndpoint(websocket_url=endpoint.url)))
            with trio.fail_after(30):
                await use(environment, tmp_path)
            await environment.aclose()
            with pytest.raises(EnvironmentClosed):
                await environment.files.exists(tmp_path)
        nursery.cancel_scope.cancel()


async def test_a_cancelled_operation_leaves_the_environment_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    connectors = Connectors(plain=HarnessConnector(), local=LocalConnector(file_roots=[tmp_path]))
    snapshot = Snapshot(include_local=True, default="local")
    async with open_root() as root, open_manager(root, connectors=connectors, snapshot=snapshot) as manager:
        environment = found(manager, "local")
        await environment.files.exists(tmp_path)

        async def blocks() -> None:
            async with environment.files.open_read(tmp_path / "f") as reader:
                await reader.read()

        async def nothing_is_left() -> None:
            assert manager.statistics().operations == 0

        for operation in (blocks, lambda: environment.files.read_text(tmp_path / "f")):
            await cancel_at_each_step(operation, check=nothing_is_left)
        assert os.listdir(tmp_path) == ["f"]


def test_files_are_given_not_made() -> None:
    with pytest.raises(TypeError, match="no public constructor"):
        EnvironmentFiles(object())  # type: ignore[arg-type]


async def test_skills_and_plugins_are_found_in_the_selected_roots(tmp_path: Path) -> None:
    skill = tmp_path / "root" / "skills" / "s" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("what it does")
    async with open_root() as root, trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with open_manager(root) as manager:
            provider = FixedEndpoint(PlainEndpoint(websocket_url=endpoint.url))
            registration = manager.register_deferred("e", provider)
            roots = [
                SelectedCapabilityRoot(id=name, environment_id="e", path=f"file://{tmp_path}/{name}")
                for name in ("root", "missing")
            ]
            registration.complete(ReadyInfo(selected_capability_roots=roots))

            first, second = await found(manager, "e").discover_capabilities()

        nursery.cancel_scope.cancel()

    assert (first.id, second.id) == ("root", "missing")
    assert [skill.instructions.contents for skill in first.skills] == ["what it does"]
    assert second.error is not None
    assert "No such file or directory" in second.error
