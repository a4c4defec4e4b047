"""Session recovery as the seed has it: rejections injected at a real gRPC server, over real sockets.

The 120 s of silence pass on trio's virtual clock, over the in-memory network.
"""

import gc

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    OutputModeChanged,
    OutputTruncation,
    Session,
    SessionOptions,
    SessionProvider,
    SessionReset,
    SessionsError,
    open_provider,
    status_text,
)
from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import StatusCode
from actors.sessions.grpc.testing import MemoryNetwork
from tests.actors.sessions.client.hosts import Cell, Host, Serving, serving
from tests.actors.sessions.client.recording import Recorder, printed, run, texts, told

LOST = "session was lost"
NOTICE = (
    "The exec runtime was replaced. Stored values and running cells were lost. Prior external tool operations may have "
    "completed; inspect their results before retrying. You may continue with a fresh exec call."
)


async def test_a_quiet_session_keeps_its_values_and_its_connection(
    host: Host, autojump_clock: trio.testing.MockClock
) -> None:
    network = MemoryNetwork()
    async with (
        serving(host, listener=network.listener) as served,
        open_provider(served.url, dial=network.dial) as provider,
    ):
        session = await provider.create_session()
        await run(session, "remember")
        before = len(host.requests)
        await trio.sleep(120)
        silent = len(host.requests) == before
        response = await run(session, "recall")

    assert silent
    assert told(response) == printed("2", "persisted")
    assert served.listener.accepts == 1


async def test_one_session_ending_leaves_the_others_on_the_shared_connection(
    served: Serving, provider: SessionProvider
) -> None:
    first, second = await provider.create_session(), await provider.create_session()
    await first.shutdown()
    response = await run(second, "still_live")

    assert told(response) == printed("g2:1", "still live")
    assert served.listener.accepts == 1


async def test_the_last_failed_session_releases_the_connection(
    host: Host, served: Serving, provider: SessionProvider
) -> None:
    first, second = await provider.create_session(), await provider.create_session()
    await first.shutdown()
    host.refuse_next("Execute", StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed) as failed:
        await run(second, "still_live")
    with trio.fail_after(20):
        while served.server.statistics().connections_open:
            await trio.testing.wait_all_tasks_blocked(0.001)

    assert str(failed.value) == "gRPC code-mode execution failed: " + status_text(StatusCode.NOT_FOUND, LOST)
    assert served.listener.accepts == 1
    assert None not in (first, second, provider)


async def test_a_missing_session_reopens_without_replaying(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "remember")
    seen = host.count("Execute")
    host.refuse_next("Execute", StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed) as failed:
        await run(session, "overwrite")
    requests_for_it = host.count("Execute") - seen
    with pytest.raises(SessionReset) as reset:
        await run(session, "overwrite")
    response = await run(session, "recall")
    await session.shutdown()

    assert str(failed.value).endswith(status_text(StatusCode.NOT_FOUND, LOST))
    assert requests_for_it == 1
    assert "Stored values and running cells were lost" in str(reset.value)
    assert str(reset.value) == NOTICE
    assert told(response) == printed("g2:1", "undefined")
    assert "overwrite" not in host.seen_executions
    assert session.output_truncation is OutputTruncation.CLIENT


@pytest.mark.parametrize(
    ("code", "trailers"),
    [
        (StatusCode.INVALID_ARGUMENT, ()),
        (StatusCode.UNAVAILABLE, ()),
        (StatusCode.UNAVAILABLE, (("x-code-mode-route-lost", "true"),)),
        (StatusCode.UNKNOWN, ()),
        (StatusCode.FAILED_PRECONDITION, ()),
        (StatusCode.RESOURCE_EXHAUSTED, ()),
    ],
)
async def test_any_other_rejection_keeps_the_session(
    host: Host, provider: SessionProvider, code: StatusCode, trailers: tuple[tuple[str, str], ...]
) -> None:
    session = await provider.create_session()
    await run(session, "remember")
    host.refuse_next("Execute", code, LOST, trailers=trailers)
    with pytest.raises(HostCallFailed) as failed:
        await run(session, "overwrite")
    response = await run(session, "recall")
    await session.shutdown()

    assert str(failed.value) == "gRPC code-mode execution failed: " + status_text(code, LOST)
    assert told(response) == printed("2", "persisted")
    assert host.count("OpenSession") == 1
    assert session.output_truncation is OutputTruncation.CLIENT


@pytest.mark.parametrize(("knows_modes", "mode"), [(True, OutputTruncation.SERVER), (False, OutputTruncation.CLIENT)])
async def test_the_first_answer_decides_the_output_mode(
    host: Host, provider: SessionProvider, knows_modes: bool, mode: OutputTruncation
) -> None:
    host.knows_modes = knows_modes
    session = await provider.create_session(SessionOptions(output_truncation=OutputTruncation.SERVER))

    assert session.output_truncation is mode


async def lose(host: Host, session: Session) -> None:
    host.refuse_next("Execute", StatusCode.NOT_FOUND, LOST)
    openings = host.count("OpenSession")
    with pytest.raises(HostCallFailed, match=LOST):
        await run(session, "remember")
    assert host.count("OpenSession") == openings


async def test_a_server_mode_session_stays_one_on_a_server_mode_replacement(
    host: Host, provider: SessionProvider
) -> None:
    session = await provider.create_session(SessionOptions(output_truncation=OutputTruncation.SERVER))
    await lose(host, session)
    with pytest.raises(SessionReset):
        await run(session, "recall")
    response = await run(session, "throw", max_output_tokens=5, yield_time_ms=60_000)
    await session.shutdown()

    assert (response.cell_id, texts(response), response.error_text) == ("g2:1", ["before"], "broken")  # type: ignore[union-attr]
    assert host.opened_modes == [2, 2]
    assert session.output_truncation is OutputTruncation.SERVER


async def test_a_replacement_that_changes_the_output_mode_is_refused(host: Host, provider: SessionProvider) -> None:
    session = await provider.create_session(SessionOptions(output_truncation=OutputTruncation.SERVER))
    await lose(host, session)
    host.knows_modes = False
    with pytest.raises(OutputModeChanged) as changed:
        await run(session, "recall")
    subscriptions = host.count("SubscribeToToolCalls")
    await session.shutdown()

    assert str(changed.value) == "gRPC code-mode host changed the session output truncation mode on reconnect"
    assert subscriptions == 1
    assert session.output_truncation is OutputTruncation.SERVER


async def test_a_session_pinned_to_client_mode_never_asks_for_another(host: Host, provider: SessionProvider) -> None:
    @host.script
    async def two_mebibytes(cell: Cell) -> None:
        cell.text("x" * 2 * 1024 * 1024)

    host.knows_modes = False
    session = await provider.create_session(SessionOptions(output_truncation=OutputTruncation.SERVER))
    await lose(host, session)
    host.knows_modes = True
    with pytest.raises(SessionReset):
        await run(session, "recall")
    response = await run(session, "two_mebibytes", max_output_tokens=5)
    await session.shutdown()

    assert told(response) == printed("g2:1", "x" * 2 * 1024 * 1024)
    assert host.opened_modes == [2, 0]
    assert session.output_truncation is OutputTruncation.CLIENT


async def test_a_session_without_options_opens_with_an_empty_message(host: Host, provider: SessionProvider) -> None:
    await provider.create_session()

    assert wire.OpenSessionRequest(output_truncation=host.opened_modes[0]).SerializeToString() == b""


async def test_dead_sessions_are_held_by_nobody_but_their_holder(host: Host, provider: SessionProvider) -> None:
    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "recall", recorder)
    host.refuse_next("Execute", StatusCode.NOT_FOUND, LOST)
    with pytest.raises(SessionsError):
        await run(session, "recall")
    await trio.testing.wait_all_tasks_blocked(0.01)
    gc.collect()

    assert provider.statistics().sessions_live == 0
    assert recorder.closed == ["1"]
