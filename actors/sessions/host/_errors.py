"""What can go wrong with the host itself. What goes wrong with one call is a gRPC status."""

from collections.abc import Sequence
from typing import Any


class HostError(Exception):
    """The root of what a host raises to the program that runs it."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class EngineNotFound(HostError):
    """There is no JavaScript engine to run cells with."""

    def __init__(self, looked: Sequence[str]) -> None:
        places = "; ".join(looked)
        super().__init__(
            f"no JavaScript engine was found ({places}). Install one with `pip install 'greenroom[sessions]'`, put "
            "deno 2.9 or newer, or node 20.18 or newer, on PATH, or name one with `engine_path`"
        )
        self.looked = tuple(looked)
