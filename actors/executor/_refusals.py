"""A request that is answered with a failure."""

from actors.executor._errors import ExecutorError
from actors.protocol import Failure

__all__ = ["RequestRefused"]


class RequestRefused(ExecutorError):
    """A request is refused; holds what the peer is told."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
