"""Texts and classes of errors."""

import pytest

from actors import ActorsError
from actors.harness import (
    AnswerLost,
    CallNotSent,
    CallTimedOut,
    DidNotRun,
    Disconnected,
    Failed,
    HarnessError,
    HarnessLimits,
    InitializeTimedOut,
    MayHaveRun,
    ProcessStateUnknown,
    ProtocolBroken,
    RecoveryFailed,
    RequestRejected,
    TooManyCalls,
    TransportClosed,
    WebSocketConnectFailed,
    WebSocketConnectTimedOut,
    shown_url,
)

URL = "wss://me:secret@h:1/path?token=secret#secret"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ProtocolBroken("m"), "exec-server protocol error: m"),
        (Disconnected(), "exec-server transport disconnected"),
        (Disconnected("why"), "exec-server transport disconnected: why"),
        (TransportClosed(), "exec-server transport closed"),
        (RequestRejected(-32600, "no"), "exec-server rejected request (-32600): no"),
        (WebSocketConnectTimedOut(URL, 10), "timed out connecting to exec-server websocket `wss://h:1/path` after 10s"),
        (WebSocketConnectFailed(URL, "no"), "failed to connect to exec-server websocket `wss://h:1/path`: no"),
        (InitializeTimedOut(10), "timed out waiting for exec-server initialize handshake after 10s"),
        (CallTimedOut("m", 0.25), "timed out waiting for exec-server `m` response after 250ms"),
        (TooManyCalls(1024), "exec-server has reached its limit of 1024 pending requests"),
        (
            RecoveryFailed(Disconnected(), "recovery timed out after 25s"),
            "exec-server transport disconnected; failed to resume exec-server session: recovery timed out after 25s",
        ),
        (
            ProcessStateUnknown("p", 3, TransportClosed()),
            "connection lost, process state unknown: process `p` after position 3: exec-server transport closed",
        ),
    ],
)  # fmt: skip
def test_each_error_says_what_the_other_implementation_says(error: HarnessError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, ActorsError)


def test_what_became_of_a_call_is_told_by_type() -> None:
    lost = Disconnected()

    assert issubclass(CallNotSent, DidNotRun)
    assert issubclass(AnswerLost, MayHaveRun)
    assert issubclass(RequestRejected, Failed)
    assert not issubclass(DidNotRun, MayHaveRun | Failed)
    assert not issubclass(MayHaveRun, DidNotRun | Failed)
    assert AnswerLost("process/start", lost, identity="p").reason is lost


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert shown_url(URL) == "wss://h:1/path"
    assert shown_url("ws://127.0.0.1:80") == "ws://127.0.0.1:80"
    assert "secret" not in repr(WebSocketConnectFailed(URL, "no"))


@pytest.mark.parametrize("name", ["initialize_s", "pending_calls", "held_bytes"])
def test_a_limit_must_be_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        HarnessLimits(**{name: 0})
