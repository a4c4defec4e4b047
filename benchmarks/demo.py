"""How long does `greenroom demo` take, from the command to its last line? (s of wall time; bar 20)

The command is run as a user runs it, in a process of its own, several times; the median is told, with the CPU time of
it and of all it started. On a busy machine only the CPU time is steady.

    python benchmarks/demo.py [--times 3]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

BAR_S = 20.0


def once() -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and the number of claims that held, of one run."""
    cpu_before = children_cpu_s()
    begun_s = time.monotonic()
    # `-P`: neighbours of this file have the names of packages.
    told = subprocess.run(
        [sys.executable, "-P", "-m", "actors.cli", "demo", "--json"], check=True, capture_output=True, text=True
    )
    took_s = time.monotonic() - begun_s
    return took_s, children_cpu_s() - cpu_before, json.loads(told.stdout.splitlines()[-1])["held"]


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3, help="how often it is run (%(default)s)")
    runs = [once() for _ in range(parser.parse_args().times)]
    wall_s, cpu_s = (statistics.median(run[part] for run in runs) for part in (0, 1))
    met = wall_s < BAR_S
    judgement = f"bar < {BAR_S:.0f} s: {'met' if met else 'MISSED'}"
    print(f"demo: {wall_s:.1f} s ({cpu_s:.1f} s of CPU), {runs[0][2]} claims held; {judgement}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
