"""Send a tool list once: later executions of the same host session name it by its revision.

Only for hosts that said they keep one. A list travels until an execution that carried it has started: from then on the
host is known to have it. A changed list gets the next revision, so that what is under way never meets another list.
"""

import attrs

from actors.sessions._values import ToolDefinition


@attrs.frozen
class Listing:
    """How one execution tells its tools.

    Attributes:
        revision: To send with it; None: the host keeps no lists, or there are no tools.
        inline: To send with it.
    """

    revision: int | None

    inline: tuple[ToolDefinition, ...]


class Catalogue:
    """What one host session is known to keep."""

    def __init__(self) -> None:
        self.supported = False
        """Whether the host said that it keeps a list."""
        self._revision = 0
        self._tools: tuple[ToolDefinition, ...] = ()
        # 0, or the present revision once the host is known to have it.
        self._kept = 0

    def listing(self, tools: tuple[ToolDefinition, ...]) -> Listing:
        """Say how to tell these tools."""
        if not self.supported or not tools:
            # A list of none under a revision would mean the list that is kept.
            return Listing(None, tools)
        if tools != self._tools:
            self._revision, self._tools, self._kept = self._revision + 1, tools, 0
        return Listing(self._revision, () if self._kept == self._revision else tools)

    def started(self, listing: Listing) -> None:
        """Note that an execution with this listing has started."""
        if listing.revision == self._revision and listing.revision is not None:
            self._kept = listing.revision

    def refused(self, listing: Listing) -> None:
        """Note that an execution with this listing was refused: the list travels again next time."""
        if listing.revision == self._revision:
            self._kept = 0
