"""In-memory twins of what a rendezvous and its clients meet: a network to listen, dial and ask in."""

from actors.rendezvous._memory import MemoryNetwork as MemoryNetwork

__all__ = ["MemoryNetwork"]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith("actors.rendezvous._"):
        _object.__module__ = __name__
