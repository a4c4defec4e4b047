"""The real way to a plain executor: a harness over a WebSocket, held by the task that opened it."""

from actors.environments._errors import NotSupported
from actors.environments._seams import LinkReport, LinkRequest


class HarnessConnector:
    """Open a harness to a `PlainEndpoint` and hold it."""

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and return or raise when it is gone for good."""
        raise NotSupported("connecting to a plain endpoint", "its harness is not installed")
