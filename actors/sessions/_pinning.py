"""Decide in which mode a session lives: the first host's answer is a promise that no later host may break."""

from actors.sessions._errors import OutputModeChanged, ProtocolViolation, UnexpectedOutputMode
from actors.sessions._values import OutputTruncation

# On the wire: absent and 1 are Client. An old host that does not know the field is a Client host.
_BY_NUMBER = {0: OutputTruncation.CLIENT, 1: OutputTruncation.CLIENT, 2: OutputTruncation.SERVER}


def mode_to_ask_for(requested: OutputTruncation, pinned: OutputTruncation | None) -> OutputTruncation:
    """Say what to ask a host for: what was promised, else what the holder wants."""
    return requested if pinned is None else pinned


def mode_settled(number: int, *, requested: OutputTruncation, pinned: OutputTruncation | None) -> OutputTruncation:
    """Read a host's answer.

    Raises:
        ProtocolViolation: It is no mode.
        OutputModeChanged: It is another mode than the promised one.
        UnexpectedOutputMode: The first host cuts although it was not asked to.
    """
    selected = _BY_NUMBER.get(number)
    if selected is None:
        raise ProtocolViolation("gRPC code-mode host returned an unknown output truncation mode")
    if pinned is not None and selected is not pinned:
        raise OutputModeChanged
    if pinned is None and selected is OutputTruncation.SERVER and requested is OutputTruncation.CLIENT:
        raise UnexpectedOutputMode(selected.value, requested.value)
    return selected
