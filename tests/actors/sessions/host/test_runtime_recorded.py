"""Scripts recorded on a deployed host, run here: every outcome is the same but for the differences that are listed."""

import json
from typing import Any

import pytest
import trio

from actors.sessions._wire import code_mode_pb2 as wire
from actors.sessions.grpc import Channel
from tests.actors.sessions.host.golden import expected_items, rows, spelled
from tests.actors.sessions.host.peer import Peer, Seen, open_peer, tool
from tests.support.skips import needs_recording

RECORDED = rows("codemode-runtime.jsonl")
TOGETHER = 3
SEEN_IN_PARTS = "yield-double-sync"
KINDS = {wire.TOOL_KIND_FUNCTION: "function", wire.TOOL_KIND_FREEFORM: "freeform"}
DIFFERENT = {
    "store-raw-value-key": "a guard for the insides of one JSON library; here it is an ordinary key",
    "store-number-key-guard": "as store-raw-value-key",
    "yield-limit": "with a limit of 0 ms it hangs on the moment of the wait; test_host has it with a certain order",
}


def definition(one: Any) -> wire.ToolDefinition:
    if isinstance(one, str):
        return tool(one)
    name = wire.ToolName(name=one["tool_name"])
    if one.get("namespace") is not None:
        name.namespace = one["namespace"]
    kind = wire.TOOL_KIND_FREEFORM if one.get("kind") == "freeform" else wire.TOOL_KIND_FUNCTION
    return tool(one["name"], tool_name=name, kind=kind, description=one.get("description", "d"))


async def answer(call: wire.ToolCall) -> Any:
    match call.tool_name.name:
        case "echo":
            return call.input_json if call.HasField("input_json") else "no-input"
        case "fail":
            return RuntimeError("tool failed")
        case "failempty":
            return RuntimeError("")
        case "hang" | "badjson":
            return None
        case "slow":
            await trio.sleep(0.05)
            return "slow"
        case "deep":
            return b"[" * 100 + b"]" * 100
        case "raw":
            return b'{"a":1.0,"b":12345678901234567890,"a":2,"__proto__":{"x":1}}'
        case name:
            return {"tool": name, "ns": call.tool_name.namespace if call.tool_name.HasField("namespace") else None}


async def differences(channel: Channel, row: dict[str, Any]) -> list[str]:
    found: list[str] = []

    def compare(what: str, got: Any, expected: Any) -> None:
        if got != expected and what not in row.get("loose", ()):
            found.append(f"{row['id']}: {what}: {str(got)[:300]} is not {str(expected)[:300]}")

    def compare_outcome(seen: Seen, recorded: dict[str, Any]) -> None:
        compare("outcome", seen.outcome, recorded["outcome"])
        compare("items", seen.items, expected_items(recorded["items"]))
        expected = spelled(recorded.get("error"))
        if row.get("v8_wording") and seen.error is not None and expected is not None:
            compare("error", seen.error.split("\n")[0], expected.split("\n")[0])
        else:
            compare("error", seen.error, expected)

    async with trio.open_nursery() as nursery:
        limits = row.get("limits")
        more = {} if limits is None else {"cell_execution_limits": wire.SessionCellExecutionLimits(**limits)}
        peer: Peer = await open_peer(channel, nursery, **more)
        tools = [definition(one) for one in row.get("tools", ())]
        if tools:
            await nursery.start(peer.answer_tools, answer)
        if "setup" in row:
            await peer.run(row["setup"])
        seen = await peer.run(row["script"], enabled_tools=tools, yield_time_ms=row.get("yield_time_ms", 5000))
        compare_outcome(seen, row)
        for step in row.get("then", ()):
            recorded = step.get("terminate") or step
            later = peer.terminate(seen.cell_id) if "terminate" in step else peer.wait(seen.cell_id, 3000)
            state, after = await later
            if row["id"] == SEEN_IN_PARTS and after.outcome == "yielded":
                # Its second yield comes right behind the first: a quick wait still sees it.
                earlier, (_, after) = after.items, await peer.wait(seen.cell_id, 3000)
                after.items[:0] = earlier
            compare("state", state, recorded.get("state", "live_cell"))
            compare_outcome(after, recorded)
        calls = [
            {
                "id": call.runtime_tool_call_id,
                "name": call.tool_name.name,
                "kind": KINDS[call.tool_kind],
                "input": call.input_json.decode() if call.HasField("input_json") else None,
                "sequence": call.sequence,
            }
            for call in peer.calls
        ]
        expected = [{key: call.get(key) for key in calls[0]} for call in row.get("tool_calls", ())] if calls else []
        compare("tool_calls", calls, expected or row.get("tool_calls", []))
        if row["outcome"] == "completed":
            await peer.until_closed(1 + ("setup" in row))
        notified = [{"call_id": one.call_id, "text": one.text} for one in peer.notifications]
        compare("notifications", notified, row.get("notifications", []))
        for key, value in row.get("stored_after", {}).items():
            loaded = await peer.run(f"text(JSON.stringify(load({json.dumps(key)}))??'<undefined>')")
            got = loaded.texts[0]
            compare("stored_after", got if got == "<undefined>" else json.loads(got), value)
        await peer.close()
        nursery.cancel_scope.cancel()
    return found


@pytest.mark.slow
@needs_recording("codemode-runtime.jsonl")
async def test_recorded_scripts_end_as_they_did(channel: Channel) -> None:
    found: list[str] = []
    waiting = iter(RECORDED)

    async def work() -> None:
        for row in waiting:
            if row.get("abridged"):
                continue
            with trio.move_on_after(20) as scope:
                found.extend(await differences(channel, row))
            if scope.cancelled_caught:
                found.append(f"{row['id']}: no answer")

    async with trio.open_nursery() as nursery:
        for _ in range(TOGETHER):
            nursery.start_soon(work)

    unexpected = [line for line in found if line.split(":")[0] not in DIFFERENT]
    assert not unexpected, "\n".join(unexpected)
