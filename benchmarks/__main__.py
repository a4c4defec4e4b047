"""Ask every question and write the answers: `python -m benchmarks [--quick] [name ...]`.

A whole run at full size writes `benchmarks/results.md` (a table) and `benchmarks/results.svg` (each number against its
bar). How an absolute bar would stand at the reference's speed is shown beside it; see `benchmarks/README.md`.
"""

import argparse
import os
import platform
import sys
from pathlib import Path

import trio

from benchmarks._harness import REFERENCE_SWITCHES, Result, collect
from benchmarks._plot import plot

HERE = Path(__file__).parent
MODULES = ("mailbox", "ask", "spawning", "memory", "machines", "fairness", "others")


def main() -> int:
    """Ask, write, and say whether every bar was met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(MODULES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, for a look")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in MODULES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; choose from {', '.join(MODULES)}")
    if options.quick:
        os.environ |= {"BENCH_SCALE": "0.1", "BENCH_REPEATS": "3"}
    results: list[Result] = []
    for name in options.names or MODULES:
        for result in collect(name):
            results.append(result)
            print(line(result), flush=True)
    if options.quick or options.names:
        print("benchmarks/results.md is left as it was: it holds whole runs at full size")
    else:
        (HERE / "results.md").write_text(table(results))
        (HERE / "results.svg").write_text(plot(results))
    return 1 if any(result.met is False for result in results) else 0


def line(result: Result) -> str:
    """Show one result on a terminal."""
    beside = f"{result.beside} {number(result.beside_value)}" if result.beside_value is not None else ""
    return (
        f"{result.question:<52} {number(result.value):>10} {result.unit:<10} +-{result.spread:4.0%}  "
        f"{at_reference(result):<44} {beside:<44} {result.bar} {judgement(result)} {result.note}"
    ).rstrip()


def judgement(result: Result) -> str:
    """Say whether the bar is met by what was measured, and whether by the estimate if that differs."""
    judged = {True: "met", False: "MISSED", None: ""}[result.met]
    if result.met_scaled is None or result.met_scaled == result.met:
        return judged
    return f"{judged} ({'met' if result.met_scaled else 'missed'} at {number(REFERENCE_SWITCHES)})"


def at_reference(result: Result) -> str:
    """Show what the number is on a core of the reference's speed, and how fast this one was."""
    if result.scaled is None:
        return ""
    return f"at {number(REFERENCE_SWITCHES)}/s {number(result.scaled)} (here {number(result.switches)}/s)"


def table(results: list[Result]) -> str:
    """Show all results as a page."""
    rows = "\n".join(
        f"| {result.question} | {number(result.value)} {result.unit} | {result.spread:.0%} | "
        f"{number(result.switches)} | {number(result.scaled)} | "
        f"{result.beside} {number(result.beside_value)} | {result.bar} | "
        f"{judgement(result)} | {result.note} |"
        for result in results
    )
    return (
        f"# Results\n\nPython {platform.python_version()}, trio {trio.__version__}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} when written. Made by `python -m benchmarks`.\n\n"
        "| question | answer here | spread | raw switches/s here | answer at "
        f"{number(REFERENCE_SWITCHES)} | beside it, in the same run | bar | | note |\n"
        "| --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- |\n"
        f"{rows}\n\n![each number against its bar](results.svg)\n"
    )


def number(value: float | None) -> str:
    """Show a number with three digits that matter."""
    if value is None:
        return ""
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {suffix}"
    return f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
