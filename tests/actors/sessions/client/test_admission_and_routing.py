"""How a session is opened, tried again and routed; what is sent beside each call."""

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    HostTimedOut,
    HostUnavailable,
    OutputTruncation,
    ProtocolViolation,
    Session,
    SessionOptions,
    SessionProvider,
    SessionReset,
    SessionsError,
    UnexpectedOutputMode,
    WaitRequest,
    open_provider,
    status_text,
)
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Send, ServerCall, StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Host, Serving, serving
from tests.actors.sessions.client.recording import ECHO, Recorder, printed, request, run, told

ROUTE = "x-code-mode-route"


@pytest.mark.parametrize("code", [StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED])
async def test_an_opening_refused_once_for_now_is_tried_again(
    host: Host, provider: SessionProvider, code: StatusCode
) -> None:
    host.refuse_next("OpenSession", code, "later")
    session = await provider.create_session()
    response = await run(session, "still_live")

    assert host.count("OpenSession") == 2
    assert told(response) == printed("1", "still live")


async def test_an_opening_is_tried_five_times_and_no_more(host: Host, provider: SessionProvider) -> None:
    host.refuse_next("OpenSession", StatusCode.UNAVAILABLE, "never", times=99)
    with pytest.raises(HostUnavailable) as failed:
        await provider.create_session()

    assert host.count("OpenSession") == 5
    refusal = status_text(StatusCode.UNAVAILABLE, "never")
    assert str(failed.value) == f"gRPC code-mode session opening failed: {refusal}"
    assert provider.statistics().sessions_live == 0


@pytest.mark.parametrize("code", [StatusCode.INVALID_ARGUMENT, StatusCode.UNKNOWN])
async def test_an_opening_refused_for_good_is_tried_once(
    host: Host, provider: SessionProvider, code: StatusCode
) -> None:
    host.refuse_next("OpenSession", code, "no")
    with pytest.raises(HostCallFailed):
        await provider.create_session()

    assert host.count("OpenSession") == 1


async def test_a_connection_reset_while_opening_is_tried_again(host: Host) -> None:
    network = MemoryNetwork()
    dialled = 0

    async def dial() -> trio.abc.Stream:
        nonlocal dialled
        dialled += 1
        stream = await network.dial()
        if dialled == 1:
            await network.pairs[0][1].aclose()
        return stream

    async with serving(host, listener=network.listener) as served, open_provider(served.url, dial=dial) as provider:
        response = await run(await provider.create_session(), "still_live")

    assert told(response) == printed("1", "still live")
    assert dialled == 2


async def test_a_stalled_connection_times_out_and_can_be_tried_again(
    host: Host, autojump_clock: trio.testing.MockClock
) -> None:
    network = MemoryNetwork()
    stalls = [True]

    async def dial() -> trio.abc.Stream:
        if stalls[0]:
            await trio.sleep_forever()
        return await network.dial()

    async with serving(host, listener=network.listener) as served, open_provider(served.url, dial=dial) as provider:
        began_s = trio.current_time()
        with pytest.raises(HostTimedOut) as late:
            await provider.create_session()
        took_s = trio.current_time() - began_s
        stalls[0] = False
        response = await run(await provider.create_session(), "still_live")

    assert str(late.value) == "gRPC code-mode host timed out waiting for transport connection response"
    assert took_s == pytest.approx(60)
    assert told(response) == printed("g2:1", "still live")


async def test_an_opening_cancelled_midway_leaves_no_session(host: Host, provider: SessionProvider) -> None:
    arrived = trio.Event()

    async def stall(call: ServerCall, asked: wire.SubscribeToToolCallsRequest, send: Send) -> None:
        arrived.set()
        await trio.sleep_forever()

    host.subscribe_hook = stall
    async with trio.open_nursery() as nursery:
        nursery.start_soon(provider.create_session)
        await arrived.wait()
        nursery.cancel_scope.cancel()
    host.subscribe_hook = None
    with trio.fail_after(5):
        while host.sessions:
            await trio.testing.wait_all_tasks_blocked(0.001)

    assert provider.statistics().sessions_live == 0


async def test_a_refused_subscription_closes_the_new_session(host: Host, provider: SessionProvider) -> None:
    host.refuse_next("SubscribeToToolCalls", StatusCode.RESOURCE_EXHAUSTED, "too many")
    with pytest.raises(HostUnavailable, match=r"^gRPC code-mode tool subscription failed: .*too many"):
        await provider.create_session()

    assert host.count("CloseSession") == 1
    assert host.sessions == {}


async def test_the_route_of_a_refused_admission_is_discarded(host: Host, provider: SessionProvider) -> None:
    host.routes = ["first", "second"]
    host.refuse_next("OpenSession", StatusCode.UNAVAILABLE, "moving")
    session = await provider.create_session()
    await run(session, "still_live")

    openings = [metadata for name, metadata in host.requests if name == "OpenSession"]
    others = {metadata.get(ROUTE) for name, metadata in host.requests if name != "OpenSession"}
    assert [ROUTE in metadata for metadata in openings] == [False, False]
    assert others == {"second"}


async def test_every_call_of_a_session_carries_its_own_route(host: Host, provider: SessionProvider) -> None:
    host.routes = ["one", "two"]
    sessions = [await provider.create_session(), await provider.create_session()]
    preempt = trio.Event()
    preempt.set()
    for session in sessions:
        await run(session, "call_echo", Recorder(), enabled_tools=[ECHO])
        cell = await session.execute(request("stay", yield_time_ms=60_000), preempt=preempt)
        stayed = await cell.initial_response()
        await session.wait(WaitRequest(stayed.cell_id, 1))
        with trio.move_on_after(0.02):
            await session.wait(WaitRequest(stayed.cell_id, 60_000))
        await session.terminate(stayed.cell_id)
        await session.shutdown()

    routed = [(name, metadata.get(ROUTE)) for name, metadata in host.requests if name != "OpenSession"]
    methods = {
        "SubscribeToToolCalls", "Execute", "CompleteToolCall", "Wait", "CancelWait", "Terminate", "YieldObservation",
        "CloseSession",
    }  # fmt: skip
    assert {name for name, route in routed if route == "one"} == methods
    assert {name for name, route in routed if route == "two"} == methods
    assert {route for _, route in routed} == {"one", "two"}


async def test_a_route_that_is_too_long_fails_the_opening(host: Host, provider: SessionProvider) -> None:
    host.routes = ["x" * 257]
    with pytest.raises(HostCallFailed, match="session routing token is too long") as refused:
        await provider.create_session()

    assert refused.value.code is StatusCode.INVALID_ARGUMENT
    assert host.count("OpenSession") == 1


async def routed_pair(host: Host, provider: SessionProvider) -> tuple[Session, Session]:
    host.routes = ["one", "two"]
    first, second = await provider.create_session(), await provider.create_session()
    await run(first, "remember")
    await run(second, "remember")
    return first, second


async def test_a_routed_session_survives_plain_unavailability(host: Host, provider: SessionProvider) -> None:
    first, _ = await routed_pair(host, provider)
    host.refuse_next("Execute", StatusCode.UNAVAILABLE, "busy")
    with pytest.raises(HostUnavailable):
        await run(first, "overwrite")
    response = await run(first, "recall")

    assert told(response) == printed("2", "persisted")
    assert "overwrite" not in host.seen_executions
    assert host.count("OpenSession") == 2


async def test_a_lost_route_costs_its_own_session_only(host: Host, provider: SessionProvider) -> None:
    first, second = await routed_pair(host, provider)
    host.refuse_next("Execute", StatusCode.UNAVAILABLE, "gone", trailers=(("x-code-mode-route-lost", "true"),))
    with pytest.raises(HostUnavailable):
        await run(first, "overwrite")
    with pytest.raises(SessionReset):
        await run(first, "overwrite")
    lost = await run(first, "recall")
    kept = await run(second, "recall")

    assert told(lost) == printed("g3:1", "undefined")
    assert told(kept) == printed("g2:2", "persisted")
    assert host.count("OpenSession") == 3


async def test_a_reopening_that_fails_is_tried_by_the_next_call(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    host.refuse_next("Execute", StatusCode.NOT_FOUND, "gone")
    with pytest.raises(HostCallFailed):
        await run(session, "recall")
    host.refuse_next("OpenSession", StatusCode.INVALID_ARGUMENT, "not now")
    with pytest.raises(HostCallFailed, match="not now"):
        await run(session, "recall")
    with pytest.raises(SessionReset):
        await run(session, "recall")
    response = await run(session, "recall")

    assert told(response) == printed("g3:1", "undefined")


async def test_shutting_down_ends_a_reopening(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    host.refuse_next("Execute", StatusCode.NOT_FOUND, "gone")
    with pytest.raises(HostCallFailed):
        await run(session, "recall")
    arrived = trio.Event()

    async def stall(call: ServerCall, asked: wire.SubscribeToToolCallsRequest, send: Send) -> None:
        arrived.set()
        await trio.sleep_forever()

    host.subscribe_hook = stall
    errors: list[str] = []

    async def reopen() -> None:
        with pytest.raises(SessionsError) as failed:
            await run(session, "recall")
        errors.append(str(failed.value))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reopen)
        await arrived.wait()
        await session.shutdown()

    assert errors == ["code mode session is shutting down"]
    assert host.count("CloseSession") == 0


async def test_a_host_that_cuts_unasked_is_refused(host: Host, provider: SessionProvider) -> None:
    host.first_event = wire.SessionEvent(opened=wire.SessionOpened(session_id="s", output_truncation=2))
    with pytest.raises(UnexpectedOutputMode, match="selected server output truncation, requested client"):
        await provider.create_session()

    assert host.count("SubscribeToToolCalls") == 0


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (wire.SessionEvent(heartbeat=wire.Heartbeat()), "gRPC code-mode session lease omitted its opening event"),
        (wire.SessionEvent(opened=wire.SessionOpened()), "gRPC code-mode host returned an empty session ID"),
        (
            wire.SessionEvent(opened=wire.SessionOpened(session_id="s" * 257)),
            "gRPC code-mode host returned session ID exceeding 256 bytes",
        ),
        (
            wire.SessionEvent(opened=wire.SessionOpened(session_id="s", output_truncation=3)),
            "gRPC code-mode host returned an unknown output truncation mode",
        ),
    ],
)
async def test_a_first_event_out_of_order_fails_the_opening(
    host: Host, provider: SessionProvider, first: wire.SessionEvent, text: str
) -> None:
    host.first_event = first
    options = SessionOptions(output_truncation=OutputTruncation.SERVER)
    with pytest.raises(ProtocolViolation) as violation:
        await provider.create_session(options)

    assert str(violation.value) == text
    assert host.count("OpenSession") == 1


async def test_the_callers_trace_goes_with_what_begins_work(host: Host, served: Serving) -> None:
    async with open_provider(served.url, traceparent=lambda: "00-ab-cd-01") as provider:
        session = await provider.create_session()
        await run(session, "still_live")
        await session.shutdown()

    traced = [name for name, metadata in host.requests if metadata.get("traceparent") == "00-ab-cd-01"]
    assert traced == ["OpenSession", "SubscribeToToolCalls", "Execute"]
