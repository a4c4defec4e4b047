"""Decide what an executor does with each handshake, record and reset on one physical connection.

The list of checks is that of the protocol, in its order; what is read, decrypted or asked happens elsewhere and comes
back as an event. Four things differ from executors in the field, none of them visible on the wire:

* failures are forgiven over time, and the registry's own trouble is none;
* while no more failures are borne a few handshakes are still looked at, drawn by lot: so one who fails again and again
  cannot keep the others out, however he times it;
* a second handshake for an *active* id gets no answer: a reset would make a healthy harness drop its stream;
* a handshake that is dropped gives its place among the validations back at once.
"""

import enum

import attrs

from actors.relay._budget import FailureBudget, Lots
from actors.relay._limits import RelayLimits

__all__ = ["Admission", "Cause", "Refusal", "Ruling", "Verdict"]


class Cause(enum.Enum):
    """Why a handshake or a stream was refused. For logs and counters: the wire always says the same."""

    ALREADY_ACTIVE = "the stream id is active"
    DUPLICATE = "a handshake for this stream id was being checked"
    STREAMS_FULL = "as many streams as allowed are active"
    VALIDATIONS_FULL = "as many validations as allowed are running"
    PAUSED = "too many handshakes failed of late"
    UNREADABLE = "the handshake message could not be read"
    AUTHORIZATION_UNUSABLE = "the authorization is too long or not UTF-8"
    REJECTED = "the registry rejected the harness key"
    REGISTRY_TROUBLE = "the registry could not be asked"
    CREDENTIALS_REFUSED = "the registry refused the executor's own credentials"
    REPLY_FAILED = "the handshake reply could not be made"
    EARLY_DATA = "data came before the handshake was answered"
    WITHDRAWN = "the peer reset the stream while its key was being checked"
    NO_SUCH_STREAM = "no stream has this id"
    CONTROL_FULL = "too many answers wait to be written"


class Verdict(enum.Enum):
    """What came of asking the registry about a harness key.

    Attributes:
        VALID: It is the key of this harness.
        REJECTED: It is not.
        TROUBLE: The registry could not say.
        CREDENTIALS_REFUSED: The registry refused whoever asked.
    """

    VALID = "valid"
    REJECTED = "rejected"
    TROUBLE = "trouble"
    CREDENTIALS_REFUSED = "credentials refused"


@attrs.frozen
class Refusal:
    """A handshake or record that is not served."""

    cause: Cause
    """Why, for our own eyes."""
    reset: bool = True
    """Whether the peer is told, by a reset."""
    dropped: int | None = None
    """The validation that has become pointless, if one was running: cancel it."""


@attrs.frozen
class Ruling:
    """A handshake that goes on, under a number of its own."""

    number: int
    """Names the validation, then the stream: ids may come again, numbers do not."""


class Admission:
    """Everything one physical connection knows about its streams and handshakes.

    An id is unknown, pending (its key is being checked) or active. Only this class moves it.
    """

    def __init__(self, limits: RelayLimits) -> None:
        self._limits = limits
        self._budget = FailureBudget.full(limits.failure_burst, limits.failure_refill_s)
        self._lots = Lots(limits.strained_look_s)
        self._numbers = 0
        # No id is in both. Values are the numbers under which they were ruled.
        self.pending: dict[str, int] = {}
        self.active: dict[str, int] = {}
        self.failures_counted = 0
        self.looked_by_lot = 0
        self.refusals: dict[Cause, int] = dict.fromkeys(Cause, 0)

    def handshake(self, stream_id: str, now_s: float, draw: float = 1.0) -> Refusal | None:
        """Judge a handshake before its message is read. None means: read it.

        ``draw`` is a random number from 0 to 1, the smaller the luckier: 1 never wins a lot.
        """
        if stream_id in self.active:
            return self._refuse(Cause.ALREADY_ACTIVE, reset=False)
        if (number := self.pending.pop(stream_id, None)) is not None:
            return self._refuse(Cause.DUPLICATE, counted_s=now_s, dropped=number)
        if len(self.active) >= self._limits.max_streams:
            return self._refuse(Cause.STREAMS_FULL)
        if len(self.pending) >= self._limits.max_validations:
            return self._refuse(Cause.VALIDATIONS_FULL)
        if self._budget.is_spent(now_s):
            if draw >= self._lots.chance_at(now_s):
                return self._refuse(Cause.PAUSED)
            self._lots = self._lots.looked(now_s)
            self.looked_by_lot += 1
        return None

    def unreadable(self, now_s: float) -> Refusal:
        """Judge a handshake whose message could not be read."""
        return self._refuse(Cause.UNREADABLE, counted_s=now_s)

    def authorization(self, stream_id: str, authorization: bytes, now_s: float) -> Refusal | Ruling:
        """Judge what a readable message carried. A ruling means: ask the registry, under its number."""
        assert stream_id not in self.pending, f"stream {stream_id!r} was judged twice"
        if len(authorization) > self._limits.max_authorization_bytes or not _is_utf8(authorization):
            return self._refuse(Cause.AUTHORIZATION_UNUSABLE, counted_s=now_s)
        self._numbers += 1
        self.pending[stream_id] = self._numbers
        return Ruling(self._numbers)

    def validated(self, stream_id: str, number: int, verdict: Verdict, now_s: float) -> Refusal | Ruling | None:
        """Judge the registry's answer. None: nobody waits for it. A ruling: make the reply, then `activate`."""
        if self.pending.get(stream_id) != number:
            return None
        del self.pending[stream_id]
        match verdict:
            case Verdict.REJECTED:
                return self._refuse(Cause.REJECTED, counted_s=now_s)
            case Verdict.TROUBLE:
                return self._refuse(Cause.REGISTRY_TROUBLE)
            case Verdict.CREDENTIALS_REFUSED:
                # The harness is told inside the encrypted reply, not by a reset.
                return self._refuse(Cause.CREDENTIALS_REFUSED, reset=False)
            case Verdict.VALID:
                if len(self.active) >= self._limits.max_streams:
                    return self._refuse(Cause.STREAMS_FULL)
                return Ruling(number)

    def reply_failed(self, now_s: float) -> Refusal:
        """Judge a handshake whose reply could not be made."""
        return self._refuse(Cause.REPLY_FAILED, counted_s=now_s)

    def activate(self, stream_id: str, number: int) -> None:
        """Make a stream active under the number of its ruling."""
        assert stream_id not in self.active, f"stream {stream_id!r} is active already"
        assert stream_id not in self.pending, f"stream {stream_id!r} is still being checked"
        self.active[stream_id] = number

    def data(self, stream_id: str, now_s: float) -> Refusal | None:
        """Judge a record. None means: its stream takes it."""
        if stream_id in self.active:
            return None
        if (number := self.pending.pop(stream_id, None)) is not None:
            return self._refuse(Cause.EARLY_DATA, counted_s=now_s, dropped=number)
        return self._refuse(Cause.NO_SUCH_STREAM)

    def reset(self, stream_id: str, now_s: float) -> int | None:
        """Take a reset from the peer: forget the stream. Gives the validation to cancel, if one was running.

        That one is counted: it has cost a key exchange and a call of the registry, and shown nothing for it.
        """
        self.active.pop(stream_id, None)
        if (number := self.pending.pop(stream_id, None)) is not None:
            self._refuse(Cause.WITHDRAWN, reset=False, counted_s=now_s, dropped=number)
        return number

    def ended(self, stream_id: str, number: int) -> bool:
        """Forget a stream that ended on this side; ids come again, so the number must match. Says whether it did."""
        if self.active.get(stream_id) != number:
            return False
        del self.active[stream_id]
        return True

    def refuse(self, cause: Cause) -> Refusal:
        """Refuse for a reason that is not judged here, and count it as what it is."""
        return self._refuse(cause, reset=False)

    def _refuse(
        self, cause: Cause, *, reset: bool = True, counted_s: float | None = None, dropped: int | None = None
    ) -> Refusal:
        self.refusals[cause] += 1
        if counted_s is not None:
            was_spent, self._budget = self._budget.is_spent(counted_s), self._budget.spend(counted_s)
            self.failures_counted += 1
            if not was_spent:  # Else its look was paid for when the lot was drawn.
                self._lots = self._lots.looked(counted_s)
        return Refusal(cause, reset=reset, dropped=dropped)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
