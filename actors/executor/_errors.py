"""The errors of the executor. Leaves hold facts and write their own sentence."""

import errno
import os
from typing import Any

from actors.protocol import SpawnFailureKind, os_failure_text

__all__ = ["ExecutorError", "ListenAddressInvalid", "ListenRefused", "SettingInvalid", "SpawnFailed", "os_error_text"]


_PATH_CHARACTERS_MAX = 4096


class ExecutorError(Exception):
    """Root of everything the executor raises on its own account."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}


class SettingInvalid(ExecutorError, ValueError):
    """What an executor was given breaks a rule; nothing was opened or changed."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field} {rule}")
        self.field: str = field
        self.rule: str = rule


class ListenRefused(ExecutorError):
    """Asked to listen where others could reach us, without a token that keeps them out."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"refused to listen on {address}: {reason}. Whoever reaches an executor runs commands as this user. "
            "Give a token, or listen on 127.0.0.1."
        )
        self.address: str = address
        self.reason: str = reason


class ListenAddressInvalid(ExecutorError):
    """An address to listen on is not of the shape we serve."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"cannot listen on {address!r}: give ws://HOST:PORT with a port from 0 to 65535, such as ws://127.0.0.1:0"
        )
        self.address = address


class SpawnFailed(ExecutorError):
    """The system would not start a process; nothing was left behind."""

    def __init__(self, kind: SpawnFailureKind, reason: str, *, path: str | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        """The class of failure, as the wire says it."""
        self.path = path
        """The program or folder concerned, when the system told."""

    @classmethod
    def from_os_error(cls, error: OSError) -> "SpawnFailed":
        """Say what the system said, in the words of the protocol."""
        kinds = {
            errno.ENOENT: SpawnFailureKind.NOT_FOUND,
            errno.EACCES: SpawnFailureKind.PERMISSION_DENIED,
            errno.EPERM: SpawnFailureKind.PERMISSION_DENIED,
        }
        path = _as_text(error.filename) if isinstance(error.filename, str) else None
        return cls(kinds.get(error.errno or 0, SpawnFailureKind.FAILED), os_error_text(error), path=path)


def _as_text(path: str) -> str:
    """Make a path fit to be told: bytes that are no text have no form on the wire, and nobody reads a megabyte."""
    return path[:_PATH_CHARACTERS_MAX].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def os_error_text(error: OSError) -> str:
    """The protocol's wording of a system error, which never names the path."""
    if error.errno is None:
        return "the system refused without a reason"
    return os_failure_text(error.errno, os.strerror(error.errno))
