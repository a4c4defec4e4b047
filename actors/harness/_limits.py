"""The numbers a harness keeps to."""

from typing import Final

import attrs

from actors.harness._arguments import check_count, check_seconds
from actors.protocol import FRAME_BYTES_MAX, MESSAGE_BYTES_MAX


@attrs.frozen(kw_only=True)
class HarnessLimits:
    """How long to wait, how much to hold.

    Attributes:
        initialize_s: For `initialize` and `initialized` together.
        info_s: For `environment/info`.
        status_s: For `environment/status`.
        cleanup_s: For telling the executor about a process nobody wants any more.
        keepalive_s: Ask for a sign of life after this much silence.
        pong_s: Give up when none comes for this long.
        pending_calls: Open calls, besides one kept free for clean-up.
        offences: Messages that cannot be read or have no place, until the peer is cut off.
        message_bytes: The largest message taken.
        request_bytes: The largest message sent: it goes out in one frame.
        queued_bytes: Wait with new calls while this much waits to be written.
        unread_bytes: Stop reading the connection while a process has this much unread output and nobody waits for
            anything else.
        held_bytes: Unread output held of one process; what comes beyond is skipped and said.
        processes: Processes followed at a time.
    """

    initialize_s: float = 10.0
    info_s: float = 30.0
    status_s: float = 10.0
    cleanup_s: float = 2.0
    keepalive_s: float = 15.0
    pong_s: float = 15.0
    pending_calls: int = 1024
    offences: int = 8
    message_bytes: int = MESSAGE_BYTES_MAX
    request_bytes: int = FRAME_BYTES_MAX
    queued_bytes: int = 4 * 1024 * 1024
    unread_bytes: int = 1024 * 1024
    held_bytes: int = 16 * 1024 * 1024
    processes: int = 1024

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            check = check_seconds if field.name.endswith("_s") else check_count
            check(field.name, getattr(self, field.name))


LIMITS: Final = HarnessLimits()
