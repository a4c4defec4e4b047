"""How much of the raw AEAD is left in a channel, and what does a hybrid handshake cost?

Run `python -m benchmarks.noise [--json]`; as a plain script it would stand in the way of the package `noise`.
Units: microseconds of CPU time of this process; ratios of numbers taken in turns in one run, so that a busy machine
slows both alike. Minima over the rounds: on a shared machine all above the minimum is somebody else's work. Exit code
1 when a bar is missed.

Bars: a channel keeps >= 0.90 of the raw AEAD at 60 KiB and >= 0.75 at 1 KiB, in each direction; both sides of a
handshake take <= 1.1 ms. The last one is an absolute number for the machine on which it was set, where one X25519
exchange takes 30.5 us: elsewhere it is scaled by the exchange measured in the same run, and both are printed.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from actors.noise import Identity, Initiator, Responder, SecureChannel, stream_prologue

REFERENCE_EXCHANGE_US = 30.5
RECORD_BARS = {1024: 0.75, 60 * 1024: 0.90}
HANDSHAKE_BAR_US = 1100.0
PROLOGUE = stream_prologue("env-1", "registration-1", "stream-1")


def spent_us(function: Callable[[Any], object], arguments: Sequence[Any]) -> float:
    """CPU time of one call, over one pass through the arguments."""
    begun = time.process_time_ns()
    for argument in arguments:
        function(argument)
    return (time.process_time_ns() - begun) / 1000 / len(arguments)


def agree(harness: Identity, executor: Identity) -> tuple[SecureChannel, SecureChannel]:
    initiator = Initiator(harness, executor.public_key, prologue=PROLOGUE)
    responder = Responder(executor, prologue=PROLOGUE)
    responder.read_request(initiator.write_request(b"authorization"))
    response, channel = responder.accept()
    return initiator.read_response(response), channel


def records(size: int, rounds: int) -> dict[str, float]:
    """The four calls in turn: raw and channel, sealing and opening, each on fresh buffers of the same sizes."""
    count = max(50, 1_000_000 // size)
    # One pair to time sealing, whose records are dropped like the raw ones, and one to time opening.
    sealing, _ = agree(Identity.generate(), Identity.generate())
    sender, receiver = agree(Identity.generate(), Identity.generate())
    aead, nonce = AESGCM(os.urandom(32)), bytes(12)
    texts = [os.urandom(size) for _ in range(count)]
    best = dict.fromkeys(["raw_seal", "channel_seal", "raw_open", "channel_open"], float("inf"))

    def note(name: str, function: Callable[[Any], object], arguments: Sequence[Any]) -> None:
        best[name] = min(best[name], spent_us(function, arguments))

    raw_seal, raw_open = aead.encrypt, aead.decrypt
    for _ in range(rounds):
        note("raw_seal", lambda text: raw_seal(nonce, text, None), texts)
        note("channel_seal", lambda text: sealing.encrypt(text), texts)  # noqa: PLW0108  # Called like the raw one.
        raw, sealed = (
            [raw_seal(nonce, text, None) for text in texts],
            [sender.encrypt(text) for text in texts],
        )
        note("raw_open", lambda record: raw_open(nonce, record, None), raw)
        note("channel_open", lambda record: receiver.decrypt(record), sealed)  # noqa: PLW0108  # As above.
    return best


def primitives() -> Callable[[object], None]:
    """The public-key work that no implementation of this handshake can avoid."""
    mine, theirs = X25519PrivateKey.generate(), X25519PrivateKey.generate().public_key()
    kem = MLKEM768PrivateKey.generate()
    public = kem.public_key()
    raw, (_, ciphertext) = public.public_bytes_raw(), public.encapsulate()

    def work(_: object) -> None:
        for _ in range(8):
            mine.exchange(theirs)
        for _ in range(2):
            X25519PrivateKey.generate().public_key().public_bytes_raw()
            MLKEM768PrivateKey.generate().public_key().public_bytes_raw()
            MLKEM768PublicKey.from_public_bytes(raw)
        for _ in range(3):
            public.encapsulate()
            kem.decapsulate(ciphertext)

    return work


def handshakes(rounds: int) -> dict[str, float]:
    harness, executor = Identity.generate(), Identity.generate()
    mine, theirs = X25519PrivateKey.generate(), X25519PrivateKey.generate().public_key()
    work = primitives()
    best = dict.fromkeys(["handshake", "primitives", "exchange"], float("inf"))
    # One at a time: the shorter a sample, the better its chance of an undisturbed moment.
    for _ in range(rounds * 10):
        best["handshake"] = min(best["handshake"], spent_us(lambda _: agree(harness, executor), [None]))
        best["primitives"] = min(best["primitives"], spent_us(work, [None]))
        best["exchange"] = min(best["exchange"], spent_us(lambda _: mine.exchange(theirs), [None] * 8))
    return best


def measure(rounds: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for size, bar in RECORD_BARS.items():
        best = records(size, rounds)
        for direction in ("seal", "open"):
            raw, channel = best[f"raw_{direction}"], best[f"channel_{direction}"]
            rows.append(
                {
                    "what": f"{direction} {size} B", "us": channel, "floor_us": raw,
                    "value": raw / channel, "bar": bar, "met": raw / channel >= bar,
                }
            )  # fmt: skip
    best = handshakes(rounds)
    scaled = best["handshake"] * REFERENCE_EXCHANGE_US / best["exchange"]
    rows.append(
        {
            "what": "handshake, both sides, scaled", "us": best["handshake"], "floor_us": best["primitives"],
            "value": scaled, "bar": HANDSHAKE_BAR_US, "met": scaled <= HANDSHAKE_BAR_US,
        }
    )  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=60, help="more rounds find the minimum on a busier machine")
    options = parser.parse_args()
    rows = measure(options.rounds)
    if options.json:
        print(json.dumps({"noise": rows}))
    else:
        print(f"{'':32}{'us':>10}{'floor us':>10}{'value':>10}{'bar':>10}")
        for row in rows:
            verdict = "" if row["met"] else "  MISSED"
            print(
                f"{row['what']:32}{row['us']:10.2f}{row['floor_us']:10.2f}{row['value']:10.2f}{row['bar']:10.2f}{verdict}"
            )
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
