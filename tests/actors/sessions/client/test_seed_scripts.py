"""The seed's recovery cases word for word: JavaScript in our own host, refusals injected by a server before it."""

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from actors.sessions import (
    HostCallFailed,
    InputText,
    OutputModeChanged,
    OutputTruncation,
    Result,
    Session,
    SessionOptions,
    SessionProvider,
    SessionReset,
    Terminated,
    open_provider,
    status_text,
)
from actors.sessions.grpc import StatusCode
from actors.sessions.host import serve_host
from tests.actors.sessions.client.proxies import Proxy, open_proxy
from tests.actors.sessions.client.recording import ECHO, Recorder, printed, request, run, told
from tests.support.skips import needs_engine

LOST = "session was lost"
SERVER = SessionOptions(output_truncation=OutputTruncation.SERVER)


pytestmark = [
    pytest.mark.slow,
    needs_engine(),
]


@pytest.fixture
async def proxy(nursery: trio.Nursery) -> AsyncIterator[Proxy]:
    endpoint = await nursery.start(serve_host, "grpc://127.0.0.1:0")
    async with open_proxy(endpoint) as proxy:
        yield proxy


@pytest.fixture
async def provider(proxy: Proxy) -> AsyncIterator[SessionProvider]:
    async with open_provider(proxy.url) as provider:
        yield provider


async def test_a_second_session_goes_on_when_the_first_is_shut_down(proxy: Proxy, provider: SessionProvider) -> None:
    first, second = await provider.create_session(), await provider.create_session()
    await first.shutdown()
    response = await run(second, "text('still live')")

    assert told(response) == printed("g2:1", "still live")
    assert proxy.listener.accepts == 1


async def test_the_last_failed_session_releases_the_forwarded_connection(
    proxy: Proxy, provider: SessionProvider
) -> None:
    first, second = await provider.create_session(), await provider.create_session()
    await first.shutdown()
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed) as failed:
        await run(second, "text('never')")
    with trio.fail_after(20):
        while proxy.server.statistics().connections_open:
            await trio.testing.wait_all_tasks_blocked(0.001)

    assert str(failed.value) == "gRPC code-mode execution failed: " + status_text(StatusCode.NOT_FOUND, LOST)
    assert None not in (first, second, provider)


@pytest.mark.parametrize(
    ("code", "trailers"),
    [
        (StatusCode.INVALID_ARGUMENT, ()),
        (StatusCode.UNAVAILABLE, ()),
        (StatusCode.UNAVAILABLE, (("x-code-mode-route-lost", "true"),)),
    ],
)
async def test_a_refusal_that_is_no_loss_keeps_the_values(
    proxy: Proxy, provider: SessionProvider, code: StatusCode, trailers: tuple[tuple[str, str], ...]
) -> None:
    session = await provider.create_session()
    await run(session, "store('before', 1)")
    proxy.refuse_next(code, LOST, trailers)
    with pytest.raises(HostCallFailed) as failed:
        await run(session, "store('before', 2)")
    response = await run(session, "text(load('before'))")
    await session.shutdown()

    assert str(failed.value) == "gRPC code-mode execution failed: " + status_text(code, LOST)
    assert told(response) == printed("2", "1")
    assert session.output_truncation is OutputTruncation.CLIENT


async def test_a_lost_session_reopens_without_replaying(proxy: Proxy, provider: SessionProvider) -> None:
    session = await provider.create_session()
    await run(session, "store('before', 1)")
    before = proxy.counts.total()
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed) as failed:
        await run(session, "store('before', 2)")
    seen = proxy.counts.total() - before
    with pytest.raises(SessionReset, match="Stored values and running cells were lost"):
        await run(session, "store('before', 3)")
    response = await run(session, "text(load('before'))")
    await session.shutdown()

    assert str(failed.value) == "gRPC code-mode execution failed: " + status_text(StatusCode.NOT_FOUND, LOST)
    assert seen == 1
    assert told(response) == printed("g2:1", "undefined")
    assert session.output_truncation is OutputTruncation.CLIENT


async def lose(proxy: Proxy, session: Session) -> None:
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed, match=LOST):
        await run(session, "text('never')")
    assert proxy.counts["OpenSession"] == 1


async def test_server_to_server_keeps_the_mode_and_its_exact_numbers(proxy: Proxy, provider: SessionProvider) -> None:
    session = await provider.create_session(SERVER)
    await lose(proxy, session)
    with pytest.raises(SessionReset):
        await run(session, "text('never')")
    script = "throw 'begin:' + 'X'.repeat(65 * 1024 * 1024) + ':end'"
    response = await run(session, script, max_output_tokens=5, yield_time_ms=60_000)
    await session.shutdown()

    ellipsis = "\N{HORIZONTAL ELLIPSIS}"
    assert response == Result(
        cell_id="g2:1",
        error_text=f"begin:{'X' * 32_760}{ellipsis}{'X' * 32_763}:end",
        content_items=[
            InputText(
                "Warning: truncated output (original token count: 262144)\nTotal output lines: 2\n\n"
                f"Script err{ellipsis}262139 tokens truncated{ellipsis}"
            ),
            InputText(
                "[Code Mode session output limit reached: omitted 67108888 text bytes; "
                "discarded 0 text segments, 0 images, 0 audio items]"
            ),
            InputText("XXXXXX:end"),
        ],
    )
    assert session.output_truncation is OutputTruncation.SERVER


async def test_server_to_client_is_refused_before_anything_is_subscribed(
    proxy: Proxy, provider: SessionProvider
) -> None:
    session = await provider.create_session(SERVER)
    await lose(proxy, session)
    proxy.opens_with_empty_messages = True
    with pytest.raises(OutputModeChanged) as changed:
        await run(session, "text('never')")
    subscriptions = proxy.counts["SubscribeToToolCalls"]
    await session.shutdown()

    assert str(changed.value) == "gRPC code-mode host changed the session output truncation mode on reconnect"
    assert subscriptions == 1
    assert session.output_truncation is OutputTruncation.SERVER


async def test_client_to_server_keeps_two_mebibytes_untouched(proxy: Proxy, provider: SessionProvider) -> None:
    proxy.opens_with_empty_messages = True
    session = await provider.create_session(SERVER)
    assert session.output_truncation is OutputTruncation.CLIENT
    await lose(proxy, session)
    proxy.opens_with_empty_messages = False
    with pytest.raises(SessionReset):
        await run(session, "text('never')")
    response = await run(session, "text('x'.repeat(2 * 1024 * 1024))", max_output_tokens=5)
    await session.shutdown()

    assert told(response) == printed("g2:1", "x" * 2 * 1024 * 1024)
    assert session.output_truncation is OutputTruncation.CLIENT


async def test_a_script_with_everything_runs_through_client_and_host(provider: SessionProvider) -> None:
    from tests.actors.sessions.client.recording import ECHO

    recorder = Recorder()
    session = await provider.create_session()
    await run(session, "store('key', 'value')", recorder)
    source = "const o = await tools.echo({v: load('key')}); notify('notice'); text(o.v)"
    response = await run(session, source, recorder, enabled_tools=[ECHO])
    endless = await session.execute(request("for (;;);", yield_time_ms=1), recorder)
    await endless.initial_response()
    await session.terminate(endless.cell_id)
    await session.shutdown()

    assert told(response) == printed("2", "value")
    assert [call.input for call in recorder.calls] == [{"v": "value"}]
    assert [notification.text for notification in recorder.notifications] == ["notice"]
    assert recorder.closed == ["1", "2", "3"]


async def test_stored_values_kept_in_a_journal_are_put_back_and_clearly_marked(
    proxy: Proxy, provider: SessionProvider
) -> None:
    heard = Recorder()
    session = await provider.create_session(SessionOptions(restore_stored_values=True))
    await run(session, "store('kept', {deep: [1, 'x', null]}); store(7, 'seven'); text(store.length)", heard)
    await run(session, "store('kept', {deep: 2}); notify('heard'); throw 'stored all the same'", heard)
    cell = await session.execute(request("store('never', 1); await new Promise(() => {})", yield_time_ms=1))
    await cell.initial_response()
    await session.terminate(cell.cell_id)
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed):
        await run(session, "store('kept', 'never')")
    with pytest.raises(SessionReset) as reset:
        await run(session, "store('kept', 'never')")
    response = await run(session, "text([load('kept'), load('7'), load('never')])")
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    with pytest.raises(HostCallFailed):
        await run(session, "1")
    with pytest.raises(SessionReset) as again:
        await run(session, "1")
    await session.shutdown()

    assert [one.text for one in heard.notifications] == ["heard"]
    assert reset.value.restored_keys == ("7", "kept")
    assert reset.value.lost.stored_keys == ("7", "kept")
    assert str(reset.value).endswith("Of the stored values, the client's journal has put back: '7', 'kept'.")
    assert told(response) == printed("g2:2", '[{"deep":2},"seven",null]')
    assert {*again.value.restored_keys} == {"7", "kept"}


async def test_a_journal_changes_nothing_that_a_script_sees(proxy: Proxy, provider: SessionProvider) -> None:
    plain = await provider.create_session()
    kept = await provider.create_session(SessionOptions(restore_stored_values=True))
    scripts = [
        "try { store(Symbol(), 1) } catch (e) { text(e) }",
        "try { store('a', undefined) } catch (e) { text(e) }",
        "try { store('a', () => 1) } catch (e) { text(e) }",
        "try { store({toString() { throw 'no' }}, 1) } catch (e) { text(e) }",
        "let n = 0; store({toString: () => { n++; return 'k' }}, {toJSON: () => ++n}); text([n, load('k')])",
        "store('a', 1); text([typeof store, store('b', 2), Object.keys(globalThis).includes('store')])",
        "throw new Error('where')",
        "\nthrow new Error('where')",
        "text([store.length, store.name])",
        "#! the first line\ntext(1);\nthrow new Error('where')",
        "#! the only line",
    ]
    for script in scripts[:6] + scripts[7:]:
        one, other = await run(plain, script), await run(kept, script)
        assert told(one)[1:] == told(other)[1:], script


GETTER = """
let reads = 0;
const value = { get image_url() {
    if (reads++ === 0) { try { image(value) } catch {} throw new Error('first') }
    notify('spinning'); const until = Date.now() + 60000; while (Date.now() < until);
} };
try { image(value) } catch { text('caught') } finally { text('finally') } text('later');
"""


async def test_a_termination_inside_an_image_getter_is_answered_at_once_and_hurts_no_other_session(
    proxy: Proxy, provider: SessionProvider
) -> None:
    session, other = await provider.create_session(), await provider.create_session()
    await run(other, "store('kept', 1)")
    heard = Recorder()
    cell = await session.execute(request(GETTER, yield_time_ms=60_000), heard)
    await heard.notified.wait()
    with trio.fail_after(5):
        terminated = await session.terminate(cell.cell_id)
    first = await cell.initial_response()

    assert terminated.response == Terminated(cell_id="1")
    assert first == Terminated(cell_id="1")
    assert told(await run(other, "text(load('kept'))")) == printed("g2:2", "1")
    assert told(await run(session, "text('works')")) == printed("2", "works")


async def test_a_termination_inside_a_getter_cannot_be_caught(proxy: Proxy, provider: SessionProvider) -> None:
    session = await provider.create_session()
    heard = Recorder()
    loop = "for (;;) { try { text(value) } catch { text('later') } }"
    source = f"const value = {{ get a() {{ notify('spinning'); for (;;); }} }}; {loop}"
    cell = await session.execute(request(source, yield_time_ms=60_000), heard)
    await heard.notified.wait()
    await session.terminate(cell.cell_id)

    assert (await cell.initial_response()).content_items == ()


@pytest.mark.parametrize("ending", ["", "throw 'failed'"])
async def test_a_duration_leaves_out_how_long_the_answer_lay_unread(
    proxy: Proxy, provider: SessionProvider, ending: str
) -> None:
    session = await provider.create_session()
    began_s = trio.current_time()
    computing = "const until = Date.now() + 150; while (Date.now() < until);"
    source = f"{computing} await new Promise(r => setTimeout(r, 150)); {ending}"
    cell = await session.execute(request(source))
    await trio.sleep(1.0)
    response = await cell.initial_response()
    elapsed_s = trio.current_time() - began_s

    assert response.host_duration_ns >= 250_000_000
    assert response.host_duration_ns / 1e9 <= elapsed_s - 0.3


async def test_two_concurrent_cells_run_after_a_reset_and_each_calls_its_tool_once(
    proxy: Proxy, provider: SessionProvider
) -> None:
    session = await provider.create_session()
    heard = Recorder()
    await run(session, "store('kept', 1); text(await tools.echo('one'))", heard, enabled_tools=[ECHO])
    proxy.refuse_next(StatusCode.NOT_FOUND, LOST)
    for _ in range(2):
        with pytest.raises((HostCallFailed, SessionReset)):
            await run(session, "tools.echo('never')", heard, enabled_tools=[ECHO])
    source = "text([await tools.echo('two'), load('kept')])"
    cells = [await session.execute(request(source, enabled_tools=[ECHO]), heard) for _ in range(2)]
    answers = [told(await cell.initial_response()) for cell in cells]

    assert answers == [printed("g2:1", '["two",null]'), printed("g2:2", '["two",null]')]
    assert [call.input for call in heard.calls] == ["one", "two", "two"]
