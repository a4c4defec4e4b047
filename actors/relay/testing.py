"""In-memory twins of what the relay meets: connections that lose, delay and reorder, and a network to dial in."""

from actors.relay._memory import MemoryConnection as MemoryConnection
from actors.relay._memory import MemoryDialer as MemoryDialer
from actors.relay._memory import MemoryRouter as MemoryRouter
from actors.relay._memory import memory_connection_pair as memory_connection_pair

__all__ = ["MemoryConnection", "MemoryDialer", "MemoryRouter", "memory_connection_pair"]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith("actors.relay._"):
        _object.__module__ = __name__
