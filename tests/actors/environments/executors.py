"""Executors that come and go under one id, as their registry sees them, and a world of links to them in memory."""

from typing import Any

import trio

from actors.environments import Answer, ConnectBundle
from actors.noise import Identity, PublicKey

KEYS: list[PublicKey] = [Identity.generate().public_key for _ in range(2)]
PLACES = [(key, registration) for registration in ("r1", "r2") for key in range(len(KEYS))]
"""Which key and which registration each executor has, so that two neighbours differ in the key alone."""


def bundle_of(place: int, environment_id: str = "tools", *, serial: int = 0) -> ConnectBundle:
    """A bundle for the executor at a place, told from every other bundle by its serial number."""
    key, registration = PLACES[place % len(PLACES)]
    return ConnectBundle(
        websocket_url="wss://rendezvous/harness?token=s3cret",
        environment_id=environment_id,
        executor_registration_id=registration,
        executor_public_key=KEYS[key],
        harness_key_authorization=f"s3cret-proof-{serial}",
    )


class Registry:
    """A provider that says who has the id now. Each question can be held back and answered by the test."""

    def __init__(self, environment_id: str = "tools") -> None:
        self.environment_id = environment_id
        self.place = 0
        self.bundles: list[ConnectBundle] = []
        self.failure: Exception | None = None
        self.says: Any = None
        self.asked = 0
        self.held: list[trio.Event] = []
        self.holds = False

    def replace_executor(self) -> None:
        """Let another executor have the id."""
        self.place += 1

    async def connect_bundle(self, _harness_public_key: Any, /) -> Answer:
        """Say what is true when it is asked, also when the answer is held back."""
        self.asked += 1
        failure, says = self.failure, self.says
        bundle = bundle_of(self.place, self.environment_id, serial=self.asked)
        await trio.lowlevel.checkpoint()
        if self.holds:
            self.held.append(trio.Event())
            await self.held[-1].wait()
        if failure is not None:
            raise failure
        self.bundles.append(bundle)
        return bundle if says is None else says

    def release(self, index: int = 0) -> None:
        """Let one answer that is held back come."""
        self.held.pop(index).set()
