"""What stands around an engine process, and what becomes of it when those who started it are gone."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from actors.sessions.grpc import CallFailed, open_channel
from actors.sessions.host import WALLS, Engine, HostOptions, ListenRefused, WallsMissing, open_host
from actors.sessions.host import _opening as hosts
from actors.sessions.host._launching import GuardLauncher, PlainLauncher
from supervision import ChildSpec, open_root
from tests.actors.sessions.host.peer import open_peer
from tests.support.skips import needs_system, skip

pytestmark = needs_system(sys.platform == "linux", "Linux")

PROBE = """
import ctypes, os, pathlib, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
tries = {
    "read": lambda: pathlib.Path("/etc/passwd").read_text(),
    "environment of others": lambda: pathlib.Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "list": lambda: os.listdir("/"),
    "write": lambda: pathlib.Path("/tmp/greenroom-escaped").write_text(""),
    "socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "unix": lambda: socket.socket(socket.AF_UNIX).connect("/run/any"),
    "fork": lambda: os.fork() or os._exit(0),
    "program": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "other program": lambda: os.execv("/bin/true", ["true"]),
    "signal": lambda: os.kill(os.getppid(), 0),
    "trace": lambda: call({"x86_64": 101, "aarch64": 117}[os.uname().machine], 16, os.getppid(), 0, 0),
    "io_uring": lambda: call(425, 1, 0),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name, "worked")
    except (OSError, PermissionError):
        print(name, "refused")
def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False
print("open", "-".join(str(number) for number in range(256) if is_open(number)))
pathlib.Path("own").write_text("")
print("own place", "worked", flush=True)
"""


@pytest.fixture
async def launcher(tmp_path: Path) -> AsyncIterator[GuardLauncher]:
    engine = Engine(kind="node", path=sys.executable, version="0.0.0", found="the test")
    launcher = GuardLauncher(engine, str(tmp_path))
    async with open_root("guarded") as root:
        await root.start_child(ChildSpec("guard", launcher.run))
        yield launcher


async def read_all(stream: trio.abc.ReceiveStream | None) -> str:
    assert stream is not None
    async with stream:
        return b"".join([bytes(part) async for part in stream]).decode()


async def ended(handle: int) -> None:
    """Wait until a process is gone, whoever's child it is."""
    with trio.fail_after(10):
        await trio.lowlevel.wait_readable(handle)
    os.close(handle)


async def test_a_process_behind_the_walls_reaches_nothing_but_its_own_place(
    launcher: GuardLauncher, tmp_path: Path
) -> None:
    """Killed: descriptors of the guard that the program inherits, the socket to the host among them."""
    process, walls = await launcher.start([sys.executable, "-I", "-S", "-c", PROBE], {}, str(tmp_path))
    if set(walls.active) != set(WALLS):
        skip(f"a wall of {dict(walls.missing)}", "use a Linux with Landlock and seccomp")
    said = await read_all(process.stdout)

    lines = dict(line.rsplit(" ", 1) for line in said.splitlines())
    assert lines.pop("own place") == "worked"
    assert lines.pop("open") == "0-1-2"
    assert set(lines.values()) == {"refused"}, lines
    assert await process.wait() == 0


async def test_a_process_ends_with_its_guard_and_the_next_gets_a_new_one(
    launcher: GuardLauncher, tmp_path: Path
) -> None:
    endless = [sys.executable, "-I", "-S", "-c", "print(1, flush=True)\nwhile True: pass"]
    first, _ = await launcher.start(endless, {}, str(tmp_path))
    handle = os.pidfd_open(first.pid)
    assert launcher._guard is not None
    launcher._guard.kill()
    await ended(handle)
    code = await first.wait()
    second, _ = await launcher.start([sys.executable, "-I", "-S", "-c", "print(2)"], {}, str(tmp_path))

    assert code == -signal.SIGKILL
    assert (await read_all(second.stdout)).strip() == "2"


async def test_a_start_that_is_given_up_leaves_no_process(launcher: GuardLauncher, tmp_path: Path) -> None:
    endless = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    with trio.CancelScope() as scope:
        scope.cancel()
        await launcher.start(endless, {}, str(tmp_path))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(launcher.start, endless, {}, str(tmp_path))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    # Orders are carried out in turn: what was given up is gone when this one is there.
    process, _ = await launcher.start([sys.executable, "-I", "-S", "-c", ""], {}, str(tmp_path))
    await process.wait()

    assert launcher._processes == {}
    assert launcher._orders == {}


async def test_a_program_that_cannot_be_started_is_told_by_its_end(launcher: GuardLauncher, tmp_path: Path) -> None:
    process, _ = await launcher.start(["/bin/no-such-program"], {}, str(tmp_path))

    assert await process.wait() == 127
    assert "No such file" in await read_all(process.stderr) or "denied" in await read_all(process.stderr)


async def test_walls_that_are_required_and_missing_keep_a_host_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "launcher_for", lambda *_: PlainLauncher("the kernel is too old"))
    with pytest.raises(WallsMissing, match="without no_new_privs, landlock, seccomp") as missing:
        async with open_host("grpc://127.0.0.1:0", options=HostOptions(walls_required=True, warm_engines=0)):
            pass

    assert set(missing.value.missing) == set(WALLS)


@pytest.mark.parametrize("listen", ["grpc://0.0.0.0:0", "grpc://[::]:0", "grpc://example.org:0"])
async def test_a_host_that_others_can_reach_needs_a_token_and_tls(listen: str) -> None:
    with pytest.raises(ListenRefused, match="no TLS certificate"):
        async with open_host(listen, options=HostOptions(token="t")):
            pass


HOST = (sys.executable, "-W", "error", "-m", "actors.cli", "codemode-host", "--json")


def start_host() -> subprocess.Popen[bytes]:
    return subprocess.Popen([*HOST, "--warm-engines", "1"], stdout=subprocess.PIPE)


def engines_of(pid: int) -> set[int]:
    """The grandchildren: children of the guard."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return {int(one) for child in children for one in Path(f"/proc/{child}/task/{child}/children").read_text().split()}


@pytest.mark.slow
async def test_an_engine_in_an_endless_loop_ends_with_its_host_however_that_ends() -> None:
    """Killed: a guard that waits for its children instead of killing them."""
    with start_host() as host:
        assert host.stdout is not None
        told = json.loads(await trio.to_thread.run_sync(host.stdout.readline))
        with pytest.RaisesGroup(CallFailed, flatten_subgroups=True):
            async with open_channel(told["url"]) as channel, trio.open_nursery() as nursery:
                peer = await open_peer(channel, nursery)
                await peer.run("for (;;);", yield_time_ms=200)
                handles = [os.pidfd_open(pid) for pid in engines_of(host.pid)]
                host.kill()
                for handle in handles:
                    await ended(handle)
                await trio.sleep_forever()

    assert handles
