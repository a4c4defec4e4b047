"""What a harness tells of itself: that its connection came or went, and what it has counted."""

import attrs

from actors.harness._errors import HarnessError


@attrs.frozen(kw_only=True)
class ConnectionChange:
    """The connection of a harness came or went.

    Attributes:
        connected: It works now.
        position: Counts the changes of this harness, from 1.
        reason: Why it went.
        final: It will not come back: the session is lost.
    """

    connected: bool
    position: int
    reason: HarnessError | None = None
    final: bool = False


@attrs.frozen(kw_only=True)
class ClientStatistics:
    """What a harness has counted.

    Attributes:
        connections: Connections made, the first included.
        followed_processes: Processes followed now.
        unknown_news: Notifications about nothing we know.
        read_pauses: How often the connection was not read because nobody took its output.
        cleanups_failed: Processes and open files whose executor could not be told that nobody wants them.
    """

    connections: int
    followed_processes: int
    unknown_news: int
    read_pauses: int
    cleanups_failed: int
