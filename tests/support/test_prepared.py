"""Programs run from a prepared process end as they would in a fresh one."""

import signal

from tests.support.prepared import open_prepared


def test_a_program_runs_alone_and_all_it_says_is_told() -> None:
    with open_prepared() as prepared:
        well = prepared.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")
        unimported = prepared.run("trio")
        forgotten = prepared.run("async def work(): ...\nwork()")
        killed = prepared.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        after_all = prepared.run("print(__name__)")

    assert well == (3, "out\n", "err\n")
    assert unimported[0] == 1
    assert "NameError: name 'trio' is not defined" in unimported[2]
    assert "coroutine 'work' was never awaited" in forgotten[2]
    assert killed == (-signal.SIGKILL, "", "")
    assert after_all == (0, "__main__\n", "")
