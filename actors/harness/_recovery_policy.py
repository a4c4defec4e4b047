"""Whether and when to try again to resume a session. Knows no connection and no clock."""

import hashlib

import attrs

from actors.harness._arguments import check_seconds
from actors.harness._errors import (
    AnswerLost,
    CallNotSent,
    CallTimedOut,
    Disconnected,
    InitializeTimedOut,
    InvalidArgument,
    RequestRejected,
    TransportClosed,
    WebSocketConnectFailed,
    WebSocketConnectTimedOut,
)
from actors.protocol import ErrorCode

_DOUBLINGS_MAX = 4
_REFUSED_FOR_GOOD = frozenset({401, 403, 404})


@attrs.frozen(kw_only=True)
class RecoveryPolicy:
    """How to get a lost connection back. The defaults are those for a plain WebSocket.

    Attributes:
        budget_s: From the loss until giving up; below the time an executor keeps a session.
        quick_tries: How many tries come first, before the delays begin to grow: most is back in a moment.
        quick_delay_s: Between those.
        first_delay_s: Between the first two tries after the quick ones.
        delay_max_s: The delay doubles up to this, at most four times.
        jitter: At most this share of the delay comes on top, by session and try, to spread a crowd.
    """

    budget_s: float = 25.0
    quick_tries: int = 0
    quick_delay_s: float = 0.1
    first_delay_s: float = 0.1
    delay_max_s: float = 0.1
    jitter: float = 0.0

    def __attrs_post_init__(self) -> None:
        for name in ("budget_s", "quick_delay_s", "first_delay_s", "delay_max_s"):
            check_seconds(name, getattr(self, name))
        if self.quick_tries < 0:
            raise InvalidArgument("quick_tries", "must not be negative")
        check_seconds("jitter", self.jitter, zero=True)
        if self.jitter > 1:
            raise InvalidArgument("jitter", "must be between 0 and 1")

    def delay_s(self, session_id: str, attempt: int, retry_after_s: float | None = None) -> float:
        """Give the time to wait after a failed try.

        Args:
            session_id: Whose try it was.
            attempt: Which it was; the first is 0.
            retry_after_s: What the other side asked for. Obeyed, and spread upwards: all were told the same.
        """
        base_s = self._base_s(attempt)
        digest = hashlib.sha256(f"{session_id}\0{attempt}".encode("utf-8", "surrogatepass")).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        return max(base_s, retry_after_s or 0.0) * (1 + self.jitter * share)

    def _base_s(self, attempt: int) -> float:
        grown = attempt - self.quick_tries
        if grown < 0:
            return self.quick_delay_s
        return min(self.first_delay_s * float(2 ** min(grown, _DOUBLINGS_MAX)), self.delay_max_s)


def is_worth_retrying(error: BaseException) -> bool:
    """Tell whether another try at resuming can end better."""
    match error:
        case CallNotSent(reason=reason) | AnswerLost(reason=reason):
            return is_worth_retrying(reason)
        case WebSocketConnectFailed(status=status):
            return status not in _REFUSED_FOR_GOOD
        case Disconnected() | TransportClosed() | WebSocketConnectTimedOut() | InitializeTimedOut() | CallTimedOut():
            return True
        case RequestRejected(code=ErrorCode.SESSION_ATTACHED):
            return True
        case RequestRejected(code=ErrorCode.TRANSPORT_CLOSED, message=message):
            return message == "JSON-RPC transport closed"
        case _:
            return False
