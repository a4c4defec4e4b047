"""Capability roots over the wire, on a real disk: what the existing executor finds, bounded and inside the roots."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from actors.executor import open_executor
from tests.actors.executor.client import Client, Refused, memory_client


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    (tmp_path / "in").mkdir()
    async with open_executor(file_roots=[tmp_path / "in"]) as executor, memory_client(executor) as client:
        yield client


@pytest.fixture
def root(tmp_path: Path, client: Client) -> Path:
    folder = tmp_path / "in" / "root"
    folder.mkdir()
    return folder


def put(root: Path, name: str, contents: str = "") -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(contents)
    return uri(path)


def uri(path: Path) -> str:
    return f"file://{path}"


async def discover(client: Client, path: Path | str) -> dict[str, Any]:
    text = path if isinstance(path, str) else uri(path)
    (found,) = (await client.call("capabilityRoots/discoverV1", roots=[{"id": "r", "path": text}]))["roots"]
    assert (found["id"], found["path"]) == ("r", text)
    return found


async def test_skills_are_found_in_every_folder_sorted_and_with_their_metadata(client: Client, root: Path) -> None:
    names = ["skills/b/SKILL.md", "SKILL.md", "skills/.hidden/SKILL.md", "skills/a/deep/SKILL.md", "skills/a/SKILL.md"]
    for name in names:
        put(root, name, name)
    put(root, "skills/a/agents/openai.yaml", "x: 1")
    put(root, "case/skill.md")

    found = await discover(client, root)

    told = [skill["instructions"]["path"].removeprefix(f"{uri(root)}/") for skill in found["skills"]]
    assert told == sorted(names)
    assert [skill["instructions"]["contents"] for skill in found["skills"]] == sorted(names)
    metadata = {skill["metadata"]["contents"] for skill in found["skills"] if skill["metadata"]}
    assert metadata == {"x: 1"}
    assert (found["plugin"], found["warnings"], found["error"]) == (None, [], None)


@pytest.mark.parametrize(
    ("manifest", "mcp", "apps", "warnings"),
    [
        ("not json", "M", "A", 0),
        ("{}", "M", "A", 0),
        ('{"mcpServers": "./m/x.json", "apps": "./a.json"}', "MX", "AX", 0),
        ('{"mcpServers": {"a": {}}, "apps": {}}', None, "A", 0),
        ('{"mcpServers": "../m/x.json", "apps": "/etc/hostname"}', "M", "A", 2),
        ('{"mcpServers": "./../../x", "apps": "./."}', "M", "A", 2),
        ('{"mcpServers": "./nope.json", "apps": "./m"}', None, None, 0),
    ],
)
async def test_a_plugin_is_told_with_the_files_its_manifest_names(
    client: Client, root: Path, manifest: str, mcp: str | None, apps: str | None, warnings: int
) -> None:
    path = put(root, ".codex-plugin/plugin.json", manifest)
    for name, contents in {".mcp.json": "M", ".app.json": "A", "m/x.json": "MX", "a.json": "AX"}.items():
        put(root, name, contents)

    found = await discover(client, root)

    plugin = found["plugin"]
    assert plugin["manifest"] == {"path": path, "contents": manifest}
    assert (plugin["mcpConfig"] or {}).get("contents") == mcp
    assert (plugin["appsConfig"] or {}).get("contents") == apps
    assert len(found["warnings"]) == warnings
    assert all(warning.startswith("ignoring ") for warning in found["warnings"])


async def test_plugins_inside_a_root_are_told_by_their_manifests(client: Client, root: Path) -> None:
    put(root, ".claude-plugin/plugin.json", "outer")
    put(root, "skills/inner/.codex-plugin/plugin.json", "inner")

    found = await discover(client, root)

    assert found["plugin"]["manifest"]["contents"] == "outer"
    assert [manifest["contents"] for manifest in found["namespaceManifests"]] == ["outer", "inner"]


async def test_what_cannot_be_told_is_a_warning_and_the_rest_is_told(client: Client, root: Path) -> None:
    large, odd = put(root, "large/SKILL.md", "x" * (1024 * 1024 + 1)), root / "odd" / "SKILL.md"
    put(root, "full/SKILL.md", "y" * 1024 * 1024)
    put(root, "odd/SKILL.md")
    odd.write_bytes(b"\xff\xfeabc")

    found = await discover(client, root)

    assert found["warnings"] == [
        f"capability file {large} exceeds the 1048576-byte limit",
        f"capability file {uri(odd)} is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
    ]
    assert len(found["skills"]) == 1


async def test_a_root_is_looked_into_six_folders_deep_and_tells_at_most_sixteen_mebibytes(
    client: Client, root: Path
) -> None:
    for depth in range(1, 10):
        put(root, "deep/" + "/".join(["s"] * depth) + "/SKILL.md", "x")
    for number in range(17):
        put(root, f"total/{number:02}/SKILL.md", "z" * 1_000_000)

    found = await discover(client, root)

    deep = [skill for skill in found["skills"] if "/deep/" in skill["instructions"]["path"]]
    assert len(deep) == 5
    assert found["warnings"] == ["capability root bundle exceeds the 16777216-byte limit"]


async def test_links_and_pipes_lead_nowhere_outside(client: Client, root: Path, tmp_path: Path) -> None:
    put(tmp_path, "out/SKILL.md", "secret")
    put(root, "real/SKILL.md", "mine")
    (root / "folder").symlink_to(tmp_path / "out")
    (root / "inside").symlink_to(root / "real")
    (root / "file").mkdir()
    (root / "file" / "SKILL.md").symlink_to(tmp_path / "out" / "SKILL.md")
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe" / "SKILL.md")

    found = await discover(client, root)

    assert "secret" not in str(found)
    assert {skill["instructions"]["contents"] for skill in found["skills"]} == {"mine"}


async def test_what_is_wrong_with_a_root_is_said_of_that_root(client: Client, root: Path, tmp_path: Path) -> None:
    missing, file = uri(root / "missing"), put(root, "file")
    outside = uri(tmp_path / "out")

    assert (await discover(client, missing))["error"] == (
        f"failed to inspect capability root {missing}: No such file or directory (os error 2)"
    )
    assert (await discover(client, file))["error"] == f"capability root {file} is not a directory"
    assert (await discover(client, "file://h/x"))["error"] == (
        "failed to inspect capability root file://h/x: 'file://h/x' is invalid on 'linux'"
    )
    assert (await discover(client, outside))["error"].startswith(f"failed to inspect capability root {outside}: ")


async def test_a_request_that_is_none_is_refused_as_a_whole(client: Client, root: Path) -> None:
    for roots, message in (
        (None, "invalid type: null, expected a sequence"),
        ([{"id": "r", "path": "x"}], "invalid URI: relative URL without a base"),
        ([{"id": "r", "path": "https://h/x"}], "unsupported path URI scheme `https`"),
        ([{"id": "r", "path": uri(root)}] * 129, "capability root discovery accepts at most 128 roots"),
    ):
        with pytest.raises(Refused, match=message):
            await client.call("capabilityRoots/discoverV1", roots=roots)
