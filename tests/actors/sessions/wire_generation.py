"""Make the message classes anew from the proto: `python -m tests.actors.sessions.wire_generation`.

It needs grpcio-tools. The oldest supported protobuf must be able to read the result, so use grpcio-tools 1.73, whose
output asks for protobuf 6.31 or newer.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROTO = "actors/sessions/_wire/code_mode.proto"


def generate(into: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={into}", f"--pyi_out={into}", PROTO]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    generate(ROOT)
