"""Run h2spec against our server: `python -m tests.actors.sessions.grpc.interop.h2spec PATH-OF-H2SPEC`.

h2spec speaks plain HTTP/2 and is content with any answer; a gRPC server has one for it, in trailers only.
What it finds is compared with the cases that are known and explained here.
"""

import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from actors.sessions import grpc

KNOWN: dict[str, str] = {}


def say(*words: object) -> None:
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")


async def main(h2spec: str) -> int:
    listeners = await grpc.listen_tcp("127.0.0.1", 0)
    port = grpc.addresses_of(listeners)[0].rpartition(":")[2]
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        async with trio.open_nursery() as nursery:
            await nursery.start(grpc.Server([]).serve, listeners)
            command = [h2spec, "-h", "127.0.0.1", "-p", port, "-o", "3", "-j", str(report)]
            await trio.run_process(command, check=False, stdout=subprocess.DEVNULL)
            nursery.cancel_scope.cancel()
        cases = list(ET.parse(report).getroot().iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    unknown = [case for case in failed if name_of(case) not in KNOWN]
    for case in unknown:
        why = next(iter([*case.iter("failure"), *case.iter("error")])).text or ""
        say("NEW", name_of(case), "|", " ".join(why.split()))
    say(f"h2spec: {len(cases)} cases, {len(failed)} failed, {len(failed) - len(unknown)} of them known")
    return 1 if unknown or not cases else 0


def name_of(case: ET.Element) -> str:
    return f"{case.get('package')}: {case.get('classname')}"


if __name__ == "__main__":
    sys.exit(trio.run(partial(main, sys.argv[1])))
