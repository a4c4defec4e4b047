"""What users give wrongly is refused by name and rule, before anything is sent; the client stays as it was."""

import inspect
import math
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from actors.harness import (
    Client,
    HarnessLimits,
    InvalidArgument,
    Process,
    Processes,
    ProgramNotFound,
    RecoveryPolicy,
    RequestRejected,
    WebSocketDialer,
    WorkingFolderNotFound,
    open_client,
    shown_url,
)
from actors.harness._processes import start_rejected
from actors.harness.testing import MemoryNetwork
from actors.protocol import EnvironmentInherit, EnvironmentPolicy, ErrorCode, StartParams
from tests.actors.harness.world import URL, open_world

POLICY = EnvironmentPolicy(
    inherit=EnvironmentInherit.NONE, ignore_default_excludes=False, exclude=(), set={}, include_only=()
)


async def refused(client: Client, use: Callable[[], Awaitable[object]], field: str) -> str:
    """Use something wrongly; gives the words of the refusal, and shows that the client goes on."""
    with pytest.raises(InvalidArgument) as refusal:
        await use()

    assert refusal.value.field == field
    assert client.statistics().followed_processes == 0
    assert (await client.run(["echo", "well"])).stdout == b"well\n"
    return str(refusal.value)


@pytest.mark.parametrize(
    ("argv", "options", "field"),
    [
        ("ls", {}, "argv"),
        (5, {}, "argv"),
        (None, {}, "argv"),
        ({"ls": 1}, {}, "argv"),
        ([5], {}, "argv[0]"),
        (["echo", "\ud800"], {}, "argv[1]"),
        (["echo"], {"env": 5}, "env"),
        (["echo"], {"env": [("A", "b")]}, "env"),
        (["echo"], {"env": {"A": 5}}, "env['A']"),
        (["echo"], {"env": {"A": "\udcff"}}, "env['A']"),
        (["echo"], {"env": {"A=B": "1"}}, "env"),
        (["echo"], {"cwd": 5}, "cwd"),
        (["echo"], {"cwd": b"/tmp"}, "cwd"),
        (["echo"], {"stdin": "text"}, "stdin"),
        (["echo"], {"tty": "yes"}, "tty"),
        (["echo"], {"check": 1}, "check"),
        (["echo"], {"env_policy": 5}, "env_policy"),
        (["echo"], {"env_policy": attrs.evolve(POLICY, exclude=(5,))}, "env_policy"),
        (["echo"], {"env_policy": attrs.evolve(POLICY, inherit="all")}, "env_policy.inherit"),
        (["echo"], {"timeout_s": "1"}, "timeout_s"),
        (["echo"], {"timeout_s": math.nan}, "timeout_s"),
        (["echo"], {"timeout_s": True}, "timeout_s"),
        (["echo"], {"output_bytes_max": -3}, "output_bytes_max"),
        (["echo"], {"output_bytes_max": 1.5}, "output_bytes_max"),
    ],
)
async def test_a_command_of_another_kind(
    argv: Any, options: dict[str, Any], field: str, autojump_clock: object
) -> None:
    async with open_world() as world:
        await refused(world.client, lambda: world.client.run(argv, **options), field)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"process_id": 5}, "process_id"),
        ({"process_id": "\ud800"}, "process_id"),
        ({"arg0": b"x"}, "arg0"),
        ({"arg0": "\0"}, "arg0"),
        ({"pipe_stdin": "yes"}, "pipe_stdin"),
        ({"metadata": object()}, "metadata"),
        ({"metadata": math.nan}, "metadata"),
    ],
)
async def test_a_start_of_another_kind(options: dict[str, Any], field: str, autojump_clock: object) -> None:
    async with open_world() as world:

        async def start() -> None:
            async with world.client.processes.start(["echo"], **options):
                pass

        await refused(world.client, start, field)


async def test_a_secret_value_is_not_in_its_refusal(autojump_clock: object) -> None:
    async with open_world() as world:
        words = await refused(world.client, lambda: world.client.run(["echo"], env={"A": "se\0cret"}), "env['A']")

    assert "cret" not in words


USES: list[tuple[Callable[[Process], Any], str]] = [
    (lambda process: process.stdin.write("text"), "data"),
    (lambda process: process.stdin.write(5), "data"),
    (lambda process: process.signal("kill"), "signal"),
    (lambda process: process.terminate(grace_s=-1), "grace_s"),
    (lambda process: process.terminate(grace_s=math.nan), "grace_s"),
    (lambda process: process.terminate(grace_s="1"), "grace_s"),
    (lambda process: process.output("stdout"), "streams"),
    (lambda process: process.text("stdout"), "streams"),
    (lambda process: process.lines("stdout"), "streams"),
]


@pytest.mark.parametrize(("use", "field"), USES)
async def test_a_process_used_with_another_kind(
    use: Callable[[Process], Any], field: str, autojump_clock: object
) -> None:
    async with open_world() as world, world.client.processes.start(["cat"], pipe_stdin=True) as process:
        with pytest.raises(InvalidArgument) as refusal:
            await use(process)
        await process.stdin.write(bytearray(b"on"))
        await process.stdin.aclose()

        assert refusal.value.field == field
        assert b"".join([piece async for piece in process.output()]) == b"on"


async def test_another_signal_is_refused_with_what_can_be_done_instead(autojump_clock: object) -> None:
    async with open_world() as world, world.client.processes.start(["cat"], pipe_stdin=True) as process:
        with pytest.raises(InvalidArgument) as refusal:
            await process.signal(signal.SIGTERM)  # type: ignore[arg-type]
        await process.terminate()

    assert str(refusal.value) == (
        "signal: must be actors.protocol.Signal.INTERRUPT, not Signals: the protocol has no other; "
        "signal() alone sends it, and terminate(grace_s=...) asks with SIGTERM and then kills"
    )


async def test_an_endless_grace_is_as_good_as_a_day(autojump_clock: object) -> None:
    async with open_world() as world, world.client.processes.start(["cat"], pipe_stdin=True) as process:
        assert await process.terminate(grace_s=math.inf)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"url": 5}, "url"),
        ({"url": b"ws://memory"}, "url"),
        ({"client_name": 5}, "client_name"),
        ({"resume_session_id": 5}, "resume_session_id"),
        ({"recovery": 5}, "recovery"),
        ({"limits": 5}, "limits"),
        ({"on_change": 5}, "on_change"),
        ({"new_id": 5}, "new_id"),
    ],
)
async def test_a_client_opened_with_another_kind(options: dict[str, Any], field: str) -> None:
    dialled = trio.Event()

    async def serve(_: object) -> None:
        dialled.set()

    with pytest.raises(InvalidArgument) as refusal:
        async with open_client(**({"url": URL, "dialer": MemoryNetwork(serve)} | options)):
            pass

    assert refusal.value.field == field
    assert not dialled.is_set()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (HarnessLimits, {"initialize_s": "10"}),
        (HarnessLimits, {"pong_s": None}),
        (HarnessLimits, {"info_s": math.nan}),
        (HarnessLimits, {"pending_calls": 1.5}),
        (HarnessLimits, {"held_bytes": True}),
        (RecoveryPolicy, {"budget_s": "25"}),
        (RecoveryPolicy, {"first_delay_s": math.nan}),
        (RecoveryPolicy, {"jitter": "0"}),
        (RecoveryPolicy, {"jitter": 2}),
    ],
)
def test_numbers_of_another_kind(kind: Callable[..., object], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        kind(**options)

    assert refusal.value.field == next(iter(options))


@pytest.mark.parametrize(
    "options",
    [
        {"connect_timeout_s": -1},
        {"connect_timeout_s": "10"},
        {"close_timeout_s": math.nan},
        {"message_bytes_max": 0},
        {"bearer_token": 5},
        {"bearer_token": ""},
        {"bearer_token": "line\r\nX-Evil: cret"},
        {"bearer_token": "é"},
        {"ssl_context": 5},
    ],
)
def test_a_dialer_of_another_kind(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        WebSocketDialer(**options)

    assert refusal.value.field == next(iter(options))
    assert "cret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["ws://user:se/cret@h:1", "ws://[cret", "ws://h:99999", "ws://h:cret", "http://h", ""])
async def test_an_address_of_another_shape_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(InvalidArgument, match="must be ws://host:port") as refusal:
        async with open_client(url):
            pass

    assert "cret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ws://user:se/cret@h:1", "ws://h:1"),
        ("ws://user:cret@[::1", "ws://[::1"),
        ("ws://h:1/a@b", "ws://h:1/a@b"),
        ("ws://[::1]:1/a@b?cret", "ws://[::1]:1/a@b"),
    ],
)
def test_an_address_that_cannot_be_read_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("timeout", "timeout: run() has no such option; did you mean timeout_s?"),
        ("environ", "environ: run() has no such option; did you mean env?"),
        ("shell", "shell: run() has no such option; there are env, cwd, stdin, tty, env_policy, timeout_s, check, "),
    ],
)
async def test_an_option_that_is_not_there_is_refused_with_the_one_that_may_be_meant(option: str, told: str) -> None:
    async with open_world() as world:
        options: Any = {option: 3}
        stdin: Any = {"stdin": b"x"}
        said = await refused(world.client, lambda: world.client.run(["echo"], **options), option)
        assert said.startswith(told)

        with pytest.raises(InvalidArgument, match=r"^stdin: start\(\) has no such option; did you mean pipe_stdin"):
            world.client.processes.start(["echo"], **stdin)


@pytest.mark.parametrize("of", [Client.run, Processes.start])
def test_the_options_that_are_named_are_those_that_there_are(of: Callable[..., object]) -> None:
    listed = vars(sys.modules["actors.harness._client" if of is Client.run else "actors.harness._processes"])[
        "_OPTIONS"
    ]

    there_are = [p.name for p in inspect.signature(of).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert there_are == [*listed]


FOLDER = "file:///work/dir%20x"


@pytest.mark.parametrize(
    ("data", "about"),
    [
        ({"kind": "spawnPermissionDenied", "path": "prog"}, "program 'prog'"),
        ({"kind": "spawnPermissionDenied", "path": "/work/dir x"}, "working folder '/work/dir x'"),
        ({"kind": "spawnNotFound"}, "program 'prog' in working folder '/work/dir x'"),
        (None, "program 'prog' in working folder '/work/dir x'"),
        ({"path": 5}, "program 'prog' in working folder '/work/dir x'"),
    ],
)
def test_a_refused_start_says_what_or_where_after_the_words_of_the_executor(data: Any, about: str) -> None:
    params = StartParams(process_id="p", argv=("prog", "--token=secret"), cwd=FOLDER, env={}, tty=False)
    text = "No such file or directory (os error 2)"

    told = start_rejected(RequestRejected(ErrorCode.INTERNAL, text, data), params)

    assert str(told) == f"exec-server rejected request (-32603): {text}: {about}"
    assert (told.code, told.message, told.data) == (ErrorCode.INTERNAL, text, data)


@pytest.mark.parametrize(
    ("program", "env", "advice"),
    [
        (
            "prog",
            {},
            "it is in no folder of the executor's own PATH; install it there, give its absolute path, or a PATH in env",
        ),
        (
            "prog",
            {"PATH": "/nowhere"},
            "it is in no folder of the PATH that env gives; add its folder, or give its absolute path",
        ),
        ("/bin/prog", {}, "look on the executor's machine for it, and for what its first line names if it is a script"),
    ],
)
def test_a_missing_program_says_where_it_was_looked_for_and_what_to_do(
    program: str, env: dict[str, str], advice: str
) -> None:
    """Killed the mutants that forget the PATH of the call, and that take a path for a name."""
    params = StartParams(process_id="p", argv=(program,), cwd=FOLDER, env=env, tty=False)
    data = {"kind": "spawnNotFound", "path": program}

    told = start_rejected(RequestRejected(ErrorCode.INTERNAL, "No such file", data), params)

    assert type(told) is ProgramNotFound
    assert str(told) == f"exec-server rejected request (-32603): No such file: program '{program}'; {advice}"
    assert told.data == data


def test_a_missing_working_folder_has_a_type_and_says_what_to_do() -> None:
    params = StartParams(process_id="p", argv=("prog",), cwd=FOLDER, env={}, tty=False)
    data = {"kind": "spawnNotFound", "path": "/work/dir x"}

    told = start_rejected(RequestRejected(ErrorCode.INTERNAL, "No such file", data), params)

    assert type(told) is WorkingFolderNotFound
    assert str(told).endswith(
        "No such file: working folder '/work/dir x'; make this folder on the executor's machine, or give another"
    )


def test_a_start_that_breaks_a_rule_is_told_in_the_words_of_the_executor_alone() -> None:
    params = StartParams(process_id="p", argv=("prog",), cwd=FOLDER, env={}, tty=False)
    rejected = RequestRejected(ErrorCode.INVALID_REQUEST, "process p already exists")

    assert start_rejected(rejected, params) is rejected
