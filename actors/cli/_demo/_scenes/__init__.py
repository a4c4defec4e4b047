"""The scenes of the demo, in their order. Each checks its own claims on the real thing."""

from collections.abc import Awaitable, Callable
from typing import Final

from actors.cli._demo._scenes._lives import becomes_ready, fails, is_forgotten, is_replaced
from actors.cli._demo._scenes._losses import loses_its_executor, loses_its_relay
from actors.cli._demo._scenes._optional import code_session
from actors.cli._demo._stage import Stage

__all__ = ["SCENES"]

SCENES: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {
    "An environment is registered, awaited, completed and used": becomes_ready,
    "The relay crashes while a command runs": loses_its_relay,
    "Another environment fails": fails,
    "A registration is lost": is_forgotten,
    "An environment is replaced while its completion is late": is_replaced,
    "An executor is killed": loses_its_executor,
    "The host of a code session is killed": code_session,
}
