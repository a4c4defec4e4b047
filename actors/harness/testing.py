"""The in-memory twin of what a harness talks to: a network with faults, and an executor with programs in Python."""

from actors.harness._fake_executor import FakeExecutor as FakeExecutor
from actors.harness._fake_executor import FakeProcess as FakeProcess
from actors.harness._fake_executor import Program as Program
from actors.harness._memory import Cut as Cut
from actors.harness._memory import MemoryChannel as MemoryChannel
from actors.harness._memory import MemoryLine as MemoryLine
from actors.harness._memory import MemoryNetwork as MemoryNetwork

__all__ = ["Cut", "FakeExecutor", "FakeProcess", "MemoryChannel", "MemoryLine", "MemoryNetwork", "Program"]

for _name in __all__:
    if hasattr(_thing := globals()[_name], "__qualname__") and _thing.__module__.startswith("actors.harness."):
        _thing.__module__ = __name__
