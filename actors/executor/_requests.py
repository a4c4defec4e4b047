"""Answer the requests of one connection, whatever order their answers are ready in.

The lifecycle is judged here: parameters first, then `initialize`, then `initialized`. What can be answered at once
is answered at once and in order; what waits does so in a task of its own, bounded in number, so that it holds
nobody up.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any

import attrs
import trio

from actors.executor._events import Observer, PathRefused
from actors.executor._limits import Limits
from actors.executor._outbox import Outbox
from actors.executor._refusals import RequestRefused
from actors.executor._sessions import Session, Sessions
from actors.executor._statistics import Counters
from actors.protocol import (
    ENVIRONMENT_INFO,
    ENVIRONMENT_STATUS,
    INITIALIZE,
    MESSAGE_BYTES_MAX,
    METHODS,
    EnvironmentInfo,
    EnvironmentStatus,
    ErrorResponse,
    Failure,
    InitializeParams,
    InitializeResult,
    InvalidParams,
    MessageTooLarge,
    Method,
    Nothing,
    ProtocolFault,
    Request,
    RequestId,
    Response,
    encode_message,
    initialize_first,
    initialize_once,
    initialized_first,
    internal,
    invalid_params,
    invalid_request,
    method_not_found,
    path_outside_roots,
)

__all__ = ["LATER", "Call", "Encoded", "Handler", "Handlers", "Requests", "nothing_to_close"]


class _Later(Enum):
    LATER = "later"


LATER = _Later.LATER
"""What a handler returns when its call will be answered later."""


@attrs.frozen
class Encoded:
    """A result that is JSON already: what is large is written where it is made, not in the task of everybody."""

    json: bytes = attrs.field(repr=lambda json: f"<{len(json)} bytes>")
    """The bytes, as the codec would write them."""


def nothing_to_close() -> None:
    """End a connection that holds nothing."""


class Phase(Enum):
    """How far the greeting of a connection has come."""

    NEW = "nobody was greeted"
    GREETED = "initialize was answered"
    READY = "initialized was received"


class Call:
    """One request on its way to its answer."""

    __slots__ = ("_id", "_method", "_requests")

    def __init__(self, requests: "Requests", request_id: RequestId, method: Method[Any, Any]) -> None:
        self._requests, self._id, self._method = requests, request_id, method

    def answer(self, result: object) -> None:
        """Send the result."""
        if isinstance(result, Encoded):
            self._requests.send_encoded(self._id, result)
            return
        self._requests.send(Response(self._id, self._method.encode_result(result)))

    def answer_among_news(self, result: object) -> None:
        """Send the result in the lane of news, so that none of those that belong to it overtakes it."""
        self._requests.send(Response(self._id, self._method.encode_result(result)), among_news=True)

    def refuse(self, failure: Failure) -> None:
        """Send a failure."""
        self.note_refused(failure)
        self._requests.send(ErrorResponse(self._id, failure))

    def note_refused(self, failure: Failure) -> None:
        """Count and tell what was refused because it lies outside the roots."""
        path = path_outside_roots(failure)
        if path is not None:
            self._requests.note_outside(self._method.name, path)

    def wait(self, work: Callable[[], Awaitable[object]]) -> _Later:
        """Answer with what ``work`` returns or refuses, when it does; it is cancelled when the connection ends.

        Raises:
            RequestRefused: Too many are waiting.
        """
        self._requests.wait(self, work)
        return LATER

    async def wait_room(self) -> None:
        """Wait until an answer can be queued without piling up on others that nobody takes.

        Cancelled:
            Nothing changed.
        """
        await self._requests.outbox.answers.wait_room()

    def owes_answer(self) -> Callable[[], None]:
        """Count this call as waiting until the returned function is called.

        Raises:
            RequestRefused: Too many are waiting.
        """
        return self._requests.count_in()


Handler = Callable[[Any, Call, Session], object]
"""Takes parameters, the call and the session; returns a result, `LATER`, or raises `RequestRefused`."""

Handlers = Mapping[str, Handler]
"""By method name."""


@attrs.define(kw_only=True, eq=False)
class Requests:
    """The requests of one connection."""

    sessions: Sessions
    """Where sessions come from."""
    handlers: Handlers
    """Who answers which method."""
    information: EnvironmentInfo
    """What is told about this environment."""
    outbox: Outbox
    """Where answers go."""
    nursery: trio.Nursery
    """Where waiting calls wait."""
    limits: Limits
    """How many may."""
    counters: Counters
    """Who counts."""
    observer: Observer
    """Who is told."""
    closing: Callable[[], None] = nothing_to_close
    """Lets go of what the connection alone holds; called when nothing of it runs any more."""
    session: Session | None = None
    """The session, once there is one."""
    _phase: Phase = Phase.NEW
    _in_flight: int = 0

    def handle(self, request: Request) -> None:
        """Answer a request, now or later."""
        method = METHODS.get(request.method)
        if method is None:
            self.send(ErrorResponse(request.id, method_not_found(request.method)))
            return
        call = Call(self, request.id, method)
        try:
            result = self._result_of(request, method, call)
        except InvalidParams as fault:
            call.refuse(invalid_params(fault))
        except RequestRefused as refusal:
            call.refuse(refusal.failure)
        else:
            if result is not LATER:
                call.answer(result)

    def _result_of(self, request: Request, method: Method[Any, Any], call: Call) -> object:
        params = method.decode_params(request.params)
        if method is INITIALIZE:
            return self._initialize(params)
        if self._phase is not Phase.READY or self.session is None:
            first = initialize_first if self._phase is Phase.NEW else initialized_first
            raise RequestRefused(first(method.family))
        handler = self.handlers.get(method.name)
        if handler is None:
            raise RequestRefused(method_not_found(method.name))
        return handler(params, call, self.session)

    def _initialize(self, params: InitializeParams) -> InitializeResult:
        if self.session is not None:
            raise RequestRefused(initialize_once())
        self.session = self.sessions.attach(params.resume_session_id, self.outbox, client_name=params.client_name)
        self._phase = Phase.GREETED
        return InitializeResult(session_id=self.session.session_id, environment_info=self.information)

    def initialized(self) -> bool:
        """Take `initialized`; a second one is harmless. False when nobody was greeted yet."""
        if self._phase is Phase.NEW:
            return False
        self._phase = Phase.READY
        return True

    def send(self, message: Response | ErrorResponse, *, among_news: bool = False) -> None:
        """Queue an answer; one that cannot be sent becomes a failure of its own call, and of nobody else's."""
        try:
            data = encode_message(message)
        except ProtocolFault as fault:
            data = encode_message(ErrorResponse(message.id, internal(str(fault))))
        if among_news:
            self.outbox.add_news(data)
        else:
            self.outbox.add_answer(data)

    def send_encoded(self, request_id: RequestId, result: Encoded) -> None:
        """Queue a result that is JSON already."""
        written_id = b"%d" % request_id if isinstance(request_id, int) else _text_as_json(request_id)
        data = b'{"id":%b,"result":%b}' % (written_id, result.json)
        if len(data) > MESSAGE_BYTES_MAX:
            fault = MessageTooLarge(size_bytes=len(data), limit_bytes=MESSAGE_BYTES_MAX)
            self.send(ErrorResponse(request_id, internal(str(fault))))
        else:
            self.outbox.add_answer(data)

    def note_outside(self, method: str, path: str) -> None:
        """Count and tell that a path was refused."""
        self.counters.paths_refused += 1
        session_id = self.session.session_id if self.session is not None else ""
        self.observer(PathRefused(session_id=session_id, method=method, path=path))

    def count_in(self) -> Callable[[], None]:
        """Count one waiting call, until the returned function is called."""
        if self._in_flight >= self.limits.in_flight_max:
            self.counters.requests_refused += 1
            limit = self.limits.in_flight_max
            raise RequestRefused(invalid_request(f"exec-server has reached its limit of {limit} pending requests"))
        self._in_flight += 1

        def count_out() -> None:
            self._in_flight -= 1

        return count_out

    def wait(self, call: Call, work: Callable[[], Awaitable[object]]) -> None:
        """Let a call wait in a task of its own."""
        self.nursery.start_soon(self._wait, call, work, self.count_in())

    async def _wait(self, call: Call, work: Callable[[], Awaitable[object]], count_out: Callable[[], None]) -> None:
        try:
            result = await work()
        except RequestRefused as refusal:
            call.refuse(refusal.failure)
        else:
            if result is not LATER:
                call.answer(result)
        finally:
            count_out()


def _text_as_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def environment_handlers(information: EnvironmentInfo) -> Handlers:
    """Give the handlers of `environment/info` and `environment/status`."""

    def info(_params: Nothing, _call: Call, _session: Session) -> EnvironmentInfo:
        return information

    # Asked more often than anything else, and always the same: written once.
    ready = Encoded(
        json.dumps(ENVIRONMENT_STATUS.encode_result(EnvironmentStatus(status="ready")), separators=(",", ":")).encode()
    )

    def status(_params: Nothing, _call: Call, _session: Session) -> Encoded:
        return ready

    return {ENVIRONMENT_INFO.name: info, ENVIRONMENT_STATUS.name: status}
