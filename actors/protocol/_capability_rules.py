"""How much of a capability root is told, and what is said of what is not.

What a file holds is told as it is; what it means is the harness's to say. Only the manifest's two paths are read here.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, cast

import attrs

from actors.protocol._envelope import Failure
from actors.protocol._failures import invalid_request

CAPABILITY_ROOTS_MAX: Final = 128
"""Roots of one request."""
CAPABILITY_FILE_BYTES_MAX: Final = 1024 * 1024
"""The largest file that is told."""
CAPABILITY_ROOT_BYTES_MAX: Final = 16 * 1024 * 1024
"""What is told of one root."""
CAPABILITY_DEPTH_MAX: Final = 6
"""Folders below a root that are looked into."""
CAPABILITY_FOLDERS_MAX: Final = 2000
"""Folders of one root that are looked into."""
SKILL_FILE: Final = "SKILL.md"
SKILL_METADATA: Final = "agents/openai.yaml"
MANIFESTS: Final = (".codex-plugin/plugin.json", ".claude-plugin/plugin.json")


@attrs.frozen
class ManifestPaths:
    """Where a plugin says that its other files are, relative to its root.

    Attributes:
        mcp_config: Of its servers; None when there is no such file.
        apps_config: Of its apps; None when there is no such file.
        ignored: Paths that were not taken, each with the reason.
    """

    mcp_config: str | None
    apps_config: str | None
    ignored: tuple[str, ...]


def manifest_paths(contents: str, uri: str) -> ManifestPaths:
    """Read what a manifest says of the plugin's other files; one that is no JSON says nothing."""
    try:
        manifest = json.loads(contents)
    except (ValueError, RecursionError):
        manifest = None
    members = cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}
    ignored: list[str] = []
    mcp = _path_of(members.get("mcpServers"), "mcpServers", uri, ".mcp.json", ignored)
    apps = _path_of(members.get("apps"), "apps", uri, ".app.json", ignored)
    if isinstance(members.get("mcpServers"), dict):
        mcp = None  # They stand in the manifest itself.
    return ManifestPaths(mcp, apps, tuple(ignored))


def _path_of(value: object, member: str, uri: str, usual: str, ignored: list[str]) -> str | None:
    if not isinstance(value, str):
        return usual
    if not value.startswith("./"):
        ignored.append(f"ignoring {member} in {uri}: path must start with `./`")
        return usual
    names = [name for name in value.split("/") if name not in {"", "."}]
    if ".." in names or not names or "\0" in value:
        ignored.append(f"ignoring {member} in {uri}: path must stay inside the plugin")
        return usual
    return "/".join(names)


def capability_roots_too_many() -> Failure:
    """Refuse too many roots at once."""
    return invalid_request(f"capability root discovery accepts at most {CAPABILITY_ROOTS_MAX} roots")


def root_uninspectable(uri: str, reason: str) -> str:
    """Say why a root could not be looked into."""
    return f"failed to inspect capability root {uri}: {reason}"


def root_no_folder(uri: str) -> str:
    """Say that a root is something else."""
    return f"capability root {uri} is not a directory"


def file_over_limit(uri: str) -> str:
    """Say that a file is too large to be told."""
    return f"capability file {uri} exceeds the {CAPABILITY_FILE_BYTES_MAX}-byte limit"


def root_over_limit() -> str:
    """Say that a root holds too much to be told."""
    return f"capability root bundle exceeds the {CAPABILITY_ROOT_BYTES_MAX}-byte limit"


def scan_over_limit(uri: str) -> str:
    """Say that a root has too many folders."""
    return f"capability scan reached its traversal limit (root: {uri})"


def file_no_text(uri: str, fault: UnicodeDecodeError) -> str:
    """Say that a file is no text."""
    if fault.reason == "unexpected end of data":
        why = f"incomplete utf-8 byte sequence from index {fault.start}"
    else:
        why = f"invalid utf-8 sequence of {fault.end - fault.start} bytes from index {fault.start}"
    return f"capability file {uri} is not UTF-8: {why}"


def sorted_by_path(files: Sequence[str]) -> list[str]:
    """Put paths in the order of the answer."""
    return sorted(files, key=lambda path: path.encode("utf-8", "surrogateescape"))
