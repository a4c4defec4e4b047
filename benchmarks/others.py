"""How do triotp, pykka and Erlang answer the same three questions on the same machine?

triotp and pykka are installed into `.venvs/peers` by the interpreter they need; what cannot be installed or found is
left out, and the table says why.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks._harness import REPEATS, ROOT, Result, emit, measure
from benchmarks.ask import ask
from benchmarks.mailbox import tell_at_once

PEERS = Path(__file__).parent / "peers"
VENV = ROOT / ".venvs" / "peers"
QUESTIONS = {"tell": "messages/s", "ask": "asks/s", "ask100": "asks/s"}


class Absent(Exception):
    """A peer that cannot be measured here, and why."""


def run(*command: str | Path, timeout_s: float = 600) -> str:
    """Run a command; what it prints, or why it failed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise Absent((done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:200])
    return done.stdout


def newest_python() -> str:
    """The newest interpreter on the path: triotp needs 3.12 or later."""
    for minor in (14, 13, 12):
        name = shutil.which(f"python3.{minor}")
        if name and not subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode:
            return name
    return sys.executable


def python_of_peers() -> Path:
    """Make the peers' own environment, once."""
    python = VENV / "bin" / "python"
    if not python.exists():
        run(newest_python(), "-m", "venv", VENV)
    return python


def python_peer(package: str) -> dict[str, float]:
    python = python_of_peers()
    run(python, "-m", "pip", "install", "--quiet", package)
    numbers: dict[str, float] = json.loads(run(python, PEERS / f"{package}_counter.py", str(REPEATS)))
    return numbers


def erlang() -> dict[str, float]:
    if shutil.which("erlc") is None:
        raise Absent("erlc is not installed (Debian: apt-get install erlang-base)")
    with tempfile.TemporaryDirectory() as folder:
        run("erlc", "-o", folder, PEERS / "counter.erl")
        said = run("erl", "-noshell", "+S", "1:1", "-pa", folder, "-eval", f"counter:main(['{REPEATS}']), halt().")
    numbers: dict[str, float] = json.loads(said.strip().splitlines()[-1])
    return numbers


def main() -> list[Result]:
    tell, one, hundred = measure(tell_at_once, partial(ask, 1), partial(ask, 100))
    ours = {"tell": tell.value, "ask": one.value, "ask100": hundred.value}
    results: list[Result] = []
    peers: dict[str, Callable[[], dict[str, float]]] = {
        "triotp": partial(python_peer, "triotp"),
        "pykka": partial(python_peer, "pykka"),
        "Erlang/OTP, 1 scheduler": erlang,
    }
    for peer, measured in peers.items():
        try:
            numbers = measured()
        except (Absent, subprocess.TimeoutExpired, ValueError) as absent:
            results.append(Result(question=f"{peer}", unit="", value=0.0, note=f"skipped: {absent}"))
            continue
        results += [
            Result(
                question=f"{question}, beside {peer}", unit=unit, value=ours[question], beside=peer,
                beside_value=numbers[question], note=f"{ours[question] / numbers[question]:.2f} x",
            )
            for question, unit in QUESTIONS.items()
        ]  # fmt: skip
    return results


if __name__ == "__main__":
    emit(main())
