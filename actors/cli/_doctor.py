"""Look at the interpreter, the installed packages and the machine for what is in the way."""

import importlib.metadata
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Final

from actors.cli._findings import Finding, Verdict, as_json, as_text, worst

__all__ = ["doctor", "examine"]

_FILES_WANTED: Final = 1024
_PROCESS_WAIT_S: Final = 5.0
_INSTALL: Final = "in the folder of greenroom, pip install '.[sessions]'"


def doctor(*, json_wanted: bool) -> int:
    """Print every finding; the exit code is 1 when one of them is a fault."""
    findings = examine()
    print(json.dumps(as_json(findings)) if json_wanted else as_text(findings))
    return 1 if worst(findings) is Verdict.FAULT else 0


def examine() -> list[Finding]:
    """Run every check. A check that itself breaks is a fault, and the others still run."""
    return [_made(name, check) for name, check in CHECKS.items()]


def _made(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:  # The doctor reports whatever it meets; it must not be the patient.
        return Finding(check=name, verdict=Verdict.FAULT, seen=f"{type(error).__name__}: {error}")


def _interpreter() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    return Finding(
        check="python",
        verdict=Verdict.OK if fits else Verdict.FAULT,
        seen=f"{sys.implementation.name} {version}",
        remedy="" if fits else "use Python 3.11 or newer",
    )


def _versions() -> Finding:
    names = ("greenroom", "trio", "attrs", "cattrs", "trio-websocket")
    return Finding(check="packages", verdict=Verdict.OK, seen=", ".join(f"{name} {_version(name)}" for name in names))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(a checkout, not installed)"


def _supervision_is_ours() -> Finding:
    """An unrelated distribution installs a package of the same name; whichever came last has won."""
    owners = sorted(set(importlib.metadata.packages_distributions().get("supervision", [])))
    alone = owners in ([], ["greenroom"])
    return Finding(
        check="supervision",
        verdict=Verdict.OK if alone else Verdict.FAULT,
        seen=f"the package `supervision` comes from {', '.join(owners) or 'a checkout'}",
        remedy="" if alone else "keep the other one in another environment, then install greenroom again",
    )


def _loopback() -> Finding:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=_PROCESS_WAIT_S):
            return Finding(check="loopback", verdict=Verdict.OK, seen=f"127.0.0.1:{port} was listened on and dialled")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= _FILES_WANTED
    return Finding(
        check="open files",
        verdict=Verdict.OK if enough else Verdict.WARNING,
        seen=f"{soft} at once (at most {hard})",
        remedy="" if enough else f"ulimit -n {_FILES_WANTED}: a connection takes one, a process up to four",
    )


def _process_groups() -> Finding:
    """A command and all it started must die together, so a group kill has to work."""
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        os.killpg(sleeper.pid, signal.SIGKILL)
        code = sleeper.wait(_PROCESS_WAIT_S)
    finally:
        sleeper.kill()
        sleeper.communicate()
    works = code == -signal.SIGKILL
    return Finding(
        check="process groups",
        verdict=Verdict.OK if works else Verdict.FAULT,
        seen="a group was started and killed" if works else f"the killed process ended with {code}",
        remedy="" if works else "run where setsid and killpg are allowed",
    )


def _temporary_files() -> Finding:
    with tempfile.TemporaryDirectory() as place:
        return Finding(check="temporary files", verdict=Verdict.OK, seen=f"{os.path.dirname(place)} can be written")


def _javascript() -> Finding:
    """Code sessions are optional, so what they lack is no fault."""
    try:
        from actors.sessions.host import EngineNotFound, find_engine
    except ImportError as missing:
        return _no_javascript(str(missing), f"{_INSTALL}, for code sessions")
    try:
        engine = find_engine()
    except EngineNotFound as missing:
        return _no_javascript("; ".join(missing.looked), f"{_INSTALL} or '.[sessions-node]'")
    seen = f"{engine.kind} {engine.version} ({engine.found})"
    try:
        # The version of a package is read without starting it: a program for another system shows only here.
        subprocess.run(  # noqa: S603  # The program that a host would start.
            [engine.path, "--version"], capture_output=True, check=True, timeout=_PROCESS_WAIT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        return _no_javascript(f"{seen} does not start: {error}", "name another engine to the host, or remove this one")
    return Finding(check="javascript", verdict=Verdict.OK, seen=seen)


def _no_javascript(seen: str, remedy: str) -> Finding:
    return Finding(check="javascript", verdict=Verdict.WARNING, seen=seen, remedy=remedy)


CHECKS: Final[dict[str, Callable[[], Finding]]] = {
    "python": _interpreter,
    "packages": _versions,
    "supervision": _supervision_is_ours,
    "loopback": _loopback,
    "open files": _open_files,
    "process groups": _process_groups,
    "temporary files": _temporary_files,
    "javascript": _javascript,
}
