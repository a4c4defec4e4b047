"""The generated frames are those of the schema beside them."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from actors.relay import _relay_v1_pb2 as pb
from tests.support.skips import skip

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "generate_relay_frames"


def test_the_schema_has_the_names_and_numbers_that_peers_use() -> None:
    fields = {field.name: field.number for field in pb.RelayMessageFrame.DESCRIPTOR.fields}

    assert pb.DESCRIPTOR.package == "codex.exec_server.relay.v1"
    assert list(fields.items()) == [
        ("version", 1),
        ("stream_id", 2),
        ("ack", 3),
        ("ack_bits", 4),
        ("data", 5),
        ("ack_frame", 6),
        ("resume", 7),
        ("reset", 8),
        ("heartbeat", 9),
        ("handshake", 10),
        ("traceparent", 11),
        ("tracestate", 12),
    ]


def test_regenerating_changes_nothing() -> None:
    if not SCRIPT.exists():
        skip("the script that generates", "run this test in a checkout of the repository")
    try:
        found = version("grpcio-tools")
    except PackageNotFoundError:
        skip("grpcio-tools", "pip install grpcio-tools==1.76.0")
    if found != "1.76.0":
        skip(f"grpcio-tools 1.76.0 (there is {found})", "pip install grpcio-tools==1.76.0")
    environment = {**os.environ, "PYTHON": sys.executable}

    done = subprocess.run([str(SCRIPT), "--check"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
