"""Decide when a silent peer is asked, and when it counts as lost.

Any bytes from the peer are a sign of life; the answer to a ping is only one of them.
"""

import enum

import attrs

from actors.sessions.grpc._limits import KeepalivePolicy


class Act(enum.Enum):
    """What the owner has to do now."""

    WAIT = "wait"
    PING = "send a ping and wait"
    GIVE_UP = "count the peer as lost"


@attrs.frozen
class Keepalive:
    """One connection's questions."""

    policy: KeepalivePolicy
    asked_at_s: float | None = None
    """When the ping that nothing has followed yet was sent."""

    def decide(self, *, now_s: float, heard_at_s: float, calls_open: bool) -> tuple["Keepalive", Act, float]:
        """Say what is due, and when to ask again.

        Args:
            now_s: The time now.
            heard_at_s: When the last bytes came.
            calls_open: Whether anybody waits for this peer. A call that opens while nobody asks is covered
                from the
                next look on, so a loss is found after two intervals and one timeout at the latest.
        """
        policy = self.policy
        if self.asked_at_s is not None and heard_at_s < self.asked_at_s:
            give_up_at_s = self.asked_at_s + policy.timeout_s
            return self, (Act.GIVE_UP if now_s >= give_up_at_s else Act.WAIT), give_up_at_s
        calm = self if self.asked_at_s is None else Keepalive(policy)
        due_at_s = heard_at_s + policy.interval_s
        if now_s < due_at_s:
            return calm, Act.WAIT, due_at_s
        if not (calls_open or policy.without_calls):
            return calm, Act.WAIT, now_s + policy.interval_s
        return Keepalive(policy, now_s), Act.PING, now_s + policy.timeout_s
