"""HTTP requests through a client, made by a real executor to a real server: whole or said to be not, and hung up on."""

import json
import math
from collections.abc import AsyncIterator

import attrs
import pytest
import trio
import trio.testing

from actors.executor import serve_executor
from actors.harness import (
    Client,
    FromVariable,
    HarnessLimits,
    HttpBodyBroken,
    HttpRequestFailed,
    HttpUnavailable,
    InvalidArgument,
    RequestRejected,
    open_client,
)
from actors.harness._flow import ReadValve
from actors.harness._http_bodies import IncomingBody
from actors.protocol import HttpBodyDelta
from tests.support.settling import until
from tests.support.web import Asked, Web, open_web


@attrs.define
class World:
    web: Web
    client: Client
    executor: trio.CancelScope


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_web() as web, trio.open_nursery() as nursery:
        serving = trio.CancelScope()

        async def serve(task_status: trio.TaskStatus[object]) -> None:
            with serving:
                await serve_executor(http=True, variables={"KEY": "secret"}, task_status=task_status)

        endpoint = await nursery.start(serve)
        async with open_client(endpoint.url) as client:
            with trio.fail_after(20):
                yield World(web, client, serving)
        nursery.cancel_scope.cancel()


async def endless(asked: Asked) -> None:
    await asked.begin_chunks()
    while True:
        await asked.chunk(b"x" * 65536)


async def test_a_request_gives_status_headers_and_body(world: World) -> None:
    answer = await world.client.http.get(f"{world.web.url}/ok")

    assert (answer.status, answer.ok, answer.body, answer.text) == (200, True, b"ok", "ok")
    assert answer.header("Content-Type") == "text/plain"
    assert answer.header("nope") is None


async def test_a_status_that_says_failure_is_no_error(world: World) -> None:
    answer = await world.client.http.request("GET", f"{world.web.url}/500")

    assert (answer.status, answer.ok, answer.body) == (500, False, b"err")


async def test_json_goes_out_and_comes_back(world: World) -> None:
    answer = await world.client.http.post(f"{world.web.url}/echo", json={"a": ["\u00e9"]})

    said = answer.json()
    assert json.loads(said["body"].encode("latin-1")) == {"a": ["\u00e9"]}
    assert ["content-type", "application/json"] in [[name.lower(), value] for name, value in said["headers"]]


async def test_a_secret_of_the_environment_fills_a_header_and_never_comes_here(world: World) -> None:
    headers = {"authorization": FromVariable("KEY", prefix="Bearer ")}
    await world.client.http.get(f"{world.web.url}/ok", headers=headers)

    assert world.web.asked[0].header("authorization") == "Bearer secret"
    with pytest.raises(RequestRejected, match="header a requires executor environment variable NOPE"):
        await world.client.http.get(f"{world.web.url}/ok", headers={"a": FromVariable("NOPE")})


async def test_a_name_may_come_twice_and_redirections_are_ours_to_follow(world: World) -> None:
    await world.client.http.get(f"{world.web.url}/ok", headers=[("a", "1"), ("a", "2")])
    answer = await world.client.http.request("GET", f"{world.web.url}/redir", follow_redirects=False)

    assert [value for name, value in world.web.asked[0].headers if name.lower() == "a"] == ["1", "2"]
    assert (answer.status, answer.header("location")) == (302, "/ok")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"method": "G T"}, "method: http/request method is invalid"),
        ({"url": "ftp://x/"}, "url: http/request only supports http and https URLs, got ftp"),
        ({"headers": {"a b": ""}}, r"headers\['a b'\]: http/request header name is invalid"),
        ({"headers": {"a": "1\n"}}, r"headers\['a'\]: http/request header value is invalid"),
        ({"headers": {"a": 1}}, r"headers\['a'\]: must be text, not int"),
        ({"headers": ["ab"]}, "headers: must map names to values"),
        ({"body": "text"}, "body: must be bytes, not str"),
        ({"body": b"x", "json": 1}, "json: give a body or a JSON value"),
        ({"json": {1, 2}}, "json: "),
        ({"timeout_s": 0}, "timeout_s: must be greater than zero"),
        ({"timeout_s": math.nan}, "timeout_s: must be greater than zero"),
    ],
)
async def test_what_is_no_request_is_refused_before_anything_is_sent(
    world: World, wrong: dict[str, object], words: str
) -> None:
    right: dict[str, object] = {"method": "GET", "url": f"{world.web.url}/ok"}
    with pytest.raises(InvalidArgument, match=words):
        await world.client.http.request(**(right | wrong))  # type: ignore[arg-type]

    assert world.web.asked == []


async def test_a_failure_says_what_kind_and_shows_no_query(world: World) -> None:
    with pytest.raises(HttpRequestFailed, match="HTTP request failed: ") as failed:
        await world.client.http.get("http://user:pw@127.0.0.1:1/x?token=t")

    assert (failed.value.kind, failed.value.reason) == ("connect", "ConnectError")
    assert failed.value.url == "http://127.0.0.1:1/x"


async def test_an_executor_without_http_is_told_from_a_failed_request() -> None:
    async with trio.open_nursery() as nursery:
        endpoint = await nursery.start(serve_executor)
        async with open_client(endpoint.url) as client:
            with pytest.raises(HttpUnavailable, match="http=True"):
                await client.http.get("http://127.0.0.1:1/")
            with pytest.raises(HttpUnavailable):
                async with client.http.stream("GET", "http://127.0.0.1:1/"):
                    pass
        nursery.cancel_scope.cancel()


async def test_a_body_is_taken_as_it_comes(world: World) -> None:
    second = trio.Event()

    async def two(asked: Asked) -> None:
        await asked.begin_chunks()
        await asked.chunk(b"first")
        await second.wait()
        await asked.chunk(b"second")
        await asked.chunk(b"")

    world.web.pages["/two"] = two
    async with world.client.http.stream("GET", f"{world.web.url}/two") as answer:
        assert (answer.status, await answer.receive()) == (200, b"first")
        second.set()
        assert [piece async for piece in answer] == [b"second"]
        assert await answer.receive() == b""
        assert answer.received_bytes == 11


async def test_a_large_body_comes_whole_through_its_window(world: World) -> None:
    """Mutant that was seen to fail: never allowing more."""
    data = bytes(range(256)) * 40_000

    async def large(asked: Asked) -> None:
        await asked.answer(200, data)

    world.web.pages["/large"] = large
    async with world.client.http.stream("GET", f"{world.web.url}/large") as answer:
        assert await answer.read() == data


async def test_a_body_nobody_takes_is_held_back_at_the_server_and_holds_up_nobody(world: World) -> None:
    sent_bytes = 0

    async def counting(asked: Asked) -> None:
        nonlocal sent_bytes
        await asked.begin_chunks()
        while True:
            await asked.chunk(b"x" * 65536)
            sent_bytes += 65536

    world.web.pages["/endless"] = counting
    async with world.client.http.stream("GET", f"{world.web.url}/endless"):
        for _ in range(50):
            await world.client.status()
        await trio.testing.wait_all_tasks_blocked(0.05)
        at_rest = sent_bytes
        for _ in range(50):
            await world.client.status()
        assert sent_bytes == at_rest < 20_000_000
        assert (await world.client.http.get(f"{world.web.url}/ok")).body == b"ok"


async def test_leaving_the_block_hangs_up_on_the_server(world: World) -> None:
    world.web.pages["/endless"] = endless
    async with world.client.http.stream("GET", f"{world.web.url}/endless") as answer:
        await answer.receive()

    await world.web.wait_hung_up()


async def test_a_cancelled_request_hangs_up_on_the_server(world: World) -> None:
    world.web.pages["/slow"] = world.web.listening_until_hung_up()
    await world.client.http.get(f"{world.web.url}/ok")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.client.http.get, f"{world.web.url}/slow")
        await until(lambda: len(world.web.asked) == 2)
        nursery.cancel_scope.cancel()

    await world.web.wait_hung_up()


async def test_a_body_that_breaks_off_is_never_taken_for_a_whole_one(world: World) -> None:
    async with world.client.http.stream("GET", f"{world.web.url}/cut?secret=1") as answer:
        assert await answer.receive() == b"abc"
        with pytest.raises(HttpBodyBroken, match=r"/cut` broke off after 3 bytes: error decoding response body"):
            await answer.receive()


async def test_a_lost_connection_fails_the_body_at_once(world: World) -> None:
    world.web.pages["/endless"] = endless
    async with world.client.http.stream("GET", f"{world.web.url}/endless") as answer:
        await answer.receive()
        world.executor.cancel()
        with pytest.raises(HttpBodyBroken, match="exec-server transport disconnected"):
            await answer.read()


def body(limits: HarnessLimits | None = None) -> tuple[IncomingBody, ReadValve]:
    valve = ReadValve()
    return IncomingBody("r", limits=limits or HarnessLimits(unread_bytes=10, held_bytes=20), valve=valve), valve


def piece(seq: int, data: bytes, *, done: bool = False, error: str | None = None) -> HttpBodyDelta:
    return HttpBodyDelta(request_id="r", seq=seq, delta_base64=data, done=done, error=error)


async def test_a_missing_piece_breaks_the_body_behind_what_came_before() -> None:
    incoming, _ = body()
    incoming.accept(piece(1, b"a"))
    incoming.accept(piece(3, b"c"))

    assert (await incoming.take(), await incoming.take(), incoming.error) == (b"a", None, "piece 2 is missing")


async def test_a_body_over_its_mark_closes_the_valve_and_one_over_its_limit_is_broken() -> None:
    """Mutant that was seen to fail: not telling the valve of room again."""
    incoming, valve = body()
    incoming.accept(piece(1, b"x" * 11))
    assert not valve.is_open
    await incoming.take()
    assert valve.is_open

    incoming.accept(piece(2, b"x" * 21))
    assert incoming.error is not None
    assert "faster than it was read" in incoming.error
    incoming.forget()
    assert valve.is_open
