"""The errors of the executor. Leaves hold facts and write their own sentence."""

import errno
import os

from actors.protocol import SpawnFailureKind, os_failure_text

__all__ = ["ExecutorError", "ListenAddressInvalid", "ListenRefused", "SpawnFailed", "os_error_text"]


class ExecutorError(Exception):
    """Root of everything the executor raises on its own account."""


class ListenRefused(ExecutorError):
    """Asked to listen where others could reach us, without a token that keeps them out."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"refused to listen on {address}: {reason}. Whoever reaches an executor runs commands as this user. "
            "Give a token, or listen on 127.0.0.1."
        )
        self.address, self.reason = address, reason


class ListenAddressInvalid(ExecutorError):
    """An address to listen on is not of the shape we serve."""

    def __init__(self, address: str) -> None:
        super().__init__(f"cannot listen on {address!r}: give ws://HOST:PORT, such as ws://127.0.0.1:0")
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
        path = error.filename if isinstance(error.filename, str) else None
        return cls(kinds.get(error.errno or 0, SpawnFailureKind.FAILED), os_error_text(error), path=path)


def os_error_text(error: OSError) -> str:
    """The protocol's wording of a system error, which never names the path."""
    if error.errno is None:
        return "the system refused without a reason"
    return os_failure_text(error.errno, os.strerror(error.errno))
