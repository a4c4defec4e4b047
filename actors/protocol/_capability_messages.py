"""Messages about capability roots: folders with skills and plugins, and what is found in them."""

import attrs

from actors.protocol._codec import LEFT_OUT
from actors.protocol._sandbox_messages import Sandbox


@attrs.frozen(kw_only=True)
class RootToDiscover:
    """A folder to look into.

    Attributes:
        id: The caller's name for it; comes back.
        path: File URI of the folder.
    """

    id: str
    path: str


@attrs.frozen(kw_only=True)
class DiscoverRootsParams:
    """Look into capability roots.

    Attributes:
        roots: Which, at most 128.
        sandbox: Look from inside a sandbox.
    """

    roots: tuple[RootToDiscover, ...]
    sandbox: Sandbox | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class CapabilityFile:
    """A file of a capability root.

    Attributes:
        path: Its file URI.
        contents: What it holds, as text.
    """

    path: str
    contents: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class DiscoveredPlugin:
    """A root that is a plugin.

    Attributes:
        manifest: What says so.
        mcp_config: The servers it brings, when they stand in a file of their own.
        apps_config: The apps it brings, likewise.
    """

    manifest: CapabilityFile
    mcp_config: CapabilityFile | None
    apps_config: CapabilityFile | None


@attrs.frozen(kw_only=True)
class DiscoveredSkill:
    """A skill in a root.

    Attributes:
        instructions: Its `SKILL.md`.
        metadata: Its `agents/openai.yaml`, when there is one.
    """

    instructions: CapabilityFile
    metadata: CapabilityFile | None


@attrs.frozen(kw_only=True)
class DiscoveredRoot:
    """What was found in one root.

    Attributes:
        id: As asked.
        path: As asked.
        plugin: The root itself, when it is a plugin.
        skills: By path, of plugins inside it as well.
        namespace_manifests: Every plugin manifest in it, its own included.
        warnings: What could not be told, and why.
        error: Why nothing could.
    """

    id: str
    path: str
    plugin: DiscoveredPlugin | None = None
    skills: tuple[DiscoveredSkill, ...] = ()
    namespace_manifests: tuple[CapabilityFile, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


@attrs.frozen(kw_only=True)
class DiscoverRootsResult:
    """What was found.

    Attributes:
        roots: In the order in which they were asked for.
    """

    roots: tuple[DiscoveredRoot, ...]
