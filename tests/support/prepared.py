"""Programs run in processes of their own, without the price of importing the library for each.

One process imports it once and splits off a copy of itself for each program. The program has a `__main__` of its own,
so it must import what it uses; its output, its exit code and what the interpreter says at its end are real.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

PROGRAM_S = 60

FORKING = f"""
import json, os, signal, sys, tempfile, types
import actors.environments, actors.executor, actors.sessions, actors.sessions.grpc, actors.sessions.host

for line in sys.stdin:
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        signal.alarm({PROGRAM_S})
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        out.close()
        err.close()
        break
    _, status = os.waitpid(child, 0)
    said = []
    for stream in (out, err):
        stream.seek(0)
        said.append(stream.read().decode())
        stream.close()
    print(json.dumps([os.waitstatus_to_exitcode(status), *said]), flush=True)
else:
    sys.exit()

program = sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(json.loads(line), "<program>", "exec"), program.__dict__)
"""


class Prepared:
    """A process that has imported the library and runs programs; see `open_prepared`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, program: str) -> tuple[int, str, str]:
        """Run a program to its end: exit code (negative: the signal), output, error output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(program) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return int(code), str(out), str(err)


@contextmanager
def open_prepared() -> Generator[Prepared]:
    """Start such a process; its end is waited for when the block closes."""
    command = [sys.executable, "-W", "error", "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Prepared(process)
