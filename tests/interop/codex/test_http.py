"""One contract, two bodies: HTTP requests, capability roots and waiting for files (spec 6.4, 6.5)."""

import os
from collections.abc import Mapping

import pytest
import trio

from actors.harness import FromVariable, HttpBodyBroken, HttpRequestFailed
from tests.actors.executor.client import Client
from tests.interop.codex.bodies import Place
from tests.interop.codex.test_processes import INTERNAL
from tests.interop.codex.test_talk import INVALID_PARAMS
from tests.support.web import Asked, open_web

DATA = bytes(range(256)) * 12_000


async def refusal(client: Client, params: Mapping[str, object]) -> tuple[int, str]:
    answer = await client.answer(await client.ask("http/request", dict(params)))
    return answer["error"]["code"], answer["error"]["message"]


async def large(asked: Asked) -> None:
    await asked.answer(200, DATA)


async def test_a_request_is_answered_whatever_its_status(place: Place) -> None:
    async with open_web() as web, place.harness() as client:
        answer = await client.http.get(f"{web.url}/ok", headers={"x-home": FromVariable("HOME", prefix="is ")})
        failure = await client.http.request("GET", f"{web.url}/500")
        moved = await client.http.request("GET", f"{web.url}/redir", follow_redirects=False)

        assert (answer.status, answer.body, answer.header("content-type")) == (200, b"ok", "text/plain")
        assert web.asked[0].header("x-home") == f"is {os.environ['HOME']}"
        assert (failure.status, failure.body) == (500, b"err")
        assert (moved.status, (await client.http.get(f"{web.url}/redir")).body) == (302, b"ok")
        assert (await client.http.get(f"{web.url}/gzip")).body == b"plain text"


async def test_what_is_asked_goes_out_as_it_was_said(place: Place) -> None:
    async with open_web() as web, place.harness() as client:
        answer = await client.http.request("FOO", f"{web.url}/echo", headers=[("a", "1"), ("A", "2")], body=b"hi")

        said = answer.json()
        assert (said["method"], said["body"]) == ("FOO", "hi")
        assert [value for name, value in said["headers"] if name.lower() == "a"] == ["1", "2"]


async def test_a_body_comes_whole_or_says_that_it_is_not(place: Place) -> None:
    async with open_web() as web, place.harness() as client:
        web.pages["/large"] = large
        async with client.http.stream("GET", f"{web.url}/large") as answer:
            assert await answer.read() == DATA
        async with client.http.stream("GET", f"{web.url}/cut") as answer:
            with pytest.raises(HttpBodyBroken, match="after 3 bytes: error decoding response body"):
                await answer.read()
        with pytest.raises(HttpRequestFailed, match="failed to read http/request response body"):
            await client.http.get(f"{web.url}/cut")


async def test_a_server_that_is_not_there_is_a_failure(place: Place) -> None:
    async with place.harness() as client:
        with pytest.raises(HttpRequestFailed, match="error sending request for url"):
            await client.http.get("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"url": "ftp://x/"}, "http/request only supports http and https URLs, got ftp"),
        ({"url": "nonsense"}, "http/request url is invalid: relative URL without a base"),
        ({"url": "http://"}, "http/request url is invalid: empty host"),
        ({"url": "http://h:99999/"}, "http/request url is invalid: invalid port number"),
        ({"method": "G T"}, "http/request method is invalid: invalid HTTP method"),
        ({"headers": [{"name": "a b", "value": ""}]}, "http/request header name is invalid: invalid HTTP header name"),
        (
            {"headers": [{"name": "a", "value": "", "valueEnvVar": "NOT_SET"}]},
            "http/request header a requires executor environment variable NOT_SET",
        ),
    ],
)
async def test_what_is_no_request_is_refused_in_the_same_words(place: Place, more: dict[str, object], why: str) -> None:
    params = {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r"}
    async with place.talk() as client:
        assert await refusal(client, params | more) == (INVALID_PARAMS, why)


async def test_redirections_end(place: Place) -> None:
    async with open_web() as web, place.talk() as client:
        params = {"method": "GET", "url": f"{web.url}/loop", "requestId": "r"}
        assert await refusal(client, params) == (INTERNAL, "http/request failed: too many redirects")


async def test_skills_and_plugins_are_found_in_capability_roots(place: Place) -> None:
    files = {
        ".codex-plugin/plugin.json": '{"name": "p", "mcpServers": "./m.json"}',
        "m.json": "M",
        ".app.json": "A",
        "skills/s/SKILL.md": "what it does",
        "skills/s/agents/openai.yaml": "x: 1",
        "skills/.hidden/SKILL.md": "hidden",
    }
    for name, contents in files.items():
        path = place.root / "plugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents)
    async with place.harness() as client:
        root, missing = await client.discover_roots({"r": place.root / "plugin", "m": place.root / "missing"})

        assert root.plugin is not None
        assert root.plugin.mcp_config is not None
        assert root.plugin.apps_config is not None
        assert (root.plugin.mcp_config.contents, root.plugin.apps_config.contents) == ("M", "A")
        assert [skill.instructions.contents for skill in root.skills] == ["hidden", "what it does"]
        assert [skill.metadata is None for skill in root.skills] == [True, False]
        assert len(root.namespace_manifests) == 1
        assert missing.error is not None
        assert missing.error.endswith("No such file or directory (os error 2)")


async def test_a_file_that_is_not_there_yet_is_waited_for(place: Place) -> None:
    async with place.harness() as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.files.wait_until_exists, place.root / "late")
        await client.status()
        (place.root / "late").write_text("")
