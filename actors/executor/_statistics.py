"""What an executor counts."""

import attrs

from actors.executor._process import Outcome

__all__ = ["Counters", "ExecutorStatistics"]


@attrs.frozen(kw_only=True)
class ExecutorStatistics:
    """One look at an executor. Everything but what is there *now* only grows."""

    connections: int
    """Open now."""
    sessions: int
    """Known now, attached or not."""
    processes: int
    """Not closed now."""
    connections_accepted: int
    """Peers let in."""
    connections_refused: int
    """Peers turned away: no token, too many, too slow to begin."""
    connections_silent: int
    """Given up for want of a sign of life."""
    messages_received: int
    """Well formed or not."""
    messages_malformed: int
    """Not one JSON-RPC message."""
    news_ignored: int
    """Notifications that mean nothing here."""
    requests_refused: int
    """Turned away because too many of one connection were waiting."""
    sessions_opened: int
    """New ones."""
    sessions_resumed: int
    """Attached again."""
    sessions_expired: int
    """Not resumed in time."""
    sessions_refused: int
    """One too many."""
    processes_started: int
    """Running once."""
    processes_refused: int
    """One too many."""
    processes_forgotten_early: int
    """Forgotten before their time because too much output was kept."""
    spawns_failed: int
    """Refused by the system."""
    drains_limited: int
    """Output given up while somebody still held it."""
    survivors: int
    """Left running behind."""
    killed_outside: int
    """Killed one by one because a kill of their group would have missed them."""
    not_died: int
    """Killed and not dead within the limit."""
    output_bytes: int
    """Read from processes."""


_NOW = frozenset({"connections", "sessions", "processes"})


class Counters:
    """The growing half of the statistics; plain attributes, for it is on the path of every message."""

    def __init__(self) -> None:
        self.connections_accepted = self.connections_refused = self.connections_silent = 0
        self.messages_received = self.messages_malformed = self.news_ignored = self.requests_refused = 0
        self.sessions_opened = self.sessions_resumed = self.sessions_expired = self.sessions_refused = 0
        self.processes_started = self.processes_refused = self.processes_forgotten_early = 0
        self.spawns_failed = self.drains_limited = self.survivors = self.killed_outside = self.not_died = 0
        self.output_bytes = 0

    def note_outcome(self, outcome: Outcome) -> None:
        """Count how a process ended."""
        self.drains_limited += outcome.drain_limited
        self.survivors += len(outcome.survivors)
        self.killed_outside += len(outcome.killed_outside)
        self.not_died += not outcome.died

    def snapshot(self, *, connections: int, sessions: int, processes: int) -> ExecutorStatistics:
        """Freeze them, with what there is now."""
        counted: dict[str, int] = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(ExecutorStatistics)
            if field.name not in _NOW
        }
        return ExecutorStatistics(connections=connections, sessions=sessions, processes=processes, **counted)
