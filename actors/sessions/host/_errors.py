"""What can go wrong with the host itself. What goes wrong with one call is a gRPC status."""

from collections.abc import Mapping, Sequence
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
            f"no JavaScript engine was found ({places}). In the folder of greenroom, install deno with `pip install "
            "'.[sessions]'` or node with `pip install '.[sessions-node]'`, put deno 2.9 or newer, or node 20.18 or "
            "newer, on PATH, or name one with `engine_path`"
        )
        self.looked: tuple[str, ...] = tuple(looked)


class ListenRefused(HostError):
    """Others could reach the host, and could run code or read along."""

    def __init__(self, address: str, *, token: bool, tls: bool) -> None:
        lacks = " and no ".join(name for name, there in (("token", token), ("TLS certificate", tls)) if not there)
        super().__init__(
            f"refusing to listen on {address}: others can reach it, and there is no {lacks}. "
            "Listen on loopback or a unix socket, or give both"
        )
        self.address: str = address
        self.token: bool = token
        self.tls: bool = tls


class WallsMissing(HostError):
    """Engine processes would not stand behind every wall, and that was required."""

    def __init__(self, missing: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
        super().__init__(
            f"engine processes would stand without {', '.join(missing)} ({reasons}). Use a system that has them, or do "
            "not require walls"
        )
        self.missing: dict[str, str] = dict(missing)
