"""What a code session hands back to its holder and asks of its delegate, as frozen values.

Knows the shapes. Does not know the wire, hosts or generations.
"""

import enum
from collections.abc import Iterable
from typing import TypeAlias

import attrs

from actors.sessions._values import Json, ToolKind, ToolName


def _items(items: "Iterable[ContentItem]") -> "tuple[ContentItem, ...]":
    return tuple(items)


class ImageDetail(enum.Enum):
    """How closely an image is to be looked at.

    Attributes:
        AUTO: The model decides.
        LOW: In few, large parts.
        HIGH: In many, small parts.
        ORIGINAL: As it is.
    """

    AUTO = "auto"
    LOW = "low"
    HIGH = "high"
    ORIGINAL = "original"


@attrs.frozen
class InputText:
    """A piece of text that a script put out.

    Attributes:
        text: May be empty.
    """

    text: str


@attrs.frozen
class InputImage:
    """An image that a script put out.

    Attributes:
        image_url: A data URL.
        detail: None: the host did not say.
    """

    image_url: str

    detail: ImageDetail | None = None


@attrs.frozen
class InputAudio:
    """A clip that a script put out.

    Attributes:
        audio_url: A data URL.
    """

    audio_url: str


ContentItem: TypeAlias = InputText | InputImage | InputAudio


@attrs.frozen(kw_only=True)
class _Response:
    cell_id: str
    """As `wait` and `terminate` take it."""

    content_items: tuple[ContentItem, ...] = attrs.field(default=(), converter=_items)
    """What the script put out since the observation before."""

    host_duration_ns: int = attrs.field(default=0, eq=False)
    """How long the host took, on its own clock; never part of a comparison."""


@attrs.frozen(kw_only=True)
class Yielded(_Response):
    """The observation ended, the cell goes on.

    Attributes:
        cell_id, content_items, host_duration_ns: The cell as `wait` and `terminate` take it, what its script put out
            since the observation before, and how long the host took by its own clock (never part of a comparison).
    """


@attrs.frozen(kw_only=True)
class Terminated(_Response):
    """The cell was terminated.

    Attributes:
        cell_id, content_items, host_duration_ns: The cell as `wait` and `terminate` take it, what its script put out
            since the observation before, and how long the host took by its own clock (never part of a comparison).
    """


@attrs.frozen(kw_only=True)
class Result(_Response):
    """The script ended.

    Attributes:
        error_text: None: it succeeded. Even an empty text means that it failed.
        cell_id, content_items, host_duration_ns: The cell as `wait` and `terminate` take it, what its script put out
            since the observation before, and how long the host took by its own clock (never part of a comparison).
    """

    error_text: str | None = None


RuntimeResponse: TypeAlias = Yielded | Terminated | Result


@attrs.frozen
class LiveCell:
    """The cell was there.

    Attributes:
        response: What was seen of it.
        buffered_for_ns: How long a finished result had lain ready; None: it had not.
    """

    response: RuntimeResponse

    buffered_for_ns: int | None = attrs.field(default=None, kw_only=True, eq=False)


@attrs.frozen
class MissingCell:
    """The cell had ended before, or never was.

    Attributes:
        response: A `Result` that says so.
    """

    response: RuntimeResponse


WaitOutcome: TypeAlias = LiveCell | MissingCell


@attrs.frozen(kw_only=True)
class ToolCall:
    """A tool called by a script.

    Attributes:
        cell_id: Whose script, as the session names it.
        runtime_tool_call_id: The script's own number of the call, as `tool-1`.
        tool_name: Which tool, as it was defined.
        tool_kind: How it was called.
        input: What it was called with; None also when it was called with nothing (`input_given`).
        input_given: Whether there was an argument.
    """

    cell_id: str

    runtime_tool_call_id: str

    tool_name: ToolName

    tool_kind: ToolKind

    input: Json = None

    input_given: bool = True


@attrs.frozen(kw_only=True)
class Notification:
    """A text that a script sent while it ran.

    Attributes:
        cell_id: Whose script, as the session names it.
        tool_call_id: The id of the execute request it belongs to.
        text: What it said.
    """

    cell_id: str

    tool_call_id: str

    text: str
