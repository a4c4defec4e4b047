"""The recorded exchanges with the other implementation, replayed against ours.

Compared as the recording says: notifications as a set with their positions, chunk borders not fixed. What differs on
purpose is listed in ``DELIBERATE`` with its reason; anything else that differs fails.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.executor import open_executor
from actors.executor.testing import memory_channel_pair
from actors.protocol import METHODS
from tests.actors.executor.client import Client
from tests.support.settling import until
from tests.support.skips import RECORDINGS, needs_recording

GOLDEN = RECORDINGS / "exec-rpc.jsonl"
OURS = ("initialize", "process/", "environment/", "fs/", "capabilityRoots/")
NOT_OFFERED = ("capabilities/discoverV2", "environmentConfig/read")
"""What the other product keeps in a home of its own: an executor of ours has none, and its capabilities say so."""

SKILL = "---\nname: s1\ndescription: a skill\n---\nbody\n"

DELIBERATE = {
    ("process_stdin", 14): "`eof` in the write before closed standard input; there it is unknown and ignored",
    ("process_stdin", 16): "and `cat` has ended by then",
    ("process_stdin", 17): "and its input was closed by the client, not lost",
    ("head_of_line", 2): "requests do not wait for each other here",
    ("fs_copy_remove", 17): "a file copied onto itself keeps what it holds",
    ("fs_handles", 25): "a file that is opened to be replaced is as it was until `fs/close`",
    ("fs_handles", 32): "and while blocks are written",
    ("fs_handles", 35): "so a new one is not there yet",
    ("fs_handles", 39): "and one behind a link keeps what it holds",
}
"""By scenario and step: why our answer is another one."""


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in GOLDEN.read_text().splitlines()[1:]] if GOLDEN.exists() else []


def scenarios() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for step in lines():
        if "ws" in step["transports"]:
            grouped.setdefault(step["scenario"], []).append(step)
    for name, steps in grouped.items():
        methods = {step["request"]["method"] for step in steps if "request" in step}
        if any(method.startswith(OURS) for method in methods):
            yield name, steps


SCENARIOS = dict(scenarios())


@needs_recording(GOLDEN.name)
def test_there_are_scenarios_to_replay() -> None:
    assert len(SCENARIOS) > 15


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_recorded_exchange_is_answered_the_same(name: str, tmp_path: Path) -> None:
    make_fixture(tmp_path)
    with trio.fail_after(60):
        async with open_executor() as executor, trio.open_nursery() as nursery:
            replay = Replay(name, tmp_path, executor, nursery)
            await replay.connect(greet=name not in {"lifecycle_order", "initialize_params", "initialized_first"})
            for step in SCENARIOS[name]:
                await replay.take(step)
            nursery.cancel_scope.cancel()

    assert replay.differences == {}
    assert replay.expected_differences == {step for scenario, step in DELIBERATE if scenario == name}


def make_fixture(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    (root / "d" / "e").mkdir()
    (root / "a.txt").write_text("hello\n")
    (root / ".hid").write_text("h")
    (root / "sp ace \u00e9.txt").write_text("s")
    (root / "ten.bin").write_bytes(bytes(range(10)))
    for name, target in {"ln": "a.txt", "dl": "d", "dangling": "nope", "loop": "loop"}.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    for name, text in {".codex-plugin/plugin.json": '{"name":"myplug"}', "skills/s1/SKILL.md": SKILL}.items():
        (root / "plug" / name).parent.mkdir(parents=True)
        (root / "plug" / name).write_text(text)


class Replay:
    def __init__(self, name: str, root: Path, executor: Any, nursery: trio.Nursery) -> None:
        self.name, self.root, self.executor, self.nursery = name, root, executor, nursery
        self.differences: dict[int, Any] = {}
        self.expected_differences: set[int] = set()
        self.known: dict[str, str] = {}
        self.client: Client
        self.first: Client

    async def connect(self, *, greet: bool) -> None:
        ours, theirs = memory_channel_pair(buffered=1000)
        self.nursery.start_soon(self.executor.serve_channel, theirs)
        self.client = Client(ours)
        self.nursery.start_soon(self.client.read)
        if greet:
            self.known["SESSION"] = await self.client.greet()

    async def take(self, step: dict[str, Any]) -> None:
        if "request" in step:
            await self.ask(step)
        elif "raw" in step:
            await self.say(step)
        elif "notify" in step:
            await self.client.notify(step["notify"]["method"])
        elif "reconnect" in step:
            self.client.wire.cut()
            await self.client.ended.wait()
            await trio.testing.wait_all_tasks_blocked()
            await self.connect(greet=False)
        elif "second_connection" in step:
            self.first = self.client
            await self.connect(greet=False)
        elif "back_to_first_connection" in step:
            self.client = self.first
        elif "request_pair" in step:
            await self.pair(step)

        elif "disk" in step:
            self.compare_disk(step)
        elif "external" in step:
            self.do(step["external"])

    def do(self, what: str) -> None:
        verb, *_, name = what.split()
        where = self.root / name
        if verb == "mkdir":
            where.mkdir(parents=True)
        elif verb == "create":
            where.write_text("")
        else:
            where.unlink()

    def compare_disk(self, step: dict[str, Any]) -> None:
        for name, expected in step["disk"].items():
            found = self.seen(self.root / name)
            if found != expected:
                self.note(step, {"disk": name, "expected": expected, "ours": found})

    def seen(self, path: Path) -> Any:
        if path.is_symlink():
            return f"symlink {os.readlink(path)}"
        if path.is_dir():
            # What is being written lies beside its place, under a name of ours.
            return sorted(name for name in os.listdir(path) if not name.startswith(".greenroom-"))
        return "base64:" + base64.b64encode(path.read_bytes()).decode() if path.exists() else None

    async def pair(self, step: dict[str, Any]) -> None:
        poll = await self.client.ask("process/read", {"processId": "q", "waitMs": 800})
        began_s = trio.current_time()
        await self.client.call("environment/status")
        if trio.current_time() - began_s < 0.5:
            self.note(step, "answered at once")
        await self.client.answer(poll)

    async def ask(self, step: dict[str, Any]) -> None:
        request = self.fill(step["request"])
        if request["method"] in NOT_OFFERED:
            assert request["method"] not in METHODS
            return
        await self.client.raw(json.dumps(request))
        answer = await self.client.answer(request["id"])
        if request["method"] == "initialize" and "result" in answer:
            self.known["SESSION"] = answer["result"]["sessionId"]
        self.compare(step, "response", step["response"], answer)
        if "notifications" in step:
            await self.compare_news(step)

    async def say(self, step: dict[str, Any]) -> None:
        await self.client.raw(step["raw"])
        (expected,) = step["received"]
        if expected == "closed":
            await self.client.ended.wait()
        elif expected["id"] == -1:
            await until(lambda: bool(self.client.stray))
            self.compare(step, "received", expected, self.client.stray.pop())
        else:
            self.compare(step, "received", expected, await self.client.answer(expected["id"]))

    async def compare_news(self, step: dict[str, Any]) -> None:
        expected = step["notifications"]
        wanted = [self.fact(news) for news in expected]
        with trio.move_on_after(0.2 if (self.name, step["step"]) in DELIBERATE else 5):
            await until(lambda: set(wanted) <= set(self.facts()), within_s=10)
        missing = [fact for fact in wanted if fact not in self.facts()]
        if missing:
            self.note(step, ("missing", missing, "there are", self.facts()))

    def facts(self) -> list[tuple[Any, ...]]:
        return [self.fact(news) for news in self.client.news]

    def fact(self, news: dict[str, Any]) -> tuple[Any, ...]:
        params = news["params"]
        if "watchId" in params:
            return (news["method"], params["watchId"])
        more = params.get("chunk") if news["method"] == "process/output" else params.get("exitCode")
        return (news["method"], params.get("processId"), params.get("seq"), more)

    def compare(self, step: dict[str, Any], what: str, expected: Any, answer: Any) -> None:
        loose = step.get("loose", ())
        a, b = self.plain(expected, loose), self.plain(self.blank(answer), loose)
        if a != b:
            self.note(step, {"what": what, "expected": a, "ours": b})

    def note(self, step: dict[str, Any], difference: Any) -> None:
        if (self.name, step["step"]) in DELIBERATE:
            self.expected_differences.add(step["step"])
        else:
            self.differences[step["step"]] = difference

    def fill(self, value: Any) -> Any:
        text = json.dumps(value).replace("{ROOT}", str(self.root))
        return json.loads(text.replace("{SESSION}", self.known.get("SESSION", "")))

    def blank(self, value: Any) -> Any:
        text = json.dumps(value).replace(str(self.root), "{ROOT}")
        return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "{SESSION}", text))

    def plain(self, message: Any, loose: Any) -> Any:
        """Without what is never compared: facts about the machine, our extra members, loose members."""
        message = json.loads(json.dumps(message))
        if "error" in message:
            data = message["error"].pop("data", None) or {}
            # The kinds of what goes wrong with files are ours.
            message["error"]["kind"] = kind if (kind := data.get("kind", "")).startswith("spawn") else None
            message["error"]["message"] = re.sub(r"websocket \S+: .*", "websocket", message["error"]["message"])
        result = message.get("result")
        if isinstance(result, dict):
            if "environmentInfo" in result:
                result["environmentInfo"] = sorted(result["environmentInfo"].keys() - {"prependPathDirs"})
            for member in loose:
                result.pop(member.removeprefix("response."), None)
            for member in ("createdAtMs", "modifiedAtMs"):
                if isinstance(result.get(member), int):
                    result[member] = "{MS}"
            if result.get("isDirectory"):
                result["size"] = "as the disk has it"
            for member in ("brokenLinks", "leftOut", "replaced"):
                result.pop(member, None)
            if "entries" in result:
                entries = [{k: v for k, v in e.items() if k != "isSymlink"} for e in result["entries"]]
                # The order of a folder is not fixed; that of a walk is.
                result["entries"] = sorted(entries, key=str) if "fileName" in str(entries) else entries
            if "chunks" in result:
                read = b"".join(base64.b64decode(chunk["chunk"]) for chunk in result["chunks"])
                result["chunks"] = base64.b64encode(read).decode()
        return message
