"""Context managers that say, to whoever forgets `async with`, what to write."""

from actors.blocks._block import block as block

__all__ = ["block"]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
