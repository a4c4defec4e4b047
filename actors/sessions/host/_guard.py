"""A small program between a host and its engines: starts each behind walls, and ends all when the host is gone.

It is run, not imported: `python -I -S _guard.py SOCKET CONFIG`. It has one thread, so that what it forks may be made
ready in Python and may ask to die with it, which Linux ties to the thread that forked. The host ends, however it ends,
and the socket closes: then every engine is killed, also one in an endless loop. Whatever wall cannot be had is
reported, with the reason; the host decides whether that will do.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 38, 22
_MESSAGE_BYTES: Final = 64 * 1024
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def _only_wakes(number: int, frame: object, /) -> None:
    """Take a signal whose only use is that it interrupts the wait."""


class Missing(Exception):
    """A wall that cannot be had here, and why."""


# --- Landlock: files, network and signals

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_IOCTL_DEV: Final = 1 << 14


def landlock(config: dict[str, list[str]]) -> int:
    """Make the rules: nothing but what is named may be read, run or written, and nothing dialled."""
    abi = _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        raise Missing(f"this kernel has no Landlock ({os.strerror(ctypes.get_errno())})")
    bits = 13 + (abi >= 2) + (abi >= 3) + (abi >= 5)
    handled = (1 << bits) - 1
    net, scoped = (3 if abi >= 4 else 0), (3 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    attributes = struct.pack("<QQQ", handled, net, scoped)[:size]
    rules: int = _LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        raise Missing(f"Landlock refused the rules: {os.strerror(ctypes.get_errno())}")
    reading, every = _READ_FILE | _READ_DIR, handled & ~_EXECUTE
    for key, rights in (("read", reading), ("execute", reading | _EXECUTE), ("write", every)):
        for path in config[key]:
            _grant(rules, path, rights)
    return rules


def _grant(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there needs no right.
    if not os.path.isdir(path):
        rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _IOCTL_DEV
    done = _LIBC.syscall(_ADD_RULE, rules, 1, struct.pack("<Qi", rights, place), ctypes.c_uint32(0))
    failed = ctypes.get_errno()
    os.close(place)
    if done:
        raise Missing(f"Landlock refused a rule for {path}: {os.strerror(failed)}")


def restrict(rules: int) -> None:
    """Stand behind the rules for good."""
    if _LIBC.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)):
        raise Missing(f"Landlock could not be switched on: {os.strerror(ctypes.get_errno())}")


# --- seccomp: calls that no engine makes

_ALLOW, _DENY, _ABSENT, _KILL = 0x7FFF_0000, 0x0005_0000 | errno.EPERM, 0x0005_0000 | errno.ENOSYS, 0x8000_0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_CLONE_THREAD: Final = 0x0001_0000
_AF_UNIX: Final = 1
# The architecture as the kernel names it; its numbers of socket, clone and clone3; and of what is always refused:
# connect bind listen accept accept4, fork vfork, ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd,
# mount umount2 pivot_root chroot swapon swapoff reboot, open_tree move_mount fsopen fsconfig fsmount fspick
# mount_setattr, init_module finit_module delete_module kexec_load kexec_file_load, bpf perf_event_open userfaultfd,
# io_uring_setup io_uring_enter io_uring_register, add_key request_key keyctl, unshare setns open_by_handle_at
# name_to_handle_at, acct quotactl settimeofday clock_settime adjtimex clock_adjtime.
_ARCHITECTURES: Final[dict[str, tuple[int, int, int, int, tuple[int, ...]]]] = {
    "x86_64": (
        0xC000_003E, 41, 56, 435,
        (
            42, 49, 50, 43, 288, 57, 58, 101, 310, 311, 312, 438,
            165, 166, 155, 161, 167, 168, 169, 428, 429, 430, 431, 432, 433,
            442, 175, 313, 176, 246, 320, 321, 298, 323,
            425, 426, 427, 248, 249, 250, 272, 308, 304,
            303, 163, 179, 164, 227, 159, 305,
        ),
    ),
    "aarch64": (
        0xC000_00B7, 198, 220, 435,
        (
            203, 200, 201, 202, 242, 117, 270, 271, 272, 438,
            40, 39, 41, 51, 224, 225, 142, 428, 429, 430, 431, 432, 433,
            442, 105, 273, 106, 104, 294, 280, 241, 282,
            425, 426, 427, 217, 218, 219, 97, 268, 265,
            264, 89, 60, 170, 112, 171, 266,
        ),
    ),
}  # fmt: skip


def seccomp_program() -> bytes:
    """Write the filter."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise Missing(f"there is no list of calls for {machine}")
    architecture, socket_call, clone, clone3, refused = _ARCHITECTURES[machine]
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0), (_AT_LEAST, 0, 1, 0x4000_0000), (_RETURN, 0, 0, _DENY),  # x32 on x86; free elsewhere.
        (_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _ABSENT),  # Its flags cannot be seen; libraries then use clone.
        (_EQUAL, 0, 3, clone), (_LOAD, 0, 0, 16), (_ANY_BIT, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, 0), (_EQUAL, 0, 3, socket_call), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, _AF_UNIX),
        (_RETURN, 0, 0, _DENY), (_LOAD, 0, 0, 0),
    ]  # fmt: skip
    for number in refused:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _DENY)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]  # type: ignore[mutable-override]  # ctypes.


def filter_calls(program: bytes) -> None:
    """Refuse the calls for good."""
    written = _Program(len(program) // 8, program)
    if _LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(written), 0, 0):
        raise Missing(f"seccomp refused the filter: {os.strerror(ctypes.get_errno())}")


def renounce_privileges() -> None:
    """Let no program that is started from here gain rights."""
    if _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise Missing(f"no_new_privs was refused: {os.strerror(ctypes.get_errno())}")


# --- the walls together


def _prepared(prepare: Callable[[], Any], use: Callable[[Any], None]) -> Callable[[], None]:
    """Prepare a wall once; what hinders that is said each time it is wanted."""
    try:
        made = prepare()
    except Missing as missing:
        reason = str(missing)

        def refuse() -> None:
            raise Missing(reason)

        return refuse
    return lambda: use(made)


class Walls:
    """What every engine process stands behind."""

    def __init__(self, config: dict[str, list[str]]) -> None:
        self._layers: list[tuple[str, Callable[[], None]]] = [
            ("no_new_privs", renounce_privileges),
            # Made anew by each process: /proc/self is its own then.
            ("landlock", lambda: restrict(landlock(config))),
            ("seccomp", _prepared(seccomp_program, filter_calls)),
        ]

    def raise_up(self) -> dict[str, Any]:
        """Put this process behind them; returns which hold, and why the others do not."""
        active: list[str] = []
        missing: dict[str, str] = {}
        for name, apply in self._layers:
            try:
                apply()
                active.append(name)
            except Missing as why:
                missing[name] = str(why)
        return {"active": active, "missing": missing}


# --- processes


class Guard:
    """Answers one host."""

    def __init__(self, host: socket.socket, walls: Walls) -> None:
        self._host, self._walls = host, walls
        self._children: set[int] = set()
        self._pid = os.getpid()

    def serve(self) -> None:
        """Start what is asked for and tell what has ended, until the host is gone."""
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, _only_wakes)
        waiting = select.poll()
        waiting.register(self._host, select.POLLIN)
        waiting.register(woken, select.POLLIN)
        while True:
            for ready, _ in waiting.poll():
                if ready == woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(woken, 4096)
                    self._reap()
                elif not self._take_order():
                    return

    def _take_order(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._host, _MESSAGE_BYTES, 3)
        except ConnectionError:
            return False  # It went with news of ours unread.
        if not data:
            return False
        order = json.loads(data)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # The program gets them as 0, 1 and 2, and in no other place.
        try:
            self._start(order, descriptors)
        except OSError as refused:
            self._say({"id": order["id"], "failed": str(refused)})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, order: dict[str, Any], descriptors: list[int]) -> None:
        told, tell = os.pipe()  # It closes when the program is there.
        child = os.fork()
        if child == 0:
            self._become(order, descriptors, tell)
        os.close(tell)
        report = b""
        while more := os.read(told, _MESSAGE_BYTES):
            report += more
        os.close(told)
        handle = os.pidfd_open(child)
        self._children.add(child)
        self._say({"id": order["id"], "pid": child, **json.loads(report or b"{}")}, handle)
        os.close(handle)

    def _become(self, order: dict[str, Any], descriptors: list[int], tell: int) -> None:
        """Turn this fork into the program, or into nothing."""
        code = 127
        try:
            signal.set_wakeup_fd(-1)
            for signalled in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signalled, signal.SIG_DFL)
            os.setsid()
            _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() == self._pid:  # Else the guard was gone before that was asked.
                for number, descriptor in enumerate(descriptors):
                    os.dup2(descriptor, number)
                os.chdir(order["cwd"])
                report = self._walls.raise_up()
                os.write(tell, json.dumps(report).encode())
                if order["argv"]:
                    os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606  # What this is for.
                code = 0
        except OSError as refused:
            with contextlib.suppress(OSError):
                os.write(2, f"{refused}\n".encode())
        finally:
            os._exit(code)

    def _reap(self) -> None:
        for child in [*self._children]:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                self._children.discard(child)
                self._say({"ended": child, "code": os.waitstatus_to_exitcode(status)})

    def _say(self, message: dict[str, Any], *descriptors: int) -> None:
        with contextlib.suppress(OSError):  # The host is gone; the next read says so.
            socket.send_fds(self._host, [json.dumps(message).encode()], descriptors)

    def end(self) -> None:
        """Kill whatever is left, and stay until it is gone."""
        for child in self._children:
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)
        for child in self._children:
            with contextlib.suppress(OSError):
                os.waitpid(child, 0)


def main() -> None:
    """Serve the host at the other end of a socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # The host decides; it ends this by going.
    host = socket.socket(fileno=int(sys.argv[1]))
    host.set_inheritable(False)  # Whoever has it can take orders for other programs, and their pipes with them.
    guard = Guard(host, Walls(json.loads(sys.argv[2])))
    try:
        guard.serve()
    finally:
        guard.end()


if __name__ == "__main__":
    main()
