"""One contract, two bodies: greeting, questions about the environment, errors (spec 6.1, 6.2, 6.5)."""

import uuid

import pytest
import trio

from tests.actors.executor.client import Client, Refused
from tests.interop.codex.bodies import Place

INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32600, -32601, -32602
# Not in a mood to hang: what does not come within this time does not come.
SOON_S = 10.0


async def refusal(client: Client, method: str, **params: object) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        await client.call(method, **params)
    return refused.value.code, refused.value.message


async def test_a_session_begins_with_its_id_and_what_the_environment_is(place: Place) -> None:
    async with place.talk(greet=False) as client:
        result = await client.call("initialize", clientName="", resumeSessionId=None)

        assert uuid.UUID(result["sessionId"])
        assert {"shell", "cwd", "platformOs", "capabilities"} <= set(result["environmentInfo"])


async def test_a_session_is_greeted_once(place: Place) -> None:
    async with place.talk() as client:
        await client.notify("initialized")

        assert await refusal(client, "initialize", clientName="again") == (
            INVALID_REQUEST,
            "initialize may only be sent once per connection",
        )
        assert await client.call("environment/status") == {"status": "ready"}


FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "process/terminate": ("exec", {"processId": "p"}),
    "fs/canonicalize": ("filesystem", {"path": "file:///tmp"}),
    "environment/status": ("environment status", {}),
    "environment/info": ("environment info", {}),
}


async def test_nothing_is_served_before_the_greeting_is_over(place: Place) -> None:
    async with place.talk(greet=False) as client:
        before = {method: await refusal(client, method, **params) for method, (_, params) in FAMILIES.items()}
        await client.call("initialize", clientName="test")
        between = {method: await refusal(client, method, **params) for method, (_, params) in FAMILIES.items()}
        await client.notify("initialized")
        for method, (_, params) in FAMILIES.items():
            await client.call(method, **params)

    assert before == {
        method: (INVALID_REQUEST, f"client must call initialize before using {family} methods")
        for method, (family, _) in FAMILIES.items()
    }
    assert between == {
        method: (INVALID_REQUEST, f"client must send initialized before using {family} methods")
        for method, (family, _) in FAMILIES.items()
    }


async def test_what_cannot_be_understood_is_said_before_anything_else(place: Place) -> None:
    async with place.talk(greet=False) as client:
        unknown = await refusal(client, "no/such")
        missing = await refusal(client, "process/terminate")
        answer = await client.answer(await client.ask("process/terminate", None))
        no_unit = await refusal(client, "environment/status", more=1)

    assert unknown == (UNKNOWN_METHOD, "exec-server stub does not implement `no/such` yet")
    assert missing == (INVALID_PARAMS, "missing field `processId`")
    assert answer["error"]["code"] == INVALID_PARAMS
    assert answer["error"]["message"] == "invalid type: null, expected struct TerminateParams"
    assert no_unit == (INVALID_PARAMS, "invalid type: map, expected unit")


async def test_unknown_members_and_other_ids_are_taken_as_they_come(place: Place) -> None:
    async with place.talk() as client:
        for request_id in ("text", -7, 0, 2**63 - 1):
            shown = f'"{request_id}"' if isinstance(request_id, str) else request_id
            await client.raw(f'{{"jsonrpc":"2.0","id":{shown},"method":"environment/status","more":[1]}}')
            answer = await client.answer(request_id)

            assert answer == {"id": request_id, "result": {"status": "ready"}}


NO_MESSAGES = ["{", "[]", "{}", '{"id":1.5,"method":"environment/status"}', '{"id":1,"method":2}']


async def test_a_message_that_is_none_is_answered_or_ends_its_stream(place: Place) -> None:
    """A plain WebSocket has an address to name in an answer; a stream of the relay is reset, and others go on.

    Five of them in one go are fewer than the failures that make an executor pause.
    """
    with trio.fail_after(SOON_S):
        async with place.talk() as other:
            for text in NO_MESSAGES:
                async with place.talk() as client:
                    await client.raw(text)
                    await _see_it_refused(place, client)

            assert await other.call("environment/status") == {"status": "ready"}


async def _see_it_refused(place: Place, client: Client) -> None:
    if place.road == "relay":
        await client.ended.wait()
        return
    while not client.stray:
        await client.call("environment/status")
    error = client.stray[0]["error"]
    assert error["code"] == INVALID_REQUEST
    assert error["message"].startswith(
        "failed to parse websocket JSON-RPC message from exec-server websocket 127.0.0.1"
    )


async def test_a_notification_nobody_knows_is_ignored_by_ours_and_costs_the_other_its_connection(place: Place) -> None:
    """9.2, item 10: dying without a word over a message that a newer peer may send helps nobody."""
    with trio.fail_after(SOON_S):
        async with place.talk() as client:
            await client.notify("no/such")
            if place.is_ours:
                assert await client.call("environment/status") == {"status": "ready"}
            else:
                await client.ended.wait()


async def test_an_answer_nobody_asked_for_ends_the_connection_and_not_the_session(place: Place) -> None:
    with trio.fail_after(SOON_S):
        async with place.talk() as client:
            await client.raw('{"id":77,"result":{}}')
            await client.ended.wait()
            session_id = client.session_id
        async with place.talk(resume=session_id) as client:
            assert client.session_id == session_id


async def test_a_session_is_resumed_by_its_id_alone_and_by_one_at_a_time(place: Place) -> None:
    async with place.talk() as first, place.talk(greet=False) as second:
        unknown = str(uuid.uuid4())
        attached = await refusal(second, "initialize", clientName="x", resumeSessionId=first.session_id)
        stranger = await refusal(second, "initialize", clientName="x", resumeSessionId=unknown)
        # What failed may be tried once more.
        assert (await second.call("initialize", clientName="x"))["sessionId"] != first.session_id

    assert attached == (-32010, f"session {first.session_id} is already attached to another connection")
    assert stranger == (INVALID_REQUEST, f"unknown session id {unknown}")


async def test_sessions_do_not_see_each_other(place: Place) -> None:
    async with place.talk() as one, place.talk() as two:
        await one.start("p", "/bin/sleep", "100")

        assert await refusal(two, "process/read", processId="p") == (INVALID_REQUEST, "unknown process id p")
        assert await two.call("process/terminate", processId="p") == {"running": False}
        assert await one.call("process/terminate", processId="p") == {"running": True}


async def test_a_long_poll_holds_up_nobody_at_ours_and_everybody_behind_it_at_the_other(place: Place) -> None:
    """9.2, item 1: requests have ids so that answers may come in any order."""
    with trio.fail_after(SOON_S):
        async with place.talk() as client:
            await client.start("p", "/bin/sleep", "100")
            poll = await client.ask("process/read", {"processId": "p", "waitMs": 700})
            kill = await client.ask("process/terminate", {"processId": "p"})
            await client.answer(poll)
            await client.answer(kill)

            # At the other, the poll runs out before the kill is even looked at.
            assert client.arrived[-2:] == ([kill, poll] if place.is_ours else [poll, kill])


async def test_our_client_learns_what_the_environment_is(place: Place) -> None:
    async with place.harness() as client:
        info, status = await client.info(), await client.status()

        assert info.platform_os == "linux"
        assert info.shell.path.startswith("/")
        assert info.capabilities.fs_watch_missing
        assert status.status == "ready"
