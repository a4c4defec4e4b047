"""What an executor counts."""

import attrs

from actors.executor._process import Outcome

__all__ = ["Counters", "ExecutorStatistics"]


@attrs.frozen(kw_only=True)
class ExecutorStatistics:
    """One look at an executor. Everything but what is there *now* only grows.

    Attributes:
        connections: Open now.
        sessions: Known now, attached or not.
        processes: Not closed now.
        connections_accepted: Peers let in.
        connections_refused: Peers turned away: no token, too many, too slow to begin.
        connections_silent: Given up for want of a sign of life.
        messages_received: Well formed or not.
        messages_malformed: Not one JSON-RPC message.
        news_ignored: Notifications that mean nothing here.
        requests_refused: Turned away because too many of one connection were waiting.
        sessions_opened: New ones.
        sessions_resumed: Attached again.
        sessions_expired: Not resumed in time.
        sessions_ended_early: Idle and without a connection when there were too many.
        sessions_refused: One too many.
        processes_started: Running once.
        processes_refused: One too many.
        processes_forgotten_early: Forgotten before their time because too much output was kept.
        spawns_failed: Refused by the system.
        drains_limited: Output given up while somebody still held it.
        survivors: Left running behind.
        killed_outside: Killed one by one because a kill of their group would have missed them.
        not_died: Killed and not dead within the limit.
        output_bytes: Read from processes.
        paths_refused: Files and working folders outside the roots.
        http_requests: Made for clients.
        http_failures: Of these, without an answer or with half a body, cancelled ones among them.
        http_body_bytes: Received in answers, encodings taken off.
    """

    connections: int
    sessions: int
    processes: int
    connections_accepted: int
    connections_refused: int
    connections_silent: int
    messages_received: int
    messages_malformed: int
    news_ignored: int
    requests_refused: int
    sessions_opened: int
    sessions_resumed: int
    sessions_expired: int
    sessions_ended_early: int
    sessions_refused: int
    processes_started: int
    processes_refused: int
    processes_forgotten_early: int
    paths_refused: int
    http_requests: int
    http_failures: int
    http_body_bytes: int
    spawns_failed: int
    drains_limited: int
    survivors: int
    killed_outside: int
    not_died: int
    output_bytes: int


_NOW = frozenset({"connections", "sessions", "processes"})


class Counters:
    """The growing half of the statistics; plain attributes, for it is on the path of every message."""

    def __init__(self) -> None:
        self.connections_accepted = self.connections_refused = self.connections_silent = 0
        self.messages_received = self.messages_malformed = self.news_ignored = self.requests_refused = 0
        self.sessions_opened = self.sessions_resumed = self.sessions_expired = self.sessions_refused = 0
        self.sessions_ended_early = 0
        self.processes_started = self.processes_refused = self.processes_forgotten_early = 0
        self.spawns_failed = 0
        self.drains_limited: int = 0
        self.survivors: int = 0
        self.killed_outside: int = 0
        self.not_died: int = 0
        self.output_bytes = self.paths_refused = 0
        self.http_requests = self.http_failures = self.http_body_bytes = 0

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
