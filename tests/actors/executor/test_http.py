"""HTTP requests that an executor makes for its clients, to a real server: in the words of the existing executor."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from actors.executor import Executor, ExecutorEvent, HttpRequested, Limits, open_executor
from actors.executor._http_requests import encode_delta
from actors.protocol import HTTP_BODY_DELTA, HttpBodyDelta, Notification, encode_message
from tests.actors.executor.client import Client, Refused, memory_client
from tests.support.web import Asked, Web, open_web, redirect_to

VARIABLES = {"TOKEN": "secret-value"}


@attrs.define
class World:
    web: Web
    executor: Executor
    client: Client
    events: list[ExecutorEvent]

    async def ask(self, path: str, **more: Any) -> dict[str, Any]:
        """Ask for a page, or for a whole URL."""
        url = path if ":" in path else self.web.url + path
        params: dict[str, Any] = {"requestId": "r", "method": "GET"} | more
        return await self.client.call("http/request", url=url, **params)

    async def fault(self, path: str, **more: Any) -> tuple[int, str]:
        with pytest.raises(Refused) as refused:
            await self.ask(path, **more)
        return refused.value.code, refused.value.message

    def pieces(self, request_id: str = "r") -> list[tuple[int, bytes, bool, str | None]]:
        return [
            (p["seq"], base64.b64decode(p["deltaBase64"]), p["done"], p["error"])
            for p in (news["params"] for news in self.client.news)
            if p.get("requestId") == request_id
        ]

    async def body(self, request_id: str = "r") -> list[tuple[int, bytes, bool, str | None]]:
        while not (pieces := self.pieces(request_id)) or not pieces[-1][2]:
            await self.client._changed.park()
        return pieces


@pytest.fixture
async def world() -> AsyncIterator[World]:
    events: list[ExecutorEvent] = []
    limits = Limits(http_streams_max=2, http_body_bytes_max=100_000)
    async with (
        open_web() as web,
        open_executor(http=True, variables=VARIABLES, limits=limits, observer=events.append) as executor,
        memory_client(executor, buffered=1000) as client,
    ):
        with trio.fail_after(20):
            yield World(web, executor, client, events)


def body_of(answer: dict[str, Any]) -> bytes:
    return base64.b64decode(answer["bodyBase64"])


async def test_without_being_enabled_there_are_no_http_requests() -> None:
    async with open_executor() as executor, memory_client(executor) as client:
        with pytest.raises(Refused, match="exec-server stub does not implement `http/request` yet") as refused:
            await client.call("http/request", method="GET", url="http://127.0.0.1/", requestId="r")
        assert refused.value.code == -32601
        capabilities = (await client.call("environment/info"))["capabilities"]
        assert capabilities["httpHeaderEnvVars"] is False
        assert "httpFlowControl" not in capabilities


async def test_a_request_is_answered_with_status_headers_and_body(world: World) -> None:
    answer = await world.ask("/ok")

    assert answer == {
        "status": 200,
        "headers": [{"name": "content-length", "value": "2"}, {"name": "content-type", "value": "text/plain"}],
        "bodyBase64": "b2s=",
    }
    assert (await world.client.call("environment/info"))["capabilities"]["httpHeaderEnvVars"] is True


async def test_a_status_that_says_failure_is_an_answer_like_any_other(world: World) -> None:
    answer = await world.ask("/500")

    assert (answer["status"], body_of(answer)) == (500, b"err")
    assert [header["value"] for header in answer["headers"] if header["name"] == "x-a"] == ["1", "2"]


async def test_what_is_asked_goes_out_as_it_was_said_and_nothing_is_added_but_what_is_needed(world: World) -> None:
    headers = [{"name": "a", "value": "1"}, {"name": "A", "value": "2 \u00e9"}, {"name": "Host", "value": "other"}]
    answer = await world.ask("/echo", method="FOO", headers=headers, bodyBase64="aGk=")

    said = json.loads(body_of(answer))
    assert (said["method"], said["body"]) == ("FOO", "hi")
    sent = [(name.lower(), value) for name, value in said["headers"]]
    assert sorted(sent) == sorted(
        [
            ("a", "1"),
            ("a", "2 \u00e9".encode().decode("latin-1")),
            ("host", "other"),
            ("accept", "*/*"),
            ("accept-encoding", next(value for name, value in sent if name == "accept-encoding")),
            ("content-length", "2"),
        ]
    )


async def test_a_header_is_filled_from_the_executors_environment(world: World) -> None:
    header = {"name": "authorization", "value": "Bearer ", "valueEnvVar": "TOKEN"}
    await world.ask("/ok", headers=[header])
    fault = await world.fault("/ok", headers=[header | {"valueEnvVar": "NOPE"}])

    assert world.web.asked[0].header("authorization") == "Bearer secret-value"
    assert fault == (-32602, "http/request header authorization requires executor environment variable NOPE")


async def test_a_variable_is_not_carried_to_another_origin_by_a_redirection(world: World) -> None:
    async with open_web() as elsewhere:
        world.web.pages["/away"] = redirect_to(f"{elsewhere.url}/ok")
        headers = [{"name": "x-key", "value": "", "valueEnvVar": "TOKEN"}, {"name": "x-plain", "value": "p"}]
        answer = await world.ask("/away", headers=headers)

    assert answer["status"] == 200
    assert world.web.asked[0].header("x-key") == "secret-value"
    assert (elsewhere.asked[0].header("x-key"), elsewhere.asked[0].header("x-plain")) == (None, "p")


async def test_nothing_that_a_server_sets_is_carried_to_the_next_request(world: World) -> None:
    async def sets_cookie(asked: Asked) -> None:
        await asked.answer(200, b"", "set-cookie: a=b")

    world.web.pages["/cookie"] = sets_cookie
    await world.ask("/cookie")
    await world.ask("/ok")

    assert world.web.asked[1].header("cookie") is None


async def test_redirections_are_followed_or_given_and_end(world: World) -> None:
    assert body_of(await world.ask("/redir")) == b"ok"
    assert (await world.ask("/redir", redirectPolicy="stop"))["status"] == 302
    assert await world.fault("/loop") == (-32603, "http/request failed: too many redirects")
    assert await world.fault("/ok", redirectPolicy="x") == (-32602, "unknown variant `x`, expected `follow` or `stop`")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://x/", "http/request only supports http and https URLs, got ftp"),
        ("file:///x", "http/request only supports http and https URLs, got file"),
        ("http://", "http/request url is invalid: empty host"),
        ("//x:", "http/request url is invalid: relative URL without a base"),
        ("http://h:99999/", "http/request url is invalid: invalid port number"),
        ("http://h:x/", "http/request url is invalid: invalid port number"),
        ("HTTP://[::1", "http/request url is invalid: invalid IPv6 address"),
        ("http://a b/", "http/request url is invalid: invalid international domain name"),
        ("http://%zz/", "http/request url is invalid: invalid international domain name"),
    ],
)
async def test_what_is_no_url_of_http_is_refused_in_the_words_of_the_wire(world: World, url: str, why: str) -> None:
    assert await world.fault(url) == (-32602, why)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"method": "G T"}, "http/request method is invalid: invalid HTTP method"),
        ({"method": ""}, "http/request method is invalid: invalid HTTP method"),
        ({"headers": [{"name": "a b", "value": ""}]}, "http/request header name is invalid: invalid HTTP header name"),
        (
            {"headers": [{"name": "a", "value": "1\n2"}]},
            "http/request header value is invalid for a: failed to parse header value",
        ),
        ({"headers": [{"name": "a"}]}, "missing field `value`"),
        ({"headers": None}, "invalid type: null, expected a sequence"),
        ({"bodyBase64": "a!"}, "Invalid symbol 33, offset 1."),
        ({"timeoutMs": -1}, "invalid number"),
        ({"streamResponse": None}, "invalid type: null, expected a boolean"),
    ],
)
async def test_what_is_no_request_is_refused_in_the_words_of_the_wire(world: World, more: Any, why: str) -> None:
    assert await world.fault("/ok", **more) == (-32602, why)
    assert world.web.asked == []


async def test_a_server_that_is_not_there_is_a_failure_that_names_the_url(world: World) -> None:
    url = "http://127.0.0.1:1/x?q=1"

    assert await world.fault(url) == (-32603, f"http/request failed: error sending request for url ({url})")
    with pytest.raises(Refused) as refused:
        await world.ask(url)
    assert refused.value.data == {"kind": "connect", "reason": "ConnectError"}


async def test_a_time_limit_ends_a_request_that_is_not_answered(world: World) -> None:
    world.web.pages["/slow"] = world.web.listening_until_hung_up()
    await world.ask("/ok")  # The first request takes longer: it loads the HTTP client.

    code, text = await world.fault("/slow", timeoutMs=100)

    assert (code, text) == (-32603, f"http/request failed: error sending request for url ({world.web.url}/slow)")
    await world.web.wait_hung_up()


@pytest.mark.parametrize("path", ["/badgzip", "/cut"])
async def test_a_body_that_is_not_what_its_headers_say_is_a_failure(world: World, path: str) -> None:
    broken = "failed to read http/request response body: error decoding response body"

    assert await world.fault(path) == (-32603, broken)


async def test_gzip_is_taken_off_and_the_headers_no_longer_speak_of_it(world: World) -> None:
    answer = await world.ask("/gzip")

    assert body_of(answer) == b"plain text"
    assert answer["headers"] == []


async def test_a_body_too_large_for_one_answer_is_a_failure_that_says_what_to_do(world: World) -> None:
    async def large(asked: Asked) -> None:
        await asked.answer(200, b"x" * 200_000)

    world.web.pages["/large"] = large
    code, text = await world.fault("/large")

    assert (code, text) == (
        -32603,
        "http/request response body is larger than 100000 bytes; ask for it with streamResponse",
    )
    assert (await world.ask("/large", streamResponse=True))["bodyBase64"] == ""
    assert b"".join(piece for _, piece, _, _ in await world.body()) == b"x" * 200_000


async def test_a_streamed_body_comes_in_pieces_behind_its_answer(world: World) -> None:
    answer = await world.ask("/ok", streamResponse=True)

    assert (answer["status"], answer["bodyBase64"]) == (200, "")
    assert await world.body() == [(1, b"ok", False, None), (2, b"", True, None)]


@pytest.mark.parametrize("path", ["/badgzip", "/cut"])
async def test_a_streamed_body_that_breaks_off_ends_with_the_reason(world: World, path: str) -> None:
    await world.ask(path, streamResponse=True)

    assert (await world.body())[-1][1:] == (b"", True, "error decoding response body")


async def test_pieces_are_given_as_they_come_and_a_time_limit_ends_them(world: World) -> None:
    async def drip(asked: Asked) -> None:
        await asked.begin_chunks()
        await asked.chunk(b"first")
        await asked.stream.receive_some()

    world.web.pages["/drip"] = drip
    await world.ask("/ok")
    await world.ask("/drip", streamResponse=True, timeoutMs=100)

    assert await world.body() == [(1, b"first", False, None), (2, b"", True, "error decoding response body")]


async def test_a_name_is_one_streams_at_a_time_and_streams_are_bounded(world: World) -> None:
    async def endless(asked: Asked) -> None:
        await asked.begin_chunks()
        await asked.stream.receive_some()

    world.web.pages["/endless"] = endless
    await world.ask("/endless", streamResponse=True)

    active = "http/request streamResponse requestId `r` is already active"
    assert await world.fault("/ok", streamResponse=True) == (-32602, active)
    assert body_of(await world.ask("/ok")) == b"ok"
    await world.ask("/endless", streamResponse=True, requestId="s")
    assert (await world.fault("/ok", streamResponse=True, requestId="t"))[0] == -32600


async def test_a_body_waits_for_the_window_of_its_client(world: World) -> None:
    """Mutant that was seen to fail: not subtracting what was sent from the window."""

    async def large(asked: Asked) -> None:
        await asked.answer(200, b"x" * 1_000_000)

    world.web.pages["/large"] = large
    await world.ask("/large", streamResponse=True, windowBytes=100_000)
    while sum(len(piece[1]) for piece in world.pieces()) < 100_000:
        await world.client._changed.park()
    # Longer than the rest would need to come.
    await trio.testing.wait_all_tasks_blocked(0.05)
    received = sum(len(piece[1]) for piece in world.pieces())
    assert received < 200_000

    await world.client.call("http/request/more", requestId="r", bytes=10_000_000)

    assert sum(len(piece[1]) for piece in await world.body()) == 1_000_000


async def test_a_cancelled_request_hangs_up_on_the_server(world: World) -> None:
    world.web.pages["/slow"] = world.web.listening_until_hung_up()
    params = {"method": "GET", "url": f"{world.web.url}/slow", "requestId": "r"}
    asked = await world.client.ask("http/request", params)
    while not world.web.asked:
        await trio.testing.wait_all_tasks_blocked(0.01)

    assert await world.client.call("http/request/cancel", requestId="r") == {}

    assert (await world.client.answer(asked))["error"]["message"] == "http/request was cancelled"
    await world.web.wait_hung_up()
    assert await world.client.call("http/request/cancel", requestId="nobody") == {}


async def test_a_lost_connection_hangs_up_on_the_server(world: World) -> None:
    async def endless(asked: Asked) -> None:
        await asked.begin_chunks()
        await world.web.listening_until_hung_up()(asked)

    world.web.pages["/endless"] = endless
    async with memory_client(world.executor) as other:
        params = {"method": "GET", "url": f"{world.web.url}/endless", "requestId": "r", "streamResponse": True}
        await other.call("http/request", **params)

    await world.web.wait_hung_up()


async def test_requests_do_not_hold_each_other_up_and_are_counted_and_told_without_their_paths(world: World) -> None:
    world.web.pages["/slow"] = world.web.listening_until_hung_up()
    await world.client.ask("http/request", {"method": "GET", "url": f"{world.web.url}/slow", "requestId": "s"})

    await world.ask("/ok?secret=1")
    await world.fault("http://user:pw@127.0.0.1:1/")

    statistics = world.executor.statistics()
    assert (statistics.http_requests, statistics.http_failures, statistics.http_body_bytes) == (3, 1, 2)
    told = [event for event in world.events if isinstance(event, HttpRequested)]
    host = world.web.url.removeprefix("http://")
    assert [(event.method, event.host, event.status) for event in told] == [
        ("GET", host, 200),
        ("GET", "127.0.0.1:1", None),
    ]


@pytest.mark.parametrize(("done", "error"), [(False, None), (True, None), (True, 'said "no"')])
def test_a_piece_is_written_as_the_codec_would(done: bool, error: str | None) -> None:
    delta = HttpBodyDelta(request_id='r"\u00e9', seq=7, delta_base64=b"\x00\xffab", done=done, error=error)
    expected = encode_message(Notification(HTTP_BODY_DELTA.name, HTTP_BODY_DELTA.encode_params(delta)))

    assert encode_delta('r"\u00e9', 7, b"\x00\xffab", done=done, error=error) == expected
