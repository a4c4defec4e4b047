"""Wycheproof's X25519 and ML-KEM-768 cases against the primitives as this package uses them."""

import json
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from actors.noise._primitives import PrivatePair, PublicPair
from tests.actors.noise.support import vector_file


def cases(name: str) -> Iterator[dict[str, Any]]:
    for group in json.loads(vector_file(f"wycheproof-{name}_test.json").read_text())["testGroups"]:
        yield from group["tests"]


def exchange(case: dict[str, Any]) -> str:
    pair = PrivatePair(X25519PrivateKey.from_private_bytes(bytes.fromhex(case["private"])), None)
    try:
        return pair.x25519.exchange(PublicPair(bytes.fromhex(case["public"]), None).x25519).hex()
    except ValueError:
        return "refused"


def test_every_x25519_exchange_is_right_and_every_all_zero_result_is_refused() -> None:
    results = [(exchange(case), case["shared"]) for case in cases("x25519")]

    assert sum(got == shared for got, shared in results) == 487
    assert sum(got == "refused" and int(shared, 16) == 0 for got, shared in results) == 31
    assert len(results) == 518


def decapsulate(case: dict[str, Any]) -> str:
    try:
        private = MLKEM768PrivateKey.from_seed_bytes(bytes.fromhex(case["seed"]))
        return private.decapsulate(bytes.fromhex(case["c"])).hex()
    except ValueError:
        return "invalid"


def test_every_mlkem_decapsulation_is_right_or_refused_as_marked() -> None:
    wanted = [(c, c["K"] if c["result"] == "valid" else "invalid") for c in cases("mlkem_768")]

    assert [c["tcId"] for c, result in wanted if decapsulate(c) != result] == []
    assert len(wanted) == 193


def takes_key(case: dict[str, Any]) -> bool:
    try:
        secret, ciphertext = MLKEM768PublicKey.from_public_bytes(bytes.fromhex(case["ek"])).encapsulate()
    except ValueError:
        return False
    return (len(secret), len(ciphertext)) == (32, 1088)


def test_every_mlkem_public_key_is_taken_or_refused_as_marked() -> None:
    wanted = [(c, c["result"] == "valid") for c in cases("mlkem_768_encaps")]

    assert [c["tcId"] for c, valid in wanted if takes_key(c) != valid] == []
    assert len(wanted) == 265


def test_every_mlkem_seed_gives_its_public_key() -> None:
    checked = 0
    for case in cases("mlkem_768_keygen_seed"):
        private = MLKEM768PrivateKey.from_seed_bytes(bytes.fromhex(case["seed"]))
        assert private.public_key().public_bytes_raw().hex() == case["ek"], case["tcId"]
        checked += 1

    assert checked == 100
