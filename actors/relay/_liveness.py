"""Decide when to ping a silent peer and when to give it up. Knows times only.

Any byte that arrives is a sign of life, also from a peer that is too busy to answer pings. A peer that is silent for
the whole limit after a ping is given up, whether or not anybody wanted to send; the reason says for how long.
"""

import enum

import attrs

__all__ = ["Liveness", "LivenessAction"]


# The part of the limit by which a look may come late while nobody was stopped.
_LATE = 0.2


class LivenessAction(enum.Enum):
    """What is due.

    Attributes:
        WAIT: Nothing; look again later.
        PING: Send a ping.
        CUT: End the connection: a ping went unanswered.
    """

    WAIT = "wait"
    PING = "ping"
    CUT = "cut"


@attrs.frozen
class Liveness:
    """One connection's signs of life. One ping at a time is out; missed ticks are skipped, not made up for.

    Attributes:
        interval_s: Time between pings.
        limit_s: How long a peer may be silent after a ping.
        heard_s: When something last arrived, or when the wait for it began.
        next_ping_s: When the next ping is due, if none is out.
        pinged_s: When the ping that is still out was written.
    """

    interval_s: float
    limit_s: float
    heard_s: float
    next_ping_s: float
    pinged_s: float | None = None

    @classmethod
    def begin(cls, interval_s: float, limit_s: float, now_s: float) -> "Liveness":
        """Start with a connection that was just made: the first ping is one interval away."""
        return cls(interval_s, limit_s, heard_s=now_s, next_ping_s=now_s + interval_s)

    def heard(self, now_s: float) -> "Liveness":
        """Note that something arrived."""
        return attrs.evolve(self, heard_s=max(now_s, self.heard_s))

    def looked(self, now_s: float) -> "Liveness":
        """Note that this is the first look since something was due, and begin again if it comes much too late.

        Then we were stopped ourselves, as by a paused machine: what the peer said meanwhile is still unread.
        """
        was_stopped = now_s - self.deadline_s > self.limit_s * _LATE
        return self.heard(now_s) if was_stopped else self

    def ponged(self, now_s: float) -> "Liveness":
        """Note that the ping was answered."""
        return attrs.evolve(self, heard_s=max(now_s, self.heard_s), pinged_s=None)

    def pinged(self, now_s: float) -> "Liveness":
        """Note that a ping was written."""
        ticks = max(1, int((now_s - self.next_ping_s) // self.interval_s) + 1)
        return attrs.evolve(self, pinged_s=now_s, next_ping_s=self.next_ping_s + ticks * self.interval_s)

    @property
    def deadline_s(self) -> float:
        """When something is due."""
        if self.pinged_s is None:
            return self.next_ping_s
        return max(self.pinged_s, self.heard_s) + self.limit_s

    def next_look_s(self, now_s: float) -> float:
        """When to look again at the latest, also if a pong makes the next ping due before the silence limit."""
        return min(self.deadline_s, self.next_ping_s) if self.next_ping_s > now_s else self.deadline_s

    def silent_for_s(self, now_s: float) -> float:
        """Tell how long nothing has arrived."""
        return max(0.0, now_s - self.heard_s)

    def action(self, now_s: float) -> LivenessAction:
        """Tell what is due."""
        if now_s < self.deadline_s:
            return LivenessAction.WAIT
        return LivenessAction.PING if self.pinged_s is None else LivenessAction.CUT
