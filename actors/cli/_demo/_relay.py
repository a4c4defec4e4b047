"""The demo's registry and rendezvous: a child of a supervisor, on one port, that can be made to crash."""

import secrets
from urllib.parse import urlsplit

import trio

from actors.rendezvous import Grant, Rendezvous, open_rendezvous
from supervision import ChildStatus

__all__ = ["Relay", "RelayCrashed"]


class RelayCrashed(Exception):
    """The relay was made to crash. Everything that it knew is gone; its supervisor starts it again."""

    def __init__(self) -> None:
        super().__init__("the relay crashed, as it was told to")


class Relay:
    """One address, and whoever answers there at the moment."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """What executors and harnesses show to the registry."""
        self._port = 0
        self._crash = trio.Event()

    def __repr__(self) -> str:
        return f"<Relay on port {self._port}>"

    async def run(self, *, task_status: ChildStatus[Rendezvous]) -> None:
        """Serve until told to crash; the next one serves on the same port.

        Raises:
            RelayCrashed: It was told to.
            OSError: The port cannot be had.
        """
        self._crash = trio.Event()
        async with open_rendezvous([Grant(token=self.token, name="demo")], port=self._port) as rendezvous:
            self._port = urlsplit(rendezvous.url).port or 0
            task_status.started(rendezvous)
            await self._crash.wait()
        raise RelayCrashed

    def crash(self) -> None:
        """Cut every connection, and forget every registration."""
        self._crash.set()
