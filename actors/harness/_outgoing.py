"""One message on its way out, how far it came, and what came back for it."""

import enum
from typing import Any, TypeVar

import trio

from actors.harness._errors import (
    AnswerLost,
    AnswerUnreadable,
    CallNotSent,
    CallTimedOut,
    HarnessError,
    RequestRejected,
)
from actors.protocol import ErrorResponse, InvalidParams, MalformedMessage, Method, Response

R = TypeVar("R")

Answer = Response | ErrorResponse | MalformedMessage | HarnessError
"""An answer, an answer nobody can read, or why none will come."""


class Phase(enum.Enum):
    """How far a message came."""

    QUEUED = "queued"
    WRITTEN = "written"
    """Its first byte may be out."""
    WITHDRAWN = "withdrawn"
    """It will not be written."""


class Outgoing:
    """One message, and the answer that came for it."""

    # Mutable slots: one is made a call, and its phase and answer change.
    __slots__ = ("answer", "data", "done", "phase")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.phase = Phase.QUEUED
        self.answer: Answer | None = None
        self.done = trio.Event()

    def end(self, answer: Answer) -> None:
        """Wake whoever waits for the answer."""
        self.answer = answer
        self.done.set()

    def result(self, method: Method[Any, R], *, timeout_s: float, identity: str) -> R:
        """Give the result of the call, or raise what became of it."""
        match self.answer:
            case Response(_, result):
                try:
                    return method.decode_result(result)
                except InvalidParams as fault:
                    raise AnswerUnreadable(method.name, str(fault)) from None
            case ErrorResponse(_, error):
                raise RequestRejected(error.code, error.message, error.data)
            case MalformedMessage() as fault:
                raise AnswerUnreadable(method.name, fault.reason) from None
            case HarnessError() as lost:
                outcome = AnswerLost if self.phase is Phase.WRITTEN else CallNotSent
                raise outcome(method.name, lost, identity=identity) from lost
            case None:
                timed_out = CallTimedOut(method.name, timeout_s)
                if self.phase is Phase.WITHDRAWN:
                    raise CallNotSent(method.name, timed_out, identity=identity)
                raise timed_out
