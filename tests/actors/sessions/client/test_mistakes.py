"""What a holder does wrong is said at once, where it was done, and hurts nothing else."""

import gc
import logging
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trio

import actors.sessions
from actors.sessions import (
    ExecuteRequest,
    InvalidArgument,
    InvalidRequest,
    Json,
    Notification,
    Result,
    Session,
    SessionClosed,
    SessionProvider,
    ToolCall,
    ToolDefinition,
    ToolName,
    WaitRequest,
    open_provider,
)
from actors.sessions import host as door
from actors.sessions.host import HostOptions
from tests.actors.sessions.client.hosts import Serving

ASK = ToolDefinition(name="echo", tool_name=ToolName("echo"))


def request(source: Any = "recall", **options: Any) -> ExecuteRequest:
    return ExecuteRequest(tool_call_id="call", source=source, **options)


class Tools:
    """A delegate that does nothing wrong."""

    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        return None

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None: ...

    def cell_closed(self, cell_id: str) -> None: ...


class Raising(Tools):
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        raise KeyError("my bug")


class Unwritable(Tools):
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Any:
        return {1, 2}


class Deaf:
    """Its methods have the wrong arguments."""

    async def call_tool(self) -> Json:
        return None

    async def notify(self) -> None: ...

    def cell_closed(self, cell_id: str) -> None: ...


class Waiting(Tools):
    def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Any:
        return 5


class Listening(Tools):
    def notify(self, notification: Notification, cancelled: trio.Event) -> Any: ...


class Closing:
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        return None

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None: ...

    async def cell_closed(self, cell_id: str) -> None: ...


class Half:
    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        return None


# --- a tool with a bug


@pytest.mark.parametrize(
    ("tools", "said"),
    [(Raising(), "KeyError: 'my bug'"), (Unwritable(), "not JSON serializable"), (Deaf(), "TypeError")],
    ids=["raises", "gives no JSON", "takes other arguments"],
)
async def test_a_tool_with_a_bug_is_logged_with_its_cell_name_and_traceback(
    provider: SessionProvider, caplog: pytest.LogCaptureFixture, tools: Any, said: str
) -> None:
    """Seen failing with a default report that leaves it to the counter."""
    session = await provider.create_session()
    cell = await session.execute(request("catch_echo", enabled_tools=[ASK]), tools)
    response = await cell.initial_response()
    await session.shutdown()

    [record] = caplog.records
    assert (record.name, record.levelno) == ("actors.sessions", logging.ERROR)
    assert f"the delegate of cell {cell.cell_id} raised in call_tool for the tool echo" in caplog.text
    assert said in caplog.text
    # The script and the host learn nothing of the holder's insides.
    assert isinstance(response, Result)
    assert "caught code-mode tool delegate panicked" in repr(response.content_items)


async def test_a_delegate_that_fails_at_a_notice_or_an_end_is_logged_too(
    provider: SessionProvider, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Tools):
        async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
            raise KeyError("heard wrong")

        def cell_closed(self, cell_id: str) -> None:
            raise KeyError("closed wrong")

    session = await provider.create_session()
    cell = await session.execute(request("notify"), Clumsy())
    await cell.initial_response()
    await session.shutdown()

    assert [record.getMessage() for record in caplog.records] == [
        f"the delegate of cell {cell.cell_id} raised in {where}" for where in ("notify", "cell_closed")
    ]


DELEGATES: dict[str, tuple[Any, str]] = {
    "None": (None, r"delegate: must have `async def call_tool`; NoneType has none"),
    "an object": (object(), r"delegate: must have `async def call_tool`; object has none"),
    "the class": (Tools, r"delegate: must be an object, not the class Tools: write Tools\(\)"),
    "half a delegate": (Half(), r"delegate: must have `async def notify`; Half has none"),
    "a tool that is not async": (Waiting(), r"delegate: call_tool of Waiting must be `async def call_tool`"),
    "an ear that is not async": (Listening(), r"delegate: notify of Listening must be `async def notify`"),
    "an end that is async": (Closing(), r"delegate: cell_closed of Closing must be `def cell_closed`"),
}


@pytest.mark.parametrize(("delegate", "said"), DELEGATES.values(), ids=DELEGATES)
async def test_what_cannot_serve_a_script_is_refused_before_anything_is_sent(
    provider: SessionProvider, delegate: Any, said: str
) -> None:
    session = await provider.create_session()
    with pytest.raises(InvalidArgument, match=f"^{said}$") as refused:
        session.execute(request(), delegate)

    assert refused.value.field == "delegate"
    assert isinstance(refused.value, InvalidRequest)
    await session.shutdown()


# --- an await that was forgotten

CALLS: dict[str, Callable[[Session], Any]] = {
    "execute": lambda session: session.execute(request()),
    "wait": lambda session: session.wait(WaitRequest("1")),
    "completion": lambda session: session.completion("1"),
    "terminate": lambda session: session.terminate("1"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_is_never_awaited_warns_as_a_coroutine_does(provider: SessionProvider, name: str) -> None:
    """Seen failing for a call without a `__del__`."""

    def forget() -> None:
        CALLS[name](session)
        gc.collect()

    session = await provider.create_session()
    with pytest.warns(RuntimeWarning, match=rf"^Session\.{name}\(\.\.\.\) was never awaited, so nothing was sent"):
        forget()
    await session.shutdown()


async def test_a_call_that_needs_no_await_or_was_given_up_says_nothing(provider: SessionProvider) -> None:
    session = await provider.create_session()
    call = session.execute(request())
    call.close()
    del call
    session.shutdown()
    gc.collect()  # A warning here would fail the test.


async def test_what_a_call_does_not_have_yet_says_to_await_it(provider: SessionProvider) -> None:
    session = await provider.create_session()
    call: Any = session.execute(request())
    said = r"^Session\.execute gives what has to be awaited, so there is no 'initial_response' yet: await it first$"
    with pytest.raises(AttributeError, match=said):
        await call.initial_response()
    await (await call).initial_response()
    await session.shutdown()


# --- values of the wrong kind

# Told nothing of types, so that it can be given what is wrong.
untyped: Any = actors.sessions
host: Any = door

VALUES: list[tuple[Callable[[], object], str]] = [
    (lambda: request(5), "source: must be text, not int"),
    (lambda: request(b"text(1)"), "source: must be text, not bytes"),
    (lambda: untyped.ExecuteRequest(tool_call_id=1, source=""), "tool_call_id: must be text, not int"),
    (lambda: request(yield_time_ms="3"), "yield_time_ms: must be a whole number or None, not str"),
    (lambda: request(yield_time_ms=1.5), "yield_time_ms: must be a whole number or None, not float"),
    (lambda: request(yield_time_ms=True), "yield_time_ms: must be a whole number or None, not bool"),
    (lambda: request(yield_time_ms=-1), "yield_time_ms: must lie between 0 and 2^64-1, not be -1"),
    (lambda: request(max_output_tokens="3"), "max_output_tokens: must be a whole number or None, not str"),
    (lambda: request(enabled_tools=("ask",)), "enabled_tools[0]: must be a ToolDefinition, not str"),
    (lambda: request(enabled_tools=(ASK, Tools)), "enabled_tools[1]: must be a ToolDefinition, not the class Tools"),
    (
        lambda: request(enabled_tools=ASK),
        "enabled_tools: must be a tuple or list of ToolDefinitions, not ToolDefinition",
    ),
    (lambda: request(enabled_tools="ask"), "enabled_tools: must be a tuple or list of ToolDefinitions, not str"),
    (lambda: untyped.ToolDefinition(name="a", tool_name="a"), "tool_name: must be a ToolName, not str"),
    (
        lambda: untyped.ToolDefinition(name=untyped.ToolName("a"), tool_name=untyped.ToolName("a")),
        "name: must be text, not ToolName",
    ),
    (
        lambda: untyped.ToolDefinition(name="a", tool_name=untyped.ToolName("a"), kind="function"),
        "kind: must be a ToolKind, not str",
    ),
    (
        lambda: untyped.ToolDefinition(name="a", tool_name=untyped.ToolName("a"), description=None),
        "description: must be text, not NoneType",
    ),
    (lambda: untyped.ToolName(b"a"), "name: must be text, not bytes"),
    (lambda: untyped.ToolName("a", 1), "namespace: must be text or None, not int"),
    (lambda: untyped.WaitRequest(1), "cell_id: must be text, not int"),
    (lambda: untyped.WaitRequest("1", None), "yield_time_ms: must be a whole number, not NoneType"),
    (
        lambda: untyped.SessionOptions(output_truncation="server"),
        "output_truncation: must be an OutputTruncation, not str",
    ),
    (
        lambda: untyped.SessionOptions(cell_execution_limits=5),
        "cell_execution_limits: must be a CellExecutionLimits or None, not int",
    ),
    (lambda: untyped.SessionOptions(restore_stored_values=1), "restore_stored_values: must be True or False, not int"),
    (
        lambda: untyped.SessionOptions(heartbeat_interval_s=0.5),
        "heartbeat_interval_s: must be a whole number or None, not float",
    ),
    (
        lambda: untyped.CellExecutionLimits(max_yield_time_ms="1"),
        "max_yield_time_ms: must be a whole number or None, not str",
    ),
    (lambda: host.HostOptions(heap_bytes="1"), "heap_bytes: must be a number, not str"),
    (lambda: host.HostOptions(heap_bytes=0), "heap_bytes: must be above 0, not 0"),
    (lambda: host.HostOptions(warm_engines=-1), "warm_engines: must be 0 or more, not -1"),
    (lambda: host.HostOptions(cell_deadline_s=-1.0), "cell_deadline_s: must be above 0, not -1.0"),
    (lambda: host.HostOptions(token=5), "token: must be text or None, not int"),
    (lambda: host.HostOptions(engine_path=5), "engine_path: must be text or None, not int"),
    (lambda: host.HostOptions(walls_required=None), "walls_required: must be True or False, not NoneType"),
    (lambda: host.HostOptions(ssl_context="x"), "ssl_context: must be an SSLContext or None, not str"),
]


@pytest.mark.parametrize(("make", "said"), VALUES, ids=[said for _, said in VALUES])
def test_a_value_of_the_wrong_kind_is_refused_when_it_is_made(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make()

    assert str(refused.value) == said
    assert f"{refused.value.field}: {refused.value.rule}" == said


USES: list[tuple[Callable[[Any], object], str]] = [
    (lambda session: session.execute("text(1)"), "request: must be an ExecuteRequest, not str"),
    (lambda session: session.execute(request(), preempt=True), "preempt: must be an Event or None, not bool"),
    (lambda session: session.wait("1"), "request: must be a WaitRequest, not str"),
    (lambda session: session.wait(WaitRequest("1"), preempt=1), "preempt: must be an Event or None, not int"),
    (lambda session: session.terminate(1), "cell_id: must be text, not int"),
    (
        lambda session: session.terminate("1", max_output_tokens="1"),
        "max_output_tokens: must be a whole number or None, not str",
    ),
    (lambda session: session.completion(1), "cell_id: must be text, not int"),
    (lambda session: session.completion("1", on_output=1), "on_output: must be a function or None, not int"),
]


async def test_a_call_that_is_given_the_wrong_kind_is_refused_before_there_is_anything_to_await(
    provider: SessionProvider,
) -> None:
    session = await provider.create_session()
    said: list[str] = []
    for use, _ in USES:
        with pytest.raises(InvalidArgument) as refused:
            use(session)
        said.append(str(refused.value))
    await session.shutdown()

    assert said == [expected for _, expected in USES]


async def test_options_of_the_wrong_kind_are_refused_before_a_session_is_opened(provider: SessionProvider) -> None:
    wrong: Any = {"a": 1}
    with pytest.raises(InvalidArgument, match=r"^options: must be a SessionOptions or None, not dict$"):
        await provider.create_session(wrong)

    assert provider.statistics().generations == 0


OPENS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda untyped: untyped.open_provider(5), "url: must be text, not int"),
    (
        lambda untyped: untyped.open_provider("http://h:1", ssl_context=5),
        "ssl_context: must be an SSLContext or None, not int",
    ),
    (lambda untyped: untyped.open_provider("http://h:1", dial=5), "dial: must be a function or None, not int"),
    (lambda untyped: untyped.open_provider("http://h:1", report=5), "report: must be a function, not int"),
    (lambda untyped: host.open_host(5), "listen: must be text, not int"),
    (
        lambda untyped: host.open_host("grpc://127.0.0.1:0", options={}),
        "options: must be a HostOptions or None, not dict",
    ),
]


@pytest.mark.parametrize(("opens", "said"), OPENS, ids=[said for _, said in OPENS])
async def test_what_is_opened_with_the_wrong_kind_is_refused(opens: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        async with opens(actors.sessions):
            pytest.fail("it was opened")

    assert str(refused.value) == said


# --- where and when


async def test_a_provider_takes_what_a_host_listens_on(served: Serving) -> None:
    async with open_provider(served.url.replace("http://", "grpc://")) as provider:
        session = await provider.create_session()
        cell = await session.execute(request())
        assert isinstance(await cell.initial_response(), Result)
        await session.shutdown()


async def test_a_session_that_is_made_after_the_block_of_its_provider_hears_that_it_has_ended(served: Serving) -> None:
    async with open_provider(served.url) as provider:
        pass
    with pytest.raises(SessionClosed, match="the provider of code sessions is closed: its `open_provider` block"):
        await provider.create_session()


def test_a_context_of_tls_is_taken() -> None:
    assert HostOptions(ssl_context=ssl.create_default_context()).ssl_context is not None
