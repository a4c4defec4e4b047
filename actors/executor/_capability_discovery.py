"""Look into capability roots: find skills and plugins in a folder, and tell their files. Blocking.

Everything is reached through the tree of files, so nothing outside the executor's roots is read. Links to files are
passed over, links to folders followed inside the roots, pipes and devices never opened. All of it is bounded.
"""

import os
import stat

from actors.executor._file_reading import Tick, open_plain
from actors.executor._file_tree import FileTree, Links
from actors.executor._file_walking import walk
from actors.executor._refusals import RequestRefused
from actors.executor._routes import LeftRoots
from actors.protocol import (
    CAPABILITY_DEPTH_MAX,
    CAPABILITY_FILE_BYTES_MAX,
    CAPABILITY_FOLDERS_MAX,
    CAPABILITY_ROOT_BYTES_MAX,
    MANIFESTS,
    SKILL_FILE,
    SKILL_METADATA,
    CapabilityFile,
    DiscoveredPlugin,
    DiscoveredRoot,
    DiscoveredSkill,
    RootToDiscover,
    WalkKind,
    WalkOptions,
    file_no_text,
    file_os_failure,
    file_over_limit,
    manifest_paths,
    outside_roots,
    path_from_uri,
    root_no_folder,
    root_over_limit,
    root_uninspectable,
    scan_over_limit,
    sorted_by_path,
    uri_from_path,
)

__all__ = ["Budget", "discover_root"]

_ENTRIES_MAX = 100_000


class Budget:
    """How many bytes of files one answer may still hold: it goes out as one message."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes


def discover_root(tree: FileTree, root: RootToDiscover, path: str, budget: Budget, tick: Tick) -> DiscoveredRoot:
    """Look into one root.

    Raises:
        LeftRoots: It is outside the executor's roots.
    """
    try:
        with tree.at(path) as spot:
            found = spot.here
        if not stat.S_ISDIR(found.st_mode):
            return DiscoveredRoot(id=root.id, path=root.path, error=root_no_folder(root.path))
        return _Discovery(tree, root, path, budget, tick).go()
    except OSError as error:
        reason = _told(error, path)
        return DiscoveredRoot(id=root.id, path=root.path, error=root_uninspectable(root.path, reason))


class _Discovery:
    def __init__(self, tree: FileTree, root: RootToDiscover, path: str, budget: Budget, tick: Tick) -> None:
        self._tree, self._root, self._path, self._tick = tree, root, path.rstrip("/"), tick
        self._budget = budget
        self._left_bytes = CAPABILITY_ROOT_BYTES_MAX
        self._warnings: list[str] = []
        self._files: set[str] = set()

    def go(self) -> DiscoveredRoot:
        self._files = self._list()
        plugin = self._plugin()
        skills = [skill for path in self._named(SKILL_FILE) if (skill := self._skill(path)) is not None]
        manifests = [
            file
            for path in sorted_by_path([path for name in MANIFESTS for path in self._named(name)])
            if (file := self._file(path)) is not None
        ]
        return DiscoveredRoot(
            id=self._root.id,
            path=self._root.path,
            plugin=plugin,
            skills=tuple(skills),
            namespace_manifests=tuple(manifests),
            warnings=tuple(self._warnings),
        )

    def _list(self) -> set[str]:
        options = WalkOptions(
            max_depth=CAPABILITY_DEPTH_MAX,
            max_directories=CAPABILITY_FOLDERS_MAX,
            max_entries=_ENTRIES_MAX,
            follow_directory_symlinks=True,
            prune_hidden_directories=False,
        )
        found = walk(self._tree, self._path, options, self._tick)
        if found.truncated:
            self._warnings.append(scan_over_limit(self._root.path))
        return {path_from_uri(entry.path) for entry in found.entries if entry.kind is WalkKind.FILE}

    def _named(self, name: str) -> list[str]:
        """Give the files of a name, in order of their paths."""
        return sorted_by_path([path for path in self._files if path.endswith(f"/{name}")])

    def _plugin(self) -> DiscoveredPlugin | None:
        present = [path for name in MANIFESTS if (path := f"{self._path}/{name}") in self._files]
        manifest = self._file(present[0]) if present else None
        if manifest is None:
            return None
        paths = manifest_paths(manifest.contents, manifest.path)
        self._warnings += paths.ignored
        return DiscoveredPlugin(
            manifest=manifest, mcp_config=self._beside(paths.mcp_config), apps_config=self._beside(paths.apps_config)
        )

    def _beside(self, relative: str | None) -> CapabilityFile | None:
        path = f"{self._path}/{relative}"
        return self._file(path) if relative is not None and path in self._files else None

    def _skill(self, path: str) -> DiscoveredSkill | None:
        instructions = self._file(path)
        if instructions is None:
            return None
        metadata = f"{path.removesuffix(SKILL_FILE)}{SKILL_METADATA}"
        return DiscoveredSkill(
            instructions=instructions, metadata=self._file(metadata) if metadata in self._files else None
        )

    def _file(self, path: str) -> CapabilityFile | None:
        """Give a file, or a warning."""
        self._tick()
        uri = uri_from_path(path)
        try:
            data = self._read(path)
        except (OSError, LeftRoots, RequestRefused) as error:
            self._warnings.append(f"failed to read capability file {uri}: {_told(error, path)}")
            return None
        if len(data) > CAPABILITY_FILE_BYTES_MAX:
            self._warnings.append(file_over_limit(uri))
            return None
        try:
            contents = data.decode("utf-8")
        except UnicodeDecodeError as fault:
            self._warnings.append(file_no_text(uri, fault))
            return None
        if len(data) > min(self._left_bytes, self._budget.left_bytes):
            self._warnings.append(root_over_limit())
            return None
        self._left_bytes -= len(data)
        self._budget.left_bytes -= len(data)
        return CapabilityFile(path=uri, contents=contents)

    def _read(self, path: str) -> bytes:
        # A link in the last place is not followed: there was a file when we looked.
        with self._tree.at(path, Links.KEEP_LAST) as spot:
            file = open_plain(spot, path)
        try:
            parts: list[bytes] = []
            size_bytes = 0
            while size_bytes <= CAPABILITY_FILE_BYTES_MAX and (part := os.read(file, CAPABILITY_FILE_BYTES_MAX + 1)):
                parts.append(part)
                size_bytes += len(part)
        finally:
            os.close(file)
        return b"".join(parts)


def _told(error: Exception, path: str) -> str:
    match error:
        case LeftRoots():
            return outside_roots(path).message
        case RequestRefused():
            return error.failure.message
        case OSError():
            return file_os_failure(error.errno or 0, os.strerror(error.errno or 0), path).message
        case _:
            raise error
