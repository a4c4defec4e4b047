"""One JSON-RPC message in or out, without the ``jsonrpc`` member.

Sizes are checked before anything is decoded. Unknown members are tolerated. Knows no method by name.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NoReturn, cast

import attrs

from actors.protocol._faults import InvalidParams, MalformedMessage, MessageTooLarge
from actors.protocol._ids import RequestId, is_request_id
from actors.protocol._shapes import shape_of, wrong_type

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest message either end takes."""
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""The largest WebSocket frame the other implementation takes; so also the largest message to send in one frame."""


@attrs.frozen
class Request:
    """A call that wants an answer with the same id.

    Attributes:
        id: What the answer will carry.
        method: Which method, `family/verb`.
        params: A decoded JSON value; an absent one is None.
    """

    id: RequestId
    method: str
    params: Any = None


@attrs.frozen
class Notification:
    """News that wants no answer.

    Attributes:
        method: Which news, `family/verb`.
        params: A decoded JSON value; an absent one is None.
    """

    method: str
    params: Any = None


@attrs.frozen
class Response:
    """A call went well.

    Attributes:
        id: Which call.
        result: A decoded JSON value.
    """

    id: RequestId
    result: Any


@attrs.frozen
class Failure:
    """Why a call was refused or failed, as it travels.

    Attributes:
        code: One of the codes in `ErrorCode`, or one of the peer's own.
        message: The exact text.
        data: More facts; absent when None.
    """

    code: int
    message: str
    data: Any = None


@attrs.frozen
class ErrorResponse:
    """A call was refused or failed.

    Attributes:
        id: Which call; -1 when the message had no readable id.
        error: Why.
    """

    id: RequestId
    error: Failure


Message = Request | Notification | Response | ErrorResponse


def decode_message(data: bytes | str, *, limit_bytes: int = MESSAGE_BYTES_MAX) -> Message:
    """Read one message.

    Raises:
        MessageTooLarge: Over ``limit_bytes``; nothing was decoded.
        MalformedMessage: Not JSON, not an object, or not one of the four kinds; says which rule.
    """
    _check_size(data, limit_bytes)
    value = _decode_json(data)
    if not isinstance(value, dict):
        raise MalformedMessage("expected a JSON-RPC object")
    members = cast("dict[str, Any]", value)
    request_id = cast("RequestId | None", members["id"] if is_request_id(members.get("id")) else None)
    if "id" in members and request_id is None:
        raise MalformedMessage("data did not match any variant of untagged enum RequestId")
    try:
        return _message(members, request_id)
    except InvalidParams as fault:
        raise MalformedMessage(fault.rule, request_id=request_id) from None


def _message(members: dict[str, Any], request_id: RequestId | None) -> Message:
    # A message that has both `method` and `result` is a request: so the other implementation reads it.
    if "method" in members:
        method = members["method"]
        if not isinstance(method, str):
            raise wrong_type(method, "a string")
        params = members.get("params")
        return Notification(method, params) if request_id is None else Request(request_id, method, params)
    if request_id is not None and "result" in members:
        return Response(request_id, members["result"])
    if "error" not in members:
        raise InvalidParams("missing field `error`")
    if request_id is None:
        raise InvalidParams("missing field `id`")
    return ErrorResponse(request_id, _failure(members["error"]))


def _failure(value: Any) -> Failure:
    if not isinstance(value, dict):
        raise wrong_type(value, "struct Failure")
    members = cast("dict[str, Any]", value)
    for name in ("code", "message"):
        if name not in members:
            raise InvalidParams(f"missing field `{name}`")
    code, message = members["code"], members["message"]
    if isinstance(code, bool) or not isinstance(code, int):
        raise InvalidParams(f"invalid type: {shape_of(code)}, expected i64")
    if not isinstance(message, str):
        raise wrong_type(message, "a string")
    return Failure(code, message, members.get("data"))


def encode_message(message: Message, *, limit_bytes: int = MESSAGE_BYTES_MAX) -> bytes:
    """Write one message, members in the order the other implementation writes them.

    Raises:
        MessageTooLarge: Over ``limit_bytes``.
        MalformedMessage: A value in it has no JSON form.
    """
    data = _encode_json(_members(message))
    _check_size(data, limit_bytes)
    return data


def _members(message: Message) -> dict[str, Any]:
    match message:
        case Request(request_id, method, params):
            return {"id": request_id, "method": method, "params": params}
        case Notification(method, params):
            return {"method": method, "params": params}
        case Response(request_id, result):
            return {"id": request_id, "result": result}
        case ErrorResponse(request_id, Failure(code, text, data)):
            more = {} if data is None else {"data": data}
            return {"error": {"code": code, **more, "message": text}, "id": request_id}


def _check_size(data: bytes | str, limit_bytes: int) -> None:
    # A text of n characters has at least n bytes, so most are judged without encoding; JSON of ours is mostly ASCII.
    size_bytes = len(data)
    if isinstance(data, str) and size_bytes <= limit_bytes < 4 * size_bytes and not data.isascii():
        size_bytes = len(data.encode("utf-8", "surrogatepass"))
    if size_bytes > limit_bytes:
        raise MessageTooLarge(size_bytes=size_bytes, limit_bytes=limit_bytes)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _unhurried(value: Any) -> str:
    return _encoder.encode(value)


def _make_writer() -> Callable[[Any], str]:
    """Give what `_encoder.encode` does, without making the C encoder anew each time: that is most of its time."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _unhurried
    string = json.encoder.encode_basestring
    chunks = make(None, _encoder.default, string, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks(value, 0))


_write_json = _make_writer()


def _read_json(text: str) -> Any:
    """Read as `_decoder.decode`, which looks for blanks at both ends before it looks whether there are any."""
    try:
        value, end = _decoder.raw_decode(text)
    except ValueError:
        return _decoder.decode(text)
    return value if end == len(text) else _decoder.decode(text)


def _decode_json(data: bytes | str) -> Any:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = _read_json(text)
        if "\\ud" in text or "\\uD" in text:
            # A lone surrogate has no UTF-8: it would fail later, far from the peer that sent it.
            _encoder.encode(value).encode("utf-8")
    except json.JSONDecodeError as fault:
        if not fault.doc[fault.pos :].strip():
            raise MalformedMessage(f"EOF while parsing a value at line 1 column {max(fault.pos, 0)}") from None
        raise MalformedMessage(f"{fault.msg} at line {fault.lineno} column {fault.colno}") from None
    except UnicodeDecodeError as fault:
        raise MalformedMessage(f"invalid UTF-8 at offset {fault.start}") from None
    except UnicodeEncodeError:
        raise MalformedMessage("lone surrogate in a string escape") from None
    except RecursionError:
        raise MalformedMessage("recursion limit exceeded") from None
    except ValueError as fault:
        # Digits over the interpreter's limit, or one of the constants.
        raise MalformedMessage(str(fault)) from None
    return value


def _encode_json(value: Any) -> bytes:
    try:
        return _write_json(value).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as fault:
        raise MalformedMessage(f"value has no JSON form: {fault}") from fault
