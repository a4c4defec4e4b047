"""One suite for every pair: our client and server with each other, and each with grpcio's and grpc-js's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.actors.sessions.grpc import grpc_js, peers
from tests.actors.sessions.grpc.service import (
    CHAT,
    COUNT,
    CRASH,
    DETAILS,
    ECHO,
    FAIL,
    HARD_TEXT,
    SLEEP,
    SUM,
    TIME_LEFT,
    UNKNOWN,
    Client,
    Failed,
    Pairs,
    Seen,
)
from tests.support.settling import eventually
from tests.support.skips import needs, needs_package

needs_grpcio = needs_package("grpc", ".[interop]")

needs_grpc_js = needs(grpc_js.INSTALLED, "grpc-js", "run .ci/interop-grpc, which installs it")


@pytest.fixture(
    params=[
        *peers.OURS,
        *(pytest.param(pair, marks=needs_grpcio) for pair in peers.WITH_GRPCIO),
        *(pytest.param(pair, marks=needs_grpc_js) for pair in (grpc_js.grpc_js_to_ours, grpc_js.ours_to_grpc_js)),
    ],
    ids=lambda pair: pair.__name__,
)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Client, Seen]]:
    async with request.param(tmp_path) as (client, seen):
        yield client, seen


@pytest.fixture
def client(pair: tuple[Client, Seen]) -> Client:
    return pair[0]


def ours_of(pairs: Pairs) -> dict[str, object]:
    """The test's own metadata. Text under one key may be joined by commas on its way; keys have no order."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key.startswith("x-"):
            found[key] = f"{found[key]}, {value!s}" if key in found else value
    return found


async def failure_of(client: Client, *arguments: object, **options: object) -> Failed:
    with pytest.raises(Failed) as caught:
        await client.call(*arguments, **options)  # type: ignore[arg-type]  # passed through
    return caught.value


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_384, 70_000, 3_000_000])
async def test_a_message_of_any_size_comes_back(client: Client, size: int) -> None:
    message = bytes(range(256)) * (size // 256) + bytes(size % 256)

    assert (await client.call(ECHO, [message])).messages == [message]


async def test_metadata_travels_both_ways_as_text_and_as_bytes(client: Client) -> None:
    sent: list[tuple[str, str | bytes]] = [("x-text", "v 1"), ("x-b-bin", b"\x00\xff,="), ("x-text", "v2")]

    answer = await client.call(ECHO, [b""], metadata=sent)

    assert ours_of(answer.headers) == ours_of(sent)
    assert ours_of(answer.trailers) == ours_of([("x-trailing", "yes"), *sent])


async def test_an_error_brings_its_code_text_details_and_trailers(client: Client) -> None:
    failed = await failure_of(client, FAIL, [b""])

    assert (failed.code, failed.message, failed.details) == (9, HARD_TEXT, DETAILS)
    assert ("x-why-bin", b"\x00\xff") in failed.trailers


async def test_a_handler_that_crashes_is_unknown_to_its_caller(client: Client) -> None:
    assert (await failure_of(client, CRASH, [b""])).code == 2
    assert (await client.call(ECHO, [b"still there"])).messages == [b"still there"]


async def test_an_unknown_method_is_unimplemented(client: Client) -> None:
    assert (await failure_of(client, UNKNOWN, [b""])).code == 12


async def test_a_stream_arrives_whole_and_in_order(client: Client) -> None:
    assert (await client.call(COUNT, [b"500 0"])).messages == [b"%d" % index for index in range(500)]


async def test_a_stream_larger_than_every_window_arrives(client: Client) -> None:
    messages = (await client.call(COUNT, [b"100 65536"])).messages

    assert len(messages) == 100
    assert {len(message) for message in messages} == {65_536}


async def test_a_stream_of_nothing_is_ok(client: Client) -> None:
    assert (await client.call(COUNT, [b"0 0"])).messages == []


async def test_many_requests_and_one_response(client: Client) -> None:
    assert (await client.call(SUM, [b"%d" % number for number in range(200)])).messages == [b"19900"]
    assert (await client.call(SUM, [])).messages == [b"0"]


async def test_many_requests_and_many_responses(client: Client) -> None:
    sent = [b"%d" % number for number in range(200)]

    assert (await client.call(CHAT, sent)).messages == [b"re: " + message for message in sent]


async def test_a_handler_sees_the_deadline_of_its_caller(client: Client) -> None:
    [left] = (await client.call(TIME_LEFT, [b""], timeout_s=30)).messages

    assert 25 < float(left) <= 30.001


async def test_a_call_that_takes_too_long_ends_with_deadline_exceeded(client: Client) -> None:
    assert (await failure_of(client, SLEEP, [b""], timeout_s=0.1)).code == 4


async def test_a_lease_that_is_let_go_is_noticed_by_its_handler(pair: tuple[Client, Seen]) -> None:
    client, seen = pair
    async with client.open_lease():
        assert seen.lost_leases == 0

    # The handler may be in a thread of grpcio's.
    await eventually(lambda: seen.lost_leases == 1)


async def test_a_hundred_calls_at_once_are_all_answered(client: Client) -> None:
    async def one(number: int) -> None:
        message = b"%d" % number
        assert (await client.call(ECHO, [message])).messages == [message]

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(one, number)
