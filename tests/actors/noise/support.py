"""Two ends on one wire, known keys, and where the published vectors lie."""

import json
import logging
import traceback
from pathlib import Path
from typing import Any

from actors.noise import Identity, Initiator, RecordLimits, Responder, SecureChannel, stream_prologue
from actors.noise.testing import ScriptedKeys, SeededKeys
from tests.support.skips import RECORDINGS as RECORDINGS_ELSEWHERE
from tests.support.skips import skip, where_recordings_go

RECORDINGS = Path(__file__).parent / "recordings"
VECTORS = RECORDINGS_ELSEWHERE / "vectors"

PROLOGUE = stream_prologue("env-1", "registration-1", "stream-1")
HARNESS = Identity.generate(keys=SeededKeys("harness"))
EXECUTOR = Identity.generate(keys=SeededKeys("executor"))
STRANGER = Identity.generate(keys=SeededKeys("stranger"))

AUTHORIZATION = b"example-harness-key-authorization"

# Every X25519 encoding of a point of small order, with the two that are such points after reduction.
LOW_ORDER_POINTS = [
    bytes(32),
    bytes([1]) + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]


def ends(*, prologue: bytes = PROLOGUE, limits: RecordLimits | None = None, **keys: Any) -> tuple[Initiator, Responder]:
    initiator = Initiator(HARNESS, EXECUTOR.public_key, prologue=PROLOGUE, limits=limits, **keys)
    return initiator, Responder(EXECUTOR, prologue=prologue, limits=limits)


def agree(limits: RecordLimits | None = None) -> tuple[SecureChannel, SecureChannel]:
    """Return both channels of one handshake, the initiator's first."""
    initiator, responder = ends(limits=limits)
    responder.read_request(initiator.write_request(AUTHORIZATION))
    response, channel = responder.accept()
    return initiator.read_response(response), channel


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def vector_file(name: str) -> Path:
    path = VECTORS / name
    if not path.exists():
        skip(f"the file of vectors {name}", where_recordings_go("vectors"))
    return path


def recording(name: str) -> dict[str, Any]:
    return json.loads((RECORDINGS / name).read_text())


def everything_said_by(error: BaseException) -> str:
    """All text that a log, a crash report or a test runner could make of an error, locals included."""
    said = [str(error), repr(error), repr(vars(error)), repr(error.args)]
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    # The test's own frames may hold whatever they like: only ours are looked at.
    ours = [frame for frame in report.stack if "/actors/noise/_" in frame.filename]
    said += [repr(frame.locals) for frame in ours]
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "%s", (error,), None)
    said.append(record.getMessage())
    assert report.__cause__ is None, "a cause brings its frames along"
    assert report.__context__ is None, "a context brings its frames along"
    return "\n".join(said)


__all__ = [
    "AUTHORIZATION", "EXECUTOR", "HARNESS", "LOW_ORDER_POINTS", "PROLOGUE", "STRANGER",
    "ScriptedKeys", "SeededKeys", "agree", "ends", "everything_said_by", "flip", "recording", "vector_file",
]  # fmt: skip
