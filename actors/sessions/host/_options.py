"""How a host runs cells, and what it tells of what it does."""

import ssl
from typing import Final

import attrs

from actors.sessions._arguments import flag, not_negative, of_kind, positive, text_or_none
from actors.sessions.host._stored import STORED_BYTES_MAX

_MIB: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class HostOptions:
    """How a host runs cells. Every bound has a default.

    Attributes:
        engine_path: A deno or node to use and no other; None finds one.
        heap_bytes: Room for JavaScript in one process, unless the session asks for its own.
        warm_engines: Processes that are kept ready for the first cells of sessions.
        starters: Processes that may be starting at once.
        cells_max: Live cells of all sessions together.
        cells_per_session_max: Live cells of one session.
        cells_per_engine_max: Cells that one process may serve; 1 gives every cell its own, None is what suits the
            engine.
        cell_deadline_s: How long a script may run; None is for ever.
        stored_bytes_max: What the values that the cells of one session store may take, keys and JSON together; and
            never more than an eighth of the room for JavaScript of its processes, which hold them all.
        walls_required: Whether to refuse to start where an engine process would not stand behind every wall of `WALLS`.
        token: A bearer token that every call has to show; None asks for none.
        ssl_context: With a certificate, to speak TLS.
    """

    engine_path: str | None = attrs.field(default=None, validator=text_or_none)

    heap_bytes: int = attrs.field(default=512 * _MIB, validator=positive)

    warm_engines: int = attrs.field(default=2, validator=not_negative)

    starters: int = attrs.field(default=2, validator=positive)

    cells_max: int = attrs.field(default=2048, validator=positive)

    cells_per_session_max: int = attrs.field(default=2048, validator=positive)

    cells_per_engine_max: int | None = attrs.field(default=None, validator=positive)

    cell_deadline_s: float | None = attrs.field(default=None, validator=positive)

    stored_bytes_max: int = attrs.field(default=STORED_BYTES_MAX, validator=positive)

    walls_required: bool = attrs.field(default=False, validator=flag)

    token: str | None = attrs.field(default=None, repr=False, validator=text_or_none)

    ssl_context: ssl.SSLContext | None = attrs.field(
        default=None, repr=False, validator=of_kind(ssl.SSLContext, or_none=True)
    )


@attrs.frozen(kw_only=True)
class HostStatistics:
    """What a host is doing.

    Attributes:
        sessions: Open sessions.
        cells: Live cells.
        engines: Engine processes, the warm ones too.
        engines_started: Engine processes that were ever started.
        stored_bytes: What the values that cells have stored take, of all sessions together.
        stores_refused: Values that were ever refused because their session had no room for them.
        walls: Limits of the operating system that hold for the latest engine process.
    """

    sessions: int

    cells: int

    engines: int

    engines_started: int

    stored_bytes: int

    stores_refused: int

    walls: tuple[str, ...]
