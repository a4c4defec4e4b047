"""Cut an observation short when its holder signals so."""

from collections.abc import Generator
from contextlib import contextmanager

import trio

from actors.sessions._errors import SessionsError
from actors.sessions._link import Link
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions._wire._methods import YIELD_OBSERVATION
from actors.sessions._wording import Operation


@contextmanager
def preempted_by(link: Link, signal: trio.Event | None, message: wire.YieldObservationRequest) -> Generator[None]:
    """Ask the host once to end an observation early, if the signal fires within the block."""
    scope = trio.CancelScope()
    if signal is not None:
        link.start(_preempt, link, signal, message, scope)
    try:
        yield
    finally:
        scope.cancel()


async def _preempt(
    link: Link, signal: trio.Event, message: wire.YieldObservationRequest, scope: trio.CancelScope
) -> None:
    with scope:
        await signal.wait()
        try:
            await link.unary(Operation.YIELD_OBSERVATION, YIELD_OBSERVATION, message)
        except SessionsError:
            return  # An older host does not know the call: its ordinary timer ends the observation.
