"""An interrupt in the first moments of `greenroom`, while it still imports, ends it in silence."""

import os
import signal
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
# As the script that an installer writes.
GREENROOM = (sys.executable, "-c", "import sys; from _greenroom import main; sys.exit(main())")
# In short sleeps: a signal that comes just before a sleep begins is looked at when that is over.
SLOW = "print('importing', flush=True); [time.sleep(0.01) for _ in range(6_000)]"
SWALLOWING = f"""
try:
    {SLOW}
except BaseException:
    time.sleep(60)
"""


@pytest.mark.parametrize("says", [SLOW, SWALLOWING], ids=["plain", "swallowing"])
@pytest.mark.parametrize(
    ("module", "arguments"),
    [("trio", ["--help"]), ("attrs", ["demo"]), ("noise", ["run", "x", "--", "true"])],
)
def test_an_interrupt_while_it_imports_is_130_and_not_a_word(
    tmp_path: Path, module: str, arguments: list[str], says: str
) -> None:
    """Seen failing with `actors.cli:main` (traceback, killed by the signal) and where only the exception is caught."""
    (tmp_path / f"{module}.py").write_text(f"import time\n{says}")
    process = subprocess.Popen(
        [*GREENROOM, *arguments],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "importing\n"

            process.send_signal(signal.SIGINT)

            assert process.communicate(timeout=30) == ("", "")
            assert process.returncode == 130
        finally:
            process.kill()


def test_who_has_interrupts_ignored_is_not_ended_by_one(tmp_path: Path) -> None:
    (tmp_path / "trio.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT); raise SystemExit(7)")

    ran = subprocess.run(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {GREENROOM[2]}"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        check=False,
    )

    assert ran.returncode == 7


def test_the_program_starts_outside_all_that_is_slow_to_import() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    entry, _, function = project["project"]["scripts"]["greenroom"].partition(":")
    spec = find_spec(entry)

    assert function == "main"
    assert spec is not None
    assert f"{entry}.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {entry}; print([*map(sys.modules.get, ('actors', 'trio', 'attrs'))])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "[None, None, None]\n"
