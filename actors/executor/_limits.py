"""Every bound of an executor, in one value."""

import attrs

from actors.executor._settings import require_count, require_flag, require_seconds
from actors.protocol import HTTP_BODY_BYTES_MAX

__all__ = ["Limits"]


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds of one executor. What happens at each is written with it; each is counted in its statistics.

    Attributes:
        detached_s: How long a session without a connection is kept; then its processes are killed.
        closed_s: How long a closed process can still be read.
        drain_s: How long after its exit a process's pipes are read while somebody else holds them; then they are given
            up.
        kill_s: How long a killed process is waited for when the executor stops; then it is reported as not dying.
        kill_leftovers: Kill what a command leaves running behind, at the drain limit. Else it runs on until its session
            ends.
        leftovers_max: Those left running whom a session remembers, to kill them at its end; one more, and the oldest is
            killed.
        sessions_max: Sessions at once; a further one takes the place of one that is idle and detached, or is refused.
        processes_max: Running processes in a session; further starts are refused.
        retained_bytes_max: What a session's closed processes keep, above all output; beyond it the oldest are forgotten
            early.
        in_flight_max: Requests of one connection that wait for something; further ones are refused. Terminate never
            waits.
        outbox_bytes: Above this many bytes not yet sent, processes of that connection are read no more, nor are its
            requests.
        stdin_bytes_max: Bytes queued for a process's input; a write above it is answered once there is room.
        stdin_waiting_max: Writes of one process that wait for room; further ones are refused.
        stdin_waiting_bytes_max: Bytes of such writes; further ones are refused while others wait.
        write_ids_max: How many write ids of a process are remembered; the oldest is forgotten first.
        file_threads_max: File operations at once, of all connections together; further ones wait.
        file_calls_max: File operations at once of one connection; further ones wait, and so do those whose answers are
            not taken.
        watches_max: Files of one connection that are waited for; further watches are refused.
        watch_s: How often it is looked whether such a file is there.
        message_bytes_max: The largest message taken; a larger one ends the connection.
        connections_max: Connections at once; further ones are refused with 503.
        handshakes_max: Peers at once that have not been let in yet; further ones are hung up on.
        handshake_s: How long a peer may take to open a connection.
        keepalive_s: After so long without a byte from the peer it is asked for a sign of life.
        pong_s: How long that sign may take; any byte counts. Then the connection is given up.
        close_s: How long a peer may take to agree to a close; then the connection is cut.
        http_calls_max: HTTP requests at once of one connection, streamed ones apart; further ones wait.
        http_streams_max: Streamed HTTP answers at once of one connection; further ones are refused.
        http_body_bytes_max: The largest HTTP body that comes in one answer; a larger one is a failure that says to
            stream it.
        http_redirects_max: Redirections followed one after the other; one more is a failure.
        http_connect_s: How long connecting for an HTTP request may take.
        http_idle_s: How long a server may send nothing, or take nothing; then its request has failed.
    """

    detached_s: float = attrs.field(default=80.0, validator=require_seconds)
    closed_s: float = attrs.field(default=80.0, validator=require_seconds)
    drain_s: float = attrs.field(default=1.0, validator=require_seconds)
    kill_s: float = attrs.field(default=2.0, validator=require_seconds)
    kill_leftovers: bool = attrs.field(default=False, validator=require_flag)
    leftovers_max: int = attrs.field(default=1024, validator=require_count)
    sessions_max: int = attrs.field(default=1024, validator=require_count)
    processes_max: int = attrs.field(default=1024, validator=require_count)
    retained_bytes_max: int = attrs.field(default=64 * 1024 * 1024, validator=require_count)
    in_flight_max: int = attrs.field(default=1024, validator=require_count)
    outbox_bytes: int = attrs.field(default=256 * 1024, validator=require_count)
    stdin_bytes_max: int = attrs.field(default=1024 * 1024, validator=require_count)
    stdin_waiting_max: int = attrs.field(default=256, validator=require_count)
    stdin_waiting_bytes_max: int = attrs.field(default=16 * 1024 * 1024, validator=require_count)
    write_ids_max: int = attrs.field(default=4096, validator=require_count)
    file_threads_max: int = attrs.field(default=16, validator=require_count)
    file_calls_max: int = attrs.field(default=4, validator=require_count)
    watches_max: int = attrs.field(default=64, validator=require_count)
    watch_s: float = attrs.field(default=0.25, validator=require_seconds)
    http_calls_max: int = attrs.field(default=16, validator=require_count)
    http_streams_max: int = attrs.field(default=64, validator=require_count)
    http_body_bytes_max: int = attrs.field(default=HTTP_BODY_BYTES_MAX, validator=require_count)
    http_redirects_max: int = attrs.field(default=10, validator=require_count)
    http_connect_s: float = attrs.field(default=30.0, validator=require_seconds)
    http_idle_s: float = attrs.field(default=300.0, validator=require_seconds)
    message_bytes_max: int = attrs.field(default=64 * 1024 * 1024, validator=require_count)
    connections_max: int = attrs.field(default=256, validator=require_count)
    handshakes_max: int = attrs.field(default=64, validator=require_count)
    handshake_s: float = attrs.field(default=10.0, validator=require_seconds)
    keepalive_s: float = attrs.field(default=30.0, validator=require_seconds)
    pong_s: float = attrs.field(default=20.0, validator=require_seconds)
    close_s: float = attrs.field(default=2.0, validator=require_seconds)
