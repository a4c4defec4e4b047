"""Every bound of an executor, in one value."""

from typing import Any

import attrs

__all__ = ["Limits"]


def _positive(_: object, attribute: Any, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{attribute.name} must be above zero, not {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds of one executor. What happens at each is written with it; each is counted in its statistics."""

    detached_s: float = attrs.field(default=80.0, validator=_positive)
    """How long a session without a connection is kept; then its processes are killed."""
    closed_s: float = attrs.field(default=80.0, validator=_positive)
    """How long a closed process can still be read."""
    drain_s: float = attrs.field(default=1.0, validator=_positive)
    """How long after its exit a process's pipes are read while somebody else holds them; then they are given up."""
    kill_s: float = attrs.field(default=2.0, validator=_positive)
    """How long a killed process is waited for when the executor stops; then it is reported as not dying."""
    kill_leftovers: bool = False
    """Kill what a command leaves running behind, at the drain limit. Else it runs on until its session ends."""
    sessions_max: int = attrs.field(default=1024, validator=_positive)
    """Sessions at once; further ones are refused."""
    processes_max: int = attrs.field(default=1024, validator=_positive)
    """Running processes in a session; further starts are refused."""
    retained_bytes_max: int = attrs.field(default=64 * 1024 * 1024, validator=_positive)
    """Output kept of a session's closed processes; above it the oldest are forgotten early."""
    in_flight_max: int = attrs.field(default=1024, validator=_positive)
    """Requests of one connection that wait for something; further ones are refused. Terminate never waits."""
    outbox_bytes: int = attrs.field(default=256 * 1024, validator=_positive)
    """Above this many bytes not yet sent, processes of that connection are read no more, nor are its requests."""
    stdin_bytes_max: int = attrs.field(default=1024 * 1024, validator=_positive)
    """Bytes queued for a process's input; a write above it is answered once there is room."""
    stdin_waiting_max: int = attrs.field(default=256, validator=_positive)
    """Writes of one process that wait for room; further ones are refused."""
    write_ids_max: int = attrs.field(default=4096, validator=_positive)
    """How many write ids of a process are remembered; the oldest is forgotten first."""
    message_bytes_max: int = attrs.field(default=64 * 1024 * 1024, validator=_positive)
    """The largest message taken; a larger one ends the connection."""
    connections_max: int = attrs.field(default=256, validator=_positive)
    """Connections at once; further ones are refused with 503."""
    handshakes_max: int = attrs.field(default=64, validator=_positive)
    """Peers at once that have not been let in yet; further ones are hung up on."""
    handshake_s: float = attrs.field(default=10.0, validator=_positive)
    """How long a peer may take to open a connection."""
    keepalive_s: float = attrs.field(default=30.0, validator=_positive)
    """After so long without a byte from the peer it is asked for a sign of life."""
    pong_s: float = attrs.field(default=20.0, validator=_positive)
    """How long that sign may take; any byte counts. Then the connection is given up."""
    close_s: float = attrs.field(default=2.0, validator=_positive)
    """How long a peer may take to agree to a close; then the connection is cut."""
