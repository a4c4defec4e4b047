"""Every method and notification by name, with the types of what it takes and gives.

The one place to touch when a method is added.
"""

import enum
from typing import Any, Final, Generic, TypeVar

import attrs

from actors.protocol._capability_messages import DiscoverRootsParams, DiscoverRootsResult
from actors.protocol._codec import decode_value, encode_value
from actors.protocol._environment_messages import (
    Empty,
    EnvironmentInfo,
    EnvironmentStatus,
    InitializeParams,
    InitializeResult,
    Nothing,
)
from actors.protocol._file_messages import (
    CanonicalizeParams,
    CanonicalizeResult,
    CopyParams,
    CreateDirectoryParams,
    FileMetadata,
    GetMetadataParams,
    ReadDirectoryParams,
    ReadDirectoryResult,
    ReadFileParams,
    ReadFileResult,
    RemoveParams,
    WalkParams,
    WalkResult,
    WriteFileParams,
)
from actors.protocol._file_stream_messages import (
    CloseParams,
    CloseResult,
    MissingChanged,
    OpenParams,
    OpenResult,
    ReadBlockParams,
    ReadBlockResult,
    WatchMissingParams,
    WatchMissingResult,
    WriteBlockParams,
)
from actors.protocol._http_messages import (
    HttpBodyDelta,
    HttpCancelParams,
    HttpMoreParams,
    HttpRequestParams,
    HttpResponse,
)
from actors.protocol._process_events import ProcessClosed, ProcessExited, ProcessOutput
from actors.protocol._process_messages import (
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
    """What a refusal calls a group of methods.

    Attributes:
        LIFECYCLE: `initialize` and `initialized`.
        EXEC: Processes.
        FILESYSTEM: Files.
        HTTP: HTTP requests.
        ENVIRONMENT_STATUS: `environment/status`.
        ENVIRONMENT_INFO: `environment/info`.
        CAPABILITY_DISCOVERY: Capabilities that can be found.
        ENVIRONMENT_CONFIG: Settings that can be read.
    """

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
    """A call: its name, what it takes, what it gives.

    Attributes:
        name: As it travels.
        family: What a refusal calls its group.
        params: What it takes.
        result: What it gives.
    """

    name: str
    family: Family
    params: type[P]
    result: type[R]

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
    """A notification: its name and what it says.

    Attributes:
        name: As it travels.
        params: What it says.
    """

    name: str
    params: type[P]

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
FS_READ_FILE: Final = Method("fs/readFile", Family.FILESYSTEM, ReadFileParams, ReadFileResult)
FS_WRITE_FILE: Final = Method("fs/writeFile", Family.FILESYSTEM, WriteFileParams, Empty)
FS_CREATE_DIRECTORY: Final = Method("fs/createDirectory", Family.FILESYSTEM, CreateDirectoryParams, Empty)
FS_GET_METADATA: Final = Method("fs/getMetadata", Family.FILESYSTEM, GetMetadataParams, FileMetadata)
FS_CANONICALIZE: Final = Method("fs/canonicalize", Family.FILESYSTEM, CanonicalizeParams, CanonicalizeResult)
FS_READ_DIRECTORY: Final = Method("fs/readDirectory", Family.FILESYSTEM, ReadDirectoryParams, ReadDirectoryResult)
FS_WALK: Final = Method("fs/walk", Family.FILESYSTEM, WalkParams, WalkResult)
FS_REMOVE: Final = Method("fs/remove", Family.FILESYSTEM, RemoveParams, Empty)
FS_COPY: Final = Method("fs/copy", Family.FILESYSTEM, CopyParams, Empty)
FS_OPEN: Final = Method("fs/open", Family.FILESYSTEM, OpenParams, OpenResult)
FS_READ_BLOCK: Final = Method("fs/readBlock", Family.FILESYSTEM, ReadBlockParams, ReadBlockResult)
FS_WRITE_BLOCK: Final = Method("fs/writeBlock", Family.FILESYSTEM, WriteBlockParams, Empty)
FS_CLOSE: Final = Method("fs/close", Family.FILESYSTEM, CloseParams, CloseResult)
FS_WATCH_MISSING: Final = Method("fs/watchMissing", Family.FILESYSTEM, WatchMissingParams, WatchMissingResult)
CAPABILITY_ROOTS_DISCOVER: Final = Method(
    "capabilityRoots/discoverV1", Family.CAPABILITY_DISCOVERY, DiscoverRootsParams, DiscoverRootsResult
)
HTTP_REQUEST: Final = Method("http/request", Family.HTTP, HttpRequestParams, HttpResponse)
HTTP_MORE: Final = Method("http/request/more", Family.HTTP, HttpMoreParams, Empty)
HTTP_CANCEL: Final = Method("http/request/cancel", Family.HTTP, HttpCancelParams, Empty)

INITIALIZED: Final = News("initialized", Empty)
PROCESS_OUTPUT: Final = News("process/output", ProcessOutput)
PROCESS_EXITED: Final = News("process/exited", ProcessExited)
PROCESS_CLOSED: Final = News("process/closed", ProcessClosed)
FS_MISSING_CHANGED: Final = News("fs/missingChanged", MissingChanged)
HTTP_BODY_DELTA: Final = News("http/request/bodyDelta", HttpBodyDelta)

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
        FS_READ_FILE,
        FS_WRITE_FILE,
        FS_CREATE_DIRECTORY,
        FS_GET_METADATA,
        FS_CANONICALIZE,
        FS_READ_DIRECTORY,
        FS_WALK,
        FS_REMOVE,
        FS_COPY,
        FS_OPEN,
        FS_READ_BLOCK,
        FS_WRITE_BLOCK,
        FS_CLOSE,
        FS_WATCH_MISSING,
        CAPABILITY_ROOTS_DISCOVER,
        HTTP_REQUEST,
        HTTP_MORE,
        HTTP_CANCEL,
    )
}
"""By name."""

NEWS: Final[dict[str, News[Any]]] = {
    news.name: news
    for news in (INITIALIZED, PROCESS_OUTPUT, PROCESS_EXITED, PROCESS_CLOSED, FS_MISSING_CHANGED, HTTP_BODY_DELTA)
}
"""By name."""
