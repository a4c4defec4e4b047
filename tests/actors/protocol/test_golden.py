"""Every recorded message of the methods we have is read, written back the same, and refused with the same words."""

import json
from typing import Any

import pytest

from actors.protocol import (
    METHODS,
    NEWS,
    ErrorResponse,
    InvalidParams,
    MalformedMessage,
    Notification,
    PathUriRefused,
    Request,
    Response,
    argv_empty,
    cwd_foreign,
    decode_message,
    encode_message,
    path_from_uri,
    unreadable_message,
    write_id_empty,
)
from tests.actors.protocol.golden import golden_steps, needs_golden

STEPS = golden_steps()
REQUESTS = [s for s in STEPS if isinstance(s.get("request"), dict) and s["request"]["method"] in METHODS]
RAW = [s for s in STEPS if "raw" in s and s["transports"] != ["noise"]]
INVALID_PARAMS = -32602


def name_of(step: dict[str, Any]) -> str:
    return f"{step['scenario']}-{step['step']}"


def refusal(method: str, params: Any) -> str | None:
    """The text an executor answers with -32602, or None when the parameters are good."""
    try:
        decoded = METHODS[method].decode_params(params)
        if method == "process/start":
            path_from_uri(decoded.cwd)
            if not decoded.argv:
                return argv_empty().message
        if method.startswith("fs/"):
            for uri in file_uris(decoded):
                path_from_uri(uri)
        if method == "capabilityRoots/discoverV1":
            for root in decoded.roots:
                path_from_uri(root.path)
        if method == "process/write" and not decoded.write_id:
            return write_id_empty().message
    except InvalidParams as fault:
        return fault.rule
    except PathUriRefused as fault:
        if method.startswith("fs/") and fault.foreign:
            return None  # Refused, but with a code of its own.
        return cwd_foreign(fault.uri, "linux").message if fault.foreign else fault.rule
    return None


def file_uris(params: Any) -> list[str]:
    named = [getattr(params, name, None) for name in ("path", "source_path", "destination_path", "present")]
    return [uri for uri in (*named, *getattr(params, "missing", ())) if uri is not None]


@needs_golden
@pytest.mark.parametrize("step", REQUESTS, ids=name_of)
def test_recorded_parameters_are_taken_or_refused_in_the_same_words(step: dict[str, Any]) -> None:
    request, response = step["request"], step["response"]
    error = response["error"] if isinstance(response, dict) and "error" in response else {}
    expected = error["message"] if error.get("code") == INVALID_PARAMS else None

    assert refusal(request["method"], request.get("params")) == expected


@needs_golden
@pytest.mark.parametrize("step", [s for s in REQUESTS if isinstance(s["response"], dict)], ids=name_of)
def test_recorded_answers_come_back_byte_for_byte(step: dict[str, Any]) -> None:
    recorded = json.dumps(step["response"], separators=(",", ":"), ensure_ascii=False).encode()
    message = decode_message(recorded)

    match message:
        case Response(request_id, result):
            method = METHODS[step["request"]["method"]]
            decoded = method.decode_result(result)
            assert method.encode_result(decoded) == result
            assert list(method.encode_result(decoded)) == list(result)
            assert encode_message(Response(request_id, method.encode_result(decoded))) == recorded
        case ErrorResponse():
            assert encode_message(message) == recorded
        case _:
            pytest.fail(f"{message} is no answer")


@needs_golden
def test_recorded_notifications_come_back_the_same() -> None:
    recorded = [n for step in STEPS for n in step.get("notifications", ()) if n["method"] in NEWS]

    assert len(recorded) > 50
    for notification in recorded:
        message = decode_message(json.dumps(notification))
        assert isinstance(message, Notification)
        news = NEWS[message.method]
        assert news.encode_params(news.decode_params(message.params)) == notification["params"]


@needs_golden
@pytest.mark.parametrize("step", RAW, ids=name_of)
def test_recorded_raw_texts_are_taken_or_refused_in_the_same_words(step: dict[str, Any]) -> None:
    received = step["received"][0]
    refused = isinstance(received, dict) and received.get("id") == -1

    if refused:
        with pytest.raises(MalformedMessage) as caught:
            decode_message(step["raw"])
        answer = unreadable_message("{PEER}", caught.value.reason)
        assert answer == decode_message(json.dumps(received))
    else:
        message = decode_message(step["raw"])
        assert isinstance(message, Request) == isinstance(received, dict)
