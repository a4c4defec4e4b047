"""One engine process, spoken to in frames: what only a host could send it, it is not misled by. On both engines."""

from pathlib import Path

import pytest
import trio

from actors.sessions.host import find_engine
from actors.sessions.host._frames import Frame, encode_answer
from actors.sessions.host._launching import PlainLauncher
from actors.sessions.host._process import EngineProcess
from supervision import ChildSpec, Restart, open_root
from tests.actors.sessions.host.engines import ENGINES

pytestmark = pytest.mark.slow
TOOLS = [["t", "d"]]


class Heard:
    """What a process says of its cell."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ready, self.rested, self.changed = trio.Event(), trio.Event(), trio.Event()

    def frame(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.changed.set()
        self.changed = trio.Event()

    def process_ended(self, why: str) -> None:
        self.frames.append(["ended", 0, why])

    async def until(self, kind: str) -> Frame:
        with trio.fail_after(20):
            while True:
                for frame in self.frames:
                    if frame[0] == kind:
                        return frame
                await self.changed.wait()


@pytest.mark.parametrize("path", ENGINES)
async def test_answers_and_timers_of_a_cell_that_is_over_reach_no_other_cell(path: str, tmp_path: Path) -> None:
    """Both cells have a call and a timer of the same number. Killed: news that is taken without a look at its cell."""
    heard = Heard()
    process = EngineProcess(
        PlainLauncher("a test"),
        find_engine(path),
        256 * 1024 * 1024,
        str(tmp_path),
        on_ready=lambda _: heard.ready.set(),
        on_end=lambda _: None,
    )
    process.on_idle = lambda _: heard.rested.set()
    source = "setTimeout(() => text('fired'), 1000); text(await tools.t());"
    async with open_root("engine") as root:
        await root.start_child(ChildSpec("engine", process.run, restart=Restart.TEMPORARY))
        await heard.ready.wait()
        process.listener, process.cells = heard, 1
        process.send(["run", 1, f"setTimeout(() => exit(), 1); {source}", TOOLS, [], 1024])
        await heard.until("call")
        process.send(["fire", 1, 1])
        await heard.until("done")
        await heard.rested.wait()
        heard.frames.clear()
        process.cells = 2
        process.send(["run", 2, source, TOOLS, [], 1024])
        await heard.until("call")
        process.write(encode_answer(1, 1, True, '"forged"'))
        process.send(["fire", 1, 1])
        process.write(encode_answer(2, 1, True, '"true"'))
        await heard.until("done")
        process.kill()

    assert [frame for frame in heard.frames if frame[0] == "texts"] == [["texts", 2, [b"true"]]]
