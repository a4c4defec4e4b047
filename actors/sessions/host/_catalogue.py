"""The tools of a cell: checked, named for JavaScript, and remembered under a revision."""

import json
import re
from collections.abc import Sequence
from typing import Final

import attrs

from actors.sessions._wire.code_mode_pb2 import (
    TOOL_KIND_FREEFORM,
    TOOL_KIND_FUNCTION,
    ExecuteRequest,
    ToolDefinition,
    ToolKind,
    ToolName,
)
from actors.sessions.grpc import Abort, StatusCode
from actors.sessions.host._identifiers import check_identifier, check_namespace

_FUNCTIONS: Final = "functions"


@attrs.frozen
class Tool:
    """One tool that a cell may call."""

    identifier: str
    """Its name on `tools`."""

    description: str
    """For people and models."""

    name: str
    """What calls and filters use."""

    namespace: str | None
    """As it was defined."""

    kind: ToolKind
    """Function or freeform."""

    input_schema: bytes
    """JSON; not used by the host, but part of what makes two lists equal."""

    output_schema: bytes
    """As `input_schema`."""

    @property
    def key(self) -> tuple[str, str]:
        """What filters compare."""
        return tool_key(self.namespace, self.name)


def tool_key(namespace: str | None, name: str) -> tuple[str, str]:
    """Make one key of a name: no namespace, an empty one and `functions` are the same."""
    return ("" if namespace in {None, "", _FUNCTIONS} else str(namespace), name)


def key_of(tool_name: ToolName) -> tuple[str, str]:
    """Make the key of a name on the wire."""
    return tool_key(tool_name.namespace if tool_name.HasField("namespace") else None, tool_name.name)


def identifier_of(name: str) -> str:
    """Turn a tool's name into an identifier of JavaScript."""
    text = re.sub(r"[^A-Za-z0-9_$]", "_", name) or "_"
    return "_" + text[1:] if text[0].isdigit() else text


class Catalogue:
    """The tools of a session's highest revision."""

    def __init__(self) -> None:
        self._revision = 0
        self._tools: tuple[Tool, ...] = ()

    def tools_for(self, request: ExecuteRequest) -> tuple[Tool, ...]:
        """Choose the tools of one cell, and keep them when they come with a new revision.

        Raises:
            Abort: A definition is not valid, or the revision does not fit what is known.
        """
        tools = tuple(_checked(definition) for definition in request.enabled_tools)
        if not request.HasField("catalog_revision"):
            return tools
        revision = request.catalog_revision
        if revision == 0:
            raise Abort(StatusCode.FAILED_PRECONDITION, "invalid code-mode catalog revision")
        if not tools:
            if revision != self._revision:
                raise Abort(StatusCode.FAILED_PRECONDITION, "unknown code-mode catalog revision")
            return self._tools
        if revision > self._revision:
            self._revision, self._tools = revision, tools
        elif revision == self._revision and tools != self._tools:
            raise Abort(StatusCode.FAILED_PRECONDITION, "conflicting code-mode catalog revision")
        return tools


def for_prelude(tools: Sequence[Tool]) -> list[list[str]]:
    """Say what the prelude needs of each tool."""
    return [[tool.identifier, tool.description] for tool in tools]


def _checked(definition: ToolDefinition) -> Tool:
    check_identifier(definition.name, "tool definition name")
    if not definition.HasField("tool_name"):
        raise Abort(StatusCode.INVALID_ARGUMENT, "tool definition is missing its tool name")
    check_tool_name(definition.tool_name)
    if definition.kind not in {TOOL_KIND_FUNCTION, TOOL_KIND_FREEFORM}:
        raise Abort(StatusCode.INVALID_ARGUMENT, "tool definition has an invalid kind")
    if definition.HasField("input_schema_json"):
        _check_schema(definition.input_schema_json, "input")
    if definition.HasField("output_schema_json"):
        _check_schema(definition.output_schema_json, "output")
    return Tool(
        identifier_of(definition.name),
        definition.description,
        definition.tool_name.name,
        definition.tool_name.namespace if definition.tool_name.HasField("namespace") else None,
        definition.kind,
        definition.input_schema_json,
        definition.output_schema_json,
    )


def check_tool_name(tool_name: ToolName) -> None:
    """Refuse a name that is empty or too long."""
    check_identifier(tool_name.name, "tool name")
    if tool_name.HasField("namespace"):
        check_namespace(tool_name.namespace)


def _check_schema(data: bytes, which: str) -> None:
    try:
        json.loads(data)
    except (ValueError, RecursionError) as broken:
        raise Abort(StatusCode.INVALID_ARGUMENT, f"invalid tool {which} schema: {broken}") from None
