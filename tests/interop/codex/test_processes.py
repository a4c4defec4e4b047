"""One contract, two bodies: processes (spec 6.3)."""

import base64
import re
import signal
from typing import Any

import pytest

from actors.harness import RequestRejected, StdinUnavailable
from actors.protocol import EnvironmentInherit, EnvironmentPolicy, OutputGap, Stream
from tests.actors.executor.client import Client, Refused
from tests.interop.codex.bodies import Place
from tests.interop.codex.test_talk import INVALID_PARAMS, INVALID_REQUEST, refusal
from tests.support.settling import eventually, process_end

INTERNAL = -32603
RETAINED_BYTES = 1024 * 1024


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def joined(chunks: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(chunk["chunk"]) for chunk in chunks)


async def wait_output(client: Client, process_id: str, said: bytes) -> bytes:
    """Read until something was said; gives all of it. News of it may come later than the answers."""
    after_seq = 0
    seen = b""
    while said not in seen:
        answer = await client.call("process/read", processId=process_id, afterSeq=after_seq, waitMs=5000)
        seen += joined(answer["chunks"])
        after_seq = answer["nextSeq"] - 1
        assert not answer["closed"] or said in seen, seen
    return seen


async def test_a_start_says_who_and_that_there_is_no_sandbox(place: Place) -> None:
    async with place.talk() as client:
        assert await client.start("p", "/bin/true") == {"processId": "p", "sandboxType": "none"}
        assert await refusal(
            client, "process/start", processId="p", argv=["true"], cwd="file:///", env={}, tty=False
        ) == (INVALID_REQUEST, "process p already exists")


FAILING_STARTS: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({"argv": []}, INVALID_PARAMS, "argv must not be empty", None),
    ({"argv": ["/no/such"]}, INTERNAL, "No such file or directory (os error 2)", "spawnNotFound"),
    ({"cwd": "file:///no/such"}, INTERNAL, "No such file or directory (os error 2)", "spawnNotFound"),
    ({"argv": ["/etc/passwd"]}, INTERNAL, "Permission denied (os error 13)", "spawnPermissionDenied"),
    ({"argv": [""]}, INTERNAL, "missing program for pipe spawn", "spawnFailed"),
    ({"cwd": "file:///etc/passwd"}, INTERNAL, "Not a directory (os error 20)", "spawnFailed"),
    (
        {"cwd": "file://far/away"},
        INVALID_PARAMS,
        "cwd URI `file://far/away` is not valid on this exec-server host: 'file://far/away' is invalid on 'linux'",
        None,
    ),
    ({"pipeStdin": None}, INVALID_PARAMS, "invalid type: null, expected a boolean", None),
]


async def test_a_start_that_fails_says_why_and_leaves_its_id_free(place: Place) -> None:
    async with place.talk() as client:
        for change, code, text, kind in FAILING_STARTS:
            params: dict[str, Any] = {"argv": ["/bin/true"], "cwd": "file:///", "env": {}, "tty": False}
            with pytest.raises(Refused) as refused:
                await client.call("process/start", processId="p", **params | change)

            told = refused.value
            assert (told.code, told.message) == (code, text)
            assert kind is None or (told.data or {})["kind"] == kind
        assert await client.start("p", "/bin/true")


async def test_output_exit_and_end_come_in_one_sequence_with_the_end_last(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "printf out; printf err >&2; exit 3")
        closed = await client.finish("p")
        seqs = [news["params"]["seq"] for news in client.news]
        exited = await client.wait_news("process/exited", "p")

        assert sorted(seqs) == list(range(1, len(seqs) + 1))
        assert closed["seq"] == max(seqs)
        assert (exited["exitCode"], exited["sandboxDenied"]) == (3, False)
        assert client.output("p", "stdout") == b"out"
        assert client.output("p", "stderr") == b"err"


async def test_the_exit_comes_after_the_last_output(place: Place) -> None:
    """The other makes no such promise: it reaps and reads in two places (9.2, item 19). There the end comes last."""
    async with place.talk() as client:
        for number in range(20):
            name = f"p{number}"
            await client.start(name, "/bin/sh", "-c", "head -c 100000 /dev/zero; head -c 10 /dev/zero >&2")
            await client.finish(name)
            exited = await client.wait_news("process/exited", name)
            outputs = [news["params"]["seq"] for news in client.news if news["params"]["processId"] == name]

            assert len(client.output(name)) == 100_010
            if place.is_ours:
                assert exited["seq"] == max(outputs) - 1


async def test_output_is_read_by_position(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "for n in 1 2 3 4; do printf $n$n$n; sleep 0.05; done")
        await client.finish("p")
        whole = await client.call("process/read", processId="p")
        seqs = [chunk["seq"] for chunk in whole["chunks"]]
        tail = await client.call("process/read", processId="p", afterSeq=seqs[1])
        one = await client.call("process/read", processId="p", maxBytes=0)
        # Nothing is waited for where nothing can come any more.
        beyond = await client.call("process/read", processId="p", afterSeq=whole["nextSeq"] + 5, waitMs=60_000)

        assert joined(whole["chunks"]) == b"111222333444"
        assert whole["nextSeq"] == max(news["params"]["seq"] for news in client.news) + 1
        assert (whole["exited"], whole["exitCode"], whole["closed"], whole["failure"]) == (True, 0, True, None)
        assert tail["chunks"] == whole["chunks"][2:]
        assert (one["chunks"], one["nextSeq"]) == (whole["chunks"][:1], seqs[0] + 1)
        assert beyond["chunks"] == []


async def test_a_read_waits_for_output_and_no_longer_than_asked(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "read line; echo $line", pipeStdin=True)
        nothing = await client.call("process/read", processId="p", waitMs=50)
        await client.call("process/write", processId="p", writeId="1", chunk=b64(b"word\n"))
        word = await client.call("process/read", processId="p", waitMs=10_000)

        assert (nothing["chunks"], nothing["exited"]) == ([], False)
        assert joined(word["chunks"]) == b"word\n"


async def test_a_mebibyte_is_kept_and_what_is_gone_leaves_a_mark_at_ours(place: Place) -> None:
    """9.2, item 17: at the other a read from the start begins later, and nothing says so."""
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "head -c 3000000 /dev/zero; printf end")
        await client.finish("p")
        kept = await client.call("process/read", processId="p", afterSeq=0)

        assert RETAINED_BYTES - 70_000 < len(joined(kept["chunks"])) <= RETAINED_BYTES
        assert joined(kept["chunks"]).endswith(b"end")
        assert kept["chunks"][0]["seq"] > 1
        if place.is_ours:
            assert kept["firstRetainedSeq"] == kept["chunks"][0]["seq"]


async def test_a_write_is_done_once_however_often_it_is_sent(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/cat", pipeStdin=True)
        for chunk in (b"once\n", b"once\n", b"other\n"):
            answer = await client.call("process/write", processId="p", writeId="w", chunk=b64(chunk))
            assert answer == {"status": "accepted"}
        await client.call("process/write", processId="p", writeId="x", chunk=b64(b"last\n"))

        assert await wait_output(client, "p", b"last\n") == b"once\nlast\n"


async def test_what_cannot_be_written_says_why(place: Place) -> None:
    async with place.talk() as client:
        await client.start("none", "/bin/sleep", "100")
        await client.start("gone", "/bin/true", pipeStdin=True)
        await client.finish("gone")
        unknown = await client.call("process/write", processId="no", writeId="w", chunk="")
        none = await client.call("process/write", processId="none", writeId="w", chunk="eA==")
        gone = await client.answer(
            await client.ask("process/write", {"processId": "gone", "writeId": "w", "chunk": "eA=="})
        )
        blank = await refusal(client, "process/write", processId="none", writeId="", chunk="")
        letters = await refusal(client, "process/write", processId="none", writeId="w", chunk="!")

        assert (unknown, none) == ({"status": "unknownProcess"}, {"status": "stdinClosed"})
        # The other sometimes accepts one more before it finds out.
        if place.is_ours or "error" in gone:
            assert gone["error"] == {"code": INTERNAL, "message": "failed to write to process stdin"}
        assert blank == (INVALID_PARAMS, "writeId must not be empty")
        assert letters[0] == INVALID_PARAMS


async def test_input_can_be_ended_at_ours_and_the_other_has_no_way_to(place: Place) -> None:
    """9.2, item 16."""
    async with (
        place.harness() as client,
        client.processes.start(["/usr/bin/wc", "-c"], pipe_stdin=True) as process,
    ):
        await process.stdin.write(b"12345")
        assert process.stdin.can_close == place.is_ours
        if place.is_ours:
            await process.stdin.aclose()
            assert b"".join([piece async for piece in process.output()]) == b"5\n"
        else:
            with pytest.raises(StdinUnavailable):
                await process.stdin.aclose()


async def test_input_is_at_its_end_where_none_was_asked_for(place: Place) -> None:
    async with place.harness() as client:
        assert (await client.run(["/bin/cat"])).exit_code == 0


async def test_an_interrupt_reaches_the_group(place: Place) -> None:
    async with place.talk() as client:
        await client.start(
            "p", "/bin/sh", "-c", "trap 'echo caught; exit 7' INT; echo up; while :; do sleep 0.05; done"
        )
        await wait_output(client, "p", b"up\n")
        assert await client.call("process/signal", processId="p", signal="interrupt") == {}
        await client.finish("p")
        exited = await client.wait_news("process/exited", "p")
        again = await client.call("process/signal", processId="p", signal="interrupt")
        unknown = await client.call("process/signal", processId="no", signal="interrupt")
        other = await refusal(client, "process/signal", processId="p", signal="kill")

        assert (exited["exitCode"], client.output("p")) == (7, b"up\ncaught\n")
        assert again == unknown == {}
        assert other == (INVALID_PARAMS, "unknown variant `kill`, expected `interrupt`")


async def test_a_termination_kills_the_group_and_tells_whether_it_ran(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "trap '' TERM INT; sleep 100 & echo $!; wait")
        child = int(await wait_output(client, "p", b"\n"))
        assert await client.call("process/terminate", processId="p") == {"running": True}
        await client.finish("p")
        exited = await client.wait_news("process/exited", "p")

        assert exited["exitCode"] == 128 + signal.SIGKILL
        assert await client.call("process/terminate", processId="p") == {"running": False}
        assert await client.call("process/terminate", processId="no") == {"running": False}
        await process_end(child)


async def test_a_process_killed_by_a_signal_exits_with_128_more(place: Place) -> None:
    async with place.harness() as client:
        for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
            assert (await client.run(["/bin/sh", "-c", f"kill -{int(number)} $$"])).exit_code == 128 + number


async def test_a_process_leads_its_group_and_session(place: Place) -> None:
    async with place.harness() as client:
        told = (await client.run(["/bin/sh", "-c", "echo $$; cut -d' ' -f5,6 /proc/$$/stat"])).stdout.split()

        assert len(set(told)) == 1


async def test_a_process_gets_exactly_the_variables_it_was_given(place: Place) -> None:
    async with place.harness() as client:
        bare = await client.run(["/usr/bin/env"])
        given = await client.run(["/usr/bin/env"], env={"A": "1", "B": ""})
        # A bare name is found although the process has no PATH.
        found = await client.run(["env"], env={})

        assert bare.stdout == found.stdout == b""
        assert sorted(given.stdout.split(b"\n")) == [b"", b"A=1", b"B="]


async def test_a_policy_says_what_is_inherited(place: Place) -> None:
    policy = EnvironmentPolicy(
        inherit=EnvironmentInherit.ALL,
        ignore_default_excludes=False,
        exclude=("HO*",),
        set={"SET": "s"},
        include_only=("PATH", "SET"),
    )
    async with place.harness() as client:
        told = await client.run(["/usr/bin/env"], env={"GIVEN": "g"}, env_policy=policy)

        names = sorted(line.split(b"=")[0] for line in told.stdout.splitlines())
        assert names == [b"GIVEN", b"PATH", b"SET"]


async def test_a_process_runs_where_and_under_the_name_it_was_told(place: Place) -> None:
    (place.root / "sp ace").mkdir()
    async with place.harness() as client:
        where = await client.run(["/bin/pwd"], cwd=place.root / "sp ace")
        async with client.processes.start(["/bin/sh", "-c", "echo $0"], arg0="my name") as process:
            named = b"".join([piece async for piece in process.output()])

        assert where.stdout.decode().strip() == str(place.root / "sp ace")
        assert named == b"my name\n"


async def test_a_terminal_is_one_stream_of_24_rows_and_80_columns(place: Place) -> None:
    async with place.harness() as client:
        argv = ["/bin/sh", "-c", "tty >/dev/null && stty size; echo err >&2; echo ${TERM-unset}"]
        async with client.processes.start(argv, tty=True) as process:
            pieces = [piece async for piece in process.chunks()]
            assert await process.wait() == 0

        chunks = [piece for piece in pieces if not isinstance(piece, OutputGap)]
        assert {chunk.stream for chunk in chunks} == {Stream.PTY}
        assert b"".join(chunk.chunk for chunk in chunks).split() == [b"24", b"80", b"err", b"unset"]


async def test_control_characters_of_a_terminal_mean_what_they_mean(place: Place) -> None:
    async with place.harness() as client:
        async with client.processes.start(["/bin/cat"], tty=True) as process:
            await process.stdin.write(b"line\n\x04")
            assert await process.wait() == 0
        async with client.processes.start(["/bin/cat"], tty=True) as process:
            await process.stdin.write(b"word\n")
            said = b""
            async for piece in process.output():
                said += piece
                if said.count(b"word") == 2:  # The terminal's echo, and then what `cat` says of it.
                    break
            await process.stdin.write(b"\x03")
            # The other has no word for a signal where there is a terminal: any of them is 1.
            assert await process.wait() == (128 + signal.SIGINT if place.is_ours else 1)


async def test_a_large_output_arrives_whole(place: Place) -> None:
    async with place.harness() as client:
        told = await client.run(["/bin/sh", "-c", "seq 1 300000; echo over >&2"])

        assert told.stdout == b"".join(b"%d\n" % n for n in range(1, 300_001))
        assert told.stderr == b"over\n"


async def test_what_is_wrong_with_a_command_is_told_by_type(place: Place) -> None:
    async with place.harness() as client:
        with pytest.raises(RequestRejected, match=re.escape("No such file or directory (os error 2)")) as refused:
            await client.run(["/no/such"])

        assert refused.value.code == INTERNAL


async def test_a_process_lives_through_a_lost_connection_and_what_it_wrote_can_be_read(place: Place) -> None:
    async with place.talk() as client:
        await client.start("p", "/bin/sh", "-c", "echo before; read line; echo $line; read line", pipeStdin=True)
        await wait_output(client, "p", b"before\n")
        session_id = client.session_id
    async with place.talk(greet=False) as client:
        await resume(client, session_id)
        await client.call("process/write", processId="p", writeId="1", chunk=b64(b"after\n"))
        await wait_output(client, "p", b"before\nafter\n")


async def resume(client: Client, session_id: str) -> None:
    """The other end may learn a moment later than we that the connection before this one is gone."""

    async def is_free() -> bool:
        try:
            assert await client.greet(session_id) == session_id
        except Refused as refused:
            if refused.code != -32010:
                raise
            return False
        return True

    await eventually(is_free)
