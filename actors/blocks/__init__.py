"""What our blocks are made with: who forgets `async with` is told so, and no nursery shows in what is raised."""

from actors.blocks._block import ToBeEntered as ToBeEntered
from actors.blocks._block import block as block
from actors.blocks._nurseries import open_helpers as open_helpers

__all__ = ["ToBeEntered", "block", "open_helpers"]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
