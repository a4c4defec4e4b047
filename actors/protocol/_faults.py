"""What this package raises: a message that breaks a rule, with the rule.

Knows no transport and no peer; whoever holds the connection decides what a fault costs.
"""

from typing import Any

from actors.protocol._ids import RequestId


class ProtocolFault(ValueError):
    """A message, parameter or sequence breaks a rule of the exec protocol."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class MalformedMessage(ProtocolFault):
    """Bytes are not one JSON-RPC message."""

    def __init__(self, reason: str, *, request_id: RequestId | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """The rule that was broken, in the words both ends of the wire use."""
        self.request_id = request_id
        """The id the message carried, when that much could be read."""


class MessageTooLarge(ProtocolFault):
    """A message is over the limit; it was neither decoded nor sent."""

    def __init__(self, *, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"message of {size_bytes} bytes is over the limit of {limit_bytes} bytes; ask for it in smaller pieces"
        )
        self.size_bytes: int = size_bytes
        self.limit_bytes: int = limit_bytes


class InvalidParams(ProtocolFault):
    """A parameter or result member breaks a rule."""

    def __init__(self, rule: str, *, field: str = "") -> None:
        super().__init__(f"{field}: {rule}" if field else rule)
        self.rule = rule
        """The broken rule alone, as it travels: "missing field `argv`"."""
        self.field = field
        """Where, as a path of wire names: `argv[0]`; empty for the whole value."""

    def inside(self, name: str) -> "InvalidParams":
        """Give the same fault as seen from the value that holds it under ``name``."""
        if not self.field:
            return InvalidParams(self.rule, field=name)
        joint = "" if self.field.startswith("[") else "."
        return InvalidParams(self.rule, field=f"{name}{joint}{self.field}")


class EventRefused(ProtocolFault):
    """A process event has no place in its sequence; nothing was changed."""

    def __init__(self, reason: str, *, seq: int) -> None:
        super().__init__(reason)
        self.seq = seq
        """The sequence number of the refused event."""


class RecoveryRefused(ProtocolFault):
    """A read answer cannot continue the sequence it was asked for; nothing was changed."""
