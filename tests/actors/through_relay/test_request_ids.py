"""An executor's handshakes with its rendezvous bear an id each, which its own reports name too."""

import re
from functools import partial

import attrs
import trio

from actors.executor import serve_remote_executor
from actors.noise import Identity, PublicKey
from actors.relay import Redial, UpkeepEvent, Verdict


@attrs.frozen
class Registration:
    url: str
    environment_id: str = "env"
    executor_registration_id: str = "r1"


@attrs.frozen
class Registrar:
    url: str

    async def register(self, _environment_id: str, _key: PublicKey, /) -> Registration:
        await trio.lowlevel.checkpoint()
        return Registration(self.url)

    async def verdict(self, *_asked: object) -> Verdict:
        raise AssertionError("no harness comes")


async def test_each_dial_of_an_executor_bears_a_request_id_and_a_refused_one_is_reported_with_it() -> None:
    """Planted and killed: no id, the same id each time, an id that the report leaves out."""
    seen: list[str] = []
    reports: list[UpkeepEvent] = []
    enough = trio.Event()

    async def refuse(stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some(4096)
        seen.extend(re.findall(r"(?im)^x-request-id: (\S+)\r$", head.decode()))
        assert b"authorization" not in head.lower()
        await stream.send_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")

    def report(event: UpkeepEvent) -> None:
        if event.what == "dial failed":
            reports.append(event)
            if len(reports) == 2:
                enough.set()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, refuse, 0, host="127.0.0.1"))
        url = f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}/rendezvous/executor?ticket=s3cret"
        redial = Redial(first_s=0.01, cap_s=0.02)
        nursery.start_soon(
            partial(serve_remote_executor, Registrar(url), "env", Identity.generate(), redial=redial, report=report)
        )
        with trio.fail_after(20):
            await enough.wait()
        nursery.cancel_scope.cancel()

    assert [re.fullmatch("req_[0-9a-f]{32}", one) is not None for one in seen[:2]] == [True, True]
    assert seen[0] != seen[1]
    for told, request_id in zip(reports, seen, strict=False):
        assert f"HTTP status 503 (x-request-id {request_id})" in str(told.why)
        assert "s3cret" not in str(told.why)
