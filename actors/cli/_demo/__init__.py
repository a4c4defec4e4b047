"""`greenroom demo`: the whole lifecycle, on real processes, told as it happens."""

from actors.cli._demo._show import demo as demo

__all__ = ["demo"]
