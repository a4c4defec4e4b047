"""Every method and notification by name, with the types of what it takes and gives.

The one place to touch when a method is added.
"""

import enum
from typing import Any, Final, Generic, TypeVar

import attrs

from actors.protocol._codec import decode_value, encode_value
from actors.protocol._environment_messages import (
    Empty,
    EnvironmentInfo,
    EnvironmentStatus,
    InitializeParams,
    InitializeResult,
    Nothing,
)
from actors.protocol._process_messages import (
    ProcessClosed,
    ProcessExited,
    ProcessOutput,
    ReadParams,
    ReadResult,
    SignalParams,
    StartParams,
    StartResult,
    TerminateParams,
    TerminateResult,
    WriteParams,
    WriteResult,
)
from actors.protocol._shapes import wrong_type

P = TypeVar("P")
R = TypeVar("R")


class Family(enum.Enum):
    """What a refusal calls a group of methods."""

    LIFECYCLE = "lifecycle"
    EXEC = "exec"
    FILESYSTEM = "filesystem"
    HTTP = "http"
    ENVIRONMENT_STATUS = "environment status"
    ENVIRONMENT_INFO = "environment info"
    CAPABILITY_DISCOVERY = "capability discovery"
    ENVIRONMENT_CONFIG = "environment config"


@attrs.frozen
class Method(Generic[P, R]):
    """A call: its name, what it takes, what it gives."""

    name: str
    """As it travels."""
    family: Family
    """What a refusal calls its group."""
    params: type[P]
    """What it takes."""
    result: type[R]
    """What it gives."""

    def decode_params(self, value: Any) -> P:
        """Read parameters, or raise `InvalidParams`."""
        return _decode_params(value, self.params)

    def encode_params(self, params: P) -> Any:
        """Write parameters; `Nothing` is null."""
        return None if isinstance(params, Nothing) else encode_value(params)

    def decode_result(self, value: Any) -> R:
        """Read a result, or raise `InvalidParams`."""
        return decode_value(value, self.result)

    def encode_result(self, result: R) -> Any:
        """Write a result."""
        return encode_value(result)


@attrs.frozen
class News(Generic[P]):
    """A notification: its name and what it says."""

    name: str
    """As it travels."""
    params: type[P]
    """What it says."""

    def decode_params(self, value: Any) -> P:
        """Read parameters, or raise `InvalidParams`."""
        return _decode_params(value, self.params)

    def encode_params(self, params: P) -> Any:
        """Write parameters."""
        return encode_value(params)


def _decode_params(value: Any, kind: type[P]) -> P:
    if kind is Nothing:
        if value is not None and value != {}:
            raise wrong_type(value, "unit")
        return kind()
    return decode_value(value, kind)


INITIALIZE: Final = Method("initialize", Family.LIFECYCLE, InitializeParams, InitializeResult)
ENVIRONMENT_INFO: Final = Method("environment/info", Family.ENVIRONMENT_INFO, Nothing, EnvironmentInfo)
ENVIRONMENT_STATUS: Final = Method("environment/status", Family.ENVIRONMENT_STATUS, Nothing, EnvironmentStatus)
PROCESS_START: Final = Method("process/start", Family.EXEC, StartParams, StartResult)
PROCESS_READ: Final = Method("process/read", Family.EXEC, ReadParams, ReadResult)
PROCESS_WRITE: Final = Method("process/write", Family.EXEC, WriteParams, WriteResult)
PROCESS_SIGNAL: Final = Method("process/signal", Family.EXEC, SignalParams, Empty)
PROCESS_TERMINATE: Final = Method("process/terminate", Family.EXEC, TerminateParams, TerminateResult)

INITIALIZED: Final = News("initialized", Empty)
PROCESS_OUTPUT: Final = News("process/output", ProcessOutput)
PROCESS_EXITED: Final = News("process/exited", ProcessExited)
PROCESS_CLOSED: Final = News("process/closed", ProcessClosed)

METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method
    for method in (
        INITIALIZE,
        ENVIRONMENT_INFO,
        ENVIRONMENT_STATUS,
        PROCESS_START,
        PROCESS_READ,
        PROCESS_WRITE,
        PROCESS_SIGNAL,
        PROCESS_TERMINATE,
    )
}
"""By name."""

NEWS: Final[dict[str, News[Any]]] = {
    news.name: news for news in (INITIALIZED, PROCESS_OUTPUT, PROCESS_EXITED, PROCESS_CLOSED)
}
"""By name."""
