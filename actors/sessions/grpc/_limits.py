"""Bounds of one connection and of each call on it, and what is said when a message breaks them."""

import math
from collections.abc import Callable
from typing import Any, Final

import attrs

from actors.sessions.grpc._errors import MessageTooLarge
from actors.sessions.grpc._status import Status, StatusCode

KIB: Final = 1024
MIB: Final = 1024 * KIB
_WINDOW_MAX: Final = 2**31 - 1


def describe_oversize(oversize: MessageTooLarge) -> Status:
    """Say RESOURCE_EXHAUSTED, as gRPC does by default."""
    return Status(StatusCode.RESOURCE_EXHAUSTED, str(oversize))


def _between(low: float, high: float) -> Callable[[object, Any, float], None]:
    def check(_: object, attribute: Any, value: float) -> None:
        if not low <= value <= high:
            raise ValueError(f"{attribute.name} is {value}; it must lie between {low} and {high}")

    return check


@attrs.frozen(kw_only=True)
class Limits:
    """How much one peer may ask of this end. Every field has a bound, and none is infinite.

    Attributes:
        message_bytes_max: Largest message in either direction, unpacked.
        header_list_bytes_max: Largest header block accepted, counted as HTTP/2 does (32 bytes more for each field).
        concurrent_calls_max: Calls open at once on one connection; a server refuses more, unprocessed, and a client
            waits.
        stream_window_bytes: What a peer may send on one call before the handler takes it.
        connection_window_bytes: What a peer may send on all calls before this end reads it.
        frame_bytes_max: Largest HTTP/2 frame accepted.
        queued_bytes_max: What one call may have waiting to be sent before `send` waits; one message may go over it.
        backlog_bytes_max: Replies to control frames that may wait for a peer that does not read; then reading stops
            too.
        resets_per_s_max: Resets, pings and settings that a peer may send per second in the long run.
        resets_burst_max: How many of those may come at once. Over it the connection ends with ENHANCE_YOUR_CALM.
        oversize_status: What a call that breaks `message_bytes_max` ends with.
    """

    message_bytes_max: int = attrs.field(default=64 * MIB, validator=_between(0, 2**32 - 1))

    header_list_bytes_max: int = attrs.field(default=16 * KIB, validator=_between(1 * KIB, 1 * MIB))

    concurrent_calls_max: int = attrs.field(default=1_000, validator=_between(1, 2**31 - 1))

    stream_window_bytes: int = attrs.field(default=1 * MIB, validator=_between(64 * KIB, _WINDOW_MAX))

    connection_window_bytes: int = attrs.field(default=2 * MIB, validator=_between(64 * KIB, _WINDOW_MAX))

    frame_bytes_max: int = attrs.field(default=64 * KIB, validator=_between(16 * KIB, 2**24 - 1))

    queued_bytes_max: int = attrs.field(default=256 * KIB, validator=_between(1, 2**31 - 1))

    backlog_bytes_max: int = attrs.field(default=1 * MIB, validator=_between(64 * KIB, 2**31 - 1))

    resets_per_s_max: int = attrs.field(default=1_000, validator=_between(1, 2**31 - 1))

    resets_burst_max: int = attrs.field(default=5_000, validator=_between(1, 2**31 - 1))

    oversize_status: Callable[[MessageTooLarge], Status] = describe_oversize


@attrs.frozen(kw_only=True)
class KeepalivePolicy:
    """When to ask whether a silent peer is still there.

    Attributes:
        interval_s: Silence after which a ping is sent; infinite: never.
        timeout_s: Further silence after which the connection counts as lost.
        without_calls: Whether to ask while no call is open.
    """

    interval_s: float = attrs.field(default=30.0, validator=_between(0.001, math.inf))

    timeout_s: float = attrs.field(default=10.0, validator=_between(0.001, 1e6))

    without_calls: bool = False
