"""A code session: a cell calls a tool, its host is killed, and the session says so once and goes on."""

import os
import signal
from typing import Final

import trio

from actors.cli._code_host_process import CodeHost, CodeHostProcess
from actors.cli._demo._stage import Stage, restarted
from actors.sessions import (
    ExecuteRequest,
    InputText,
    Json,
    Notification,
    RuntimeResponse,
    Session,
    SessionReset,
    SessionsError,
    ToolCall,
    ToolDefinition,
    ToolName,
    open_provider,
)
from supervision import Child, ChildSpec

__all__ = ["loses_its_code_host"]

_WAIT_S: Final = 20.0
_ASK: Final = ToolDefinition(name="ask", tool_name=ToolName("ask"))
_FIRST: Final = "store('answer', await tools.ask('how many?')); text('stored ' + load('answer'))"
_INTERRUPTED: Final = "text('got ' + await tools.ask('and now?'))"
_LATER: Final = "text('now it holds ' + load('answer'))"


async def loses_its_code_host(stage: Stage) -> None:
    """The first call after the loss fails by itself, the next says what was lost, the one after it runs."""
    child = await stage.root.start_child(ChildSpec("code-host", CodeHost().run, shutdown_s=5.0))
    host = child.value
    stage.narrator.fact(f"host process {host.pid} runs JavaScript at {host.url}")
    with trio.fail_after(_WAIT_S):
        async with open_provider(host.url) as provider:
            session = await provider.create_session()
            tools = _Tools(host.pid)
            response = await _run(session, _FIRST, tools)
            told = _text(response)
            stage.check(
                "a cell calls a tool and keeps the answer", told == "stored 42", f"cell {response.cell_id}: {told}"
            )
            await _lose(stage, child, session, tools)
            await _go_on(stage, session, tools)
            await session.shutdown()
    child.request_stop()
    await child.wait_stopped()
    await stage.settle()


async def _lose(stage: Stage, child: Child[CodeHostProcess], session: Session, tools: "_Tools") -> None:
    tools.deadly = True
    async with stage.root.events() as events:
        try:
            ended = _text(await _run(session, _INTERRUPTED, tools))
        except SessionsError as error:
            ended = f"{type(error).__name__}: {error}"
        stage.narrator.fact(f"host process {tools.pid} is killed while a cell waits for a tool")
        stage.check("the call that was under way fails by itself", not ended.startswith("got"), ended)
        after = await restarted(child, events)
    stage.check("the supervisor brings the host back", after.pid != tools.pid, f"process {after.pid}")
    try:
        lost = _text(await _run(session, _LATER, tools))
        known = False
    except SessionReset as reset:
        cells, calls = reset.lost.running_cells, reset.lost.unanswered_tool_calls
        lost = f"lost: cell {', '.join(cells)}, tool call {', '.join(c.runtime_tool_call_id for c in calls)}"
        known = len(cells) == len(calls) == 1
    stage.check("the session says once what was lost, without running anything", known, lost)


async def _go_on(stage: Stage, session: Session, tools: "_Tools") -> None:
    response = await _run(session, _LATER, tools)
    told = f"cell {response.cell_id}: {_text(response)}"
    stage.check("it goes on in generation 2, empty", told == "cell g2:1: now it holds undefined", told)
    stage.check("no tool ran twice", tools.asked == ["how many?", "and now?"], f"asked: {', '.join(tools.asked)}")
    once = [tools.closed.count(cell_id) for cell_id in ("1", "2")] == [1, 1]
    stage.check("each lost cell was closed once", once, f"closed: {', '.join(tools.closed)}")


async def _run(session: Session, source: str, tools: "_Tools") -> RuntimeResponse:
    request = ExecuteRequest(tool_call_id="demo", source=source, enabled_tools=(_ASK,))
    return await (await session.execute(request, tools)).initial_response()


def _text(response: RuntimeResponse) -> str:
    return " ".join(item.text for item in response.content_items if isinstance(item, InputText))


class _Tools:
    """Answers, and kills the host under the second question."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.deadly = False
        self.asked: list[str] = []
        self.closed: list[str] = []

    async def call_tool(self, call: ToolCall, cancelled: trio.Event) -> Json:
        """Answer 42, or never."""
        self.asked.append(str(call.input))
        if self.deadly:
            os.kill(self.pid, signal.SIGKILL)
            await trio.sleep_forever()
        return 42

    async def notify(self, notification: Notification, cancelled: trio.Event) -> None:
        """Hear nothing: no script here says anything."""

    def cell_closed(self, cell_id: str) -> None:
        """Note it."""
        self.closed.append(cell_id)
