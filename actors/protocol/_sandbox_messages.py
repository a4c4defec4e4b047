"""What a request says of the sandbox it wants, and whether it wants one at all."""

import enum
from typing import Final

import attrs

from actors.protocol._codec import LEFT_OUT, WIRE_NAME


class SandboxType(enum.Enum):
    """Who is to confine.

    Attributes:
        MANAGED: The executor, as the permissions say.
        DISABLED: Nobody.
        EXTERNAL: Whoever made the environment: its files are open, its network as the permissions say.
    """

    MANAGED = "managed"
    DISABLED = "disabled"
    EXTERNAL = "external"


class SandboxNetwork(enum.Enum):
    """Whether the network may be reached.

    Attributes:
        RESTRICTED: Not, or only as the sandbox says.
        ENABLED: Yes.
    """

    RESTRICTED = "restricted"
    ENABLED = "enabled"


class SandboxFileAccess(enum.Enum):
    """Which files may be reached.

    Attributes:
        RESTRICTED: Those in its list.
        UNRESTRICTED: All.
    """

    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"


@attrs.frozen(kw_only=True)
class SandboxFiles:
    """The files a managed sandbox leaves open.

    Attributes:
        type: All, or those in its list, which is the sandbox's own.
    """

    type: SandboxFileAccess


@attrs.frozen(kw_only=True)
class SandboxPermissions:
    """What a sandboxed process may do.

    Attributes:
        type: Who is to see to it.
        file_system: The files that stay open; of a managed sandbox.
        network: Whether the network does; of a managed or external one.
    """

    type: SandboxType
    file_system: SandboxFiles | None = attrs.field(default=None, metadata={**LEFT_OUT, WIRE_NAME: "file_system"})
    network: SandboxNetwork | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class Sandbox:
    """A request to run sandboxed.

    Attributes:
        permissions: What is allowed.
    """

    permissions: SandboxPermissions

    @property
    def confines(self) -> bool:
        """It asks for less than everything: what cannot confine must refuse it."""
        return self.permissions not in _NOT_CONFINED


_NOT_CONFINED: Final = (
    SandboxPermissions(type=SandboxType.DISABLED),
    SandboxPermissions(type=SandboxType.EXTERNAL, network=SandboxNetwork.ENABLED),
    SandboxPermissions(
        type=SandboxType.MANAGED,
        file_system=SandboxFiles(type=SandboxFileAccess.UNRESTRICTED),
        network=SandboxNetwork.ENABLED,
    ),
)
