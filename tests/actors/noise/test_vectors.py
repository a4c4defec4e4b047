"""Published Noise vectors: IK through our own machine, all that is expressible through noiseprotocol.

The first says that our walk over the tokens is Noise; the second that the package under it still is.
"""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from noise.connection import Keypair, NoiseConnection  # type: ignore[import-not-found]  # Tests only.
from noise.exceptions import NoiseProtocolNameError  # type: ignore[import-not-found]  # Tests only.

from tests.actors.noise.classical import Records, ik, private
from tests.actors.noise.support import ScriptedKeys, vector_file

EXPRESSIBLE = {"cacophony.txt": 576, "snow.txt": 224, "noise-c-basic.txt": 240, "flynn-noise.txt": 1920}
IK_VECTORS = {"cacophony.txt": 8, "snow.txt": 8, "noise-c-basic.txt": 8, "flynn-noise.txt": 32}


def json_vectors(name: str) -> Iterator[dict[str, Any]]:
    for vector in json.loads(vector_file(name).read_text())["vectors"]:
        vector["name"] = vector.get("protocol_name") or vector["name"]
        psk = vector.get("init_psk")
        vector["psks"] = vector.get("init_psks") or ([psk] if psk else [])
        yield vector


def flynn_vectors() -> Iterator[dict[str, Any]]:
    """The same shape out of blocks of key=value lines."""
    for block in vector_file("flynn-noise.txt").read_text().strip().split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines())
        count = sum(key.endswith("_payload") for key in fields)
        yield {
            "name": fields["handshake"],
            "init_prologue": fields.get("prologue", ""),
            "init_static": fields.get("init_static"),
            "resp_static": fields.get("resp_static"),
            "init_ephemeral": fields.get("gen_init_ephemeral"),
            "resp_ephemeral": fields.get("gen_resp_ephemeral"),
            "psks": [fields["preshared_key"]] if "preshared_key" in fields else [],
            "messages": [
                {"payload": fields[f"msg_{n}_payload"], "ciphertext": fields[f"msg_{n}_ciphertext"]}
                for n in range(count)
            ],
        }


def is_classical_ik(vector: dict[str, Any]) -> bool:
    return vector["name"].startswith("Noise_IK_25519_")


def check_ik(vector: dict[str, Any]) -> None:
    """Both of our sides write and read each message of the vector, byte for byte, and then its records."""
    static = private(bytes.fromhex(vector["resp_static"]))
    common = {"prologue": bytes.fromhex(vector["init_prologue"])}
    initiator = ik(
        vector["name"],
        initiator=True,
        static=private(bytes.fromhex(vector["init_static"])),
        remote=static.public.x25519_bytes,
        keys=ScriptedKeys(x25519=[bytes.fromhex(vector["init_ephemeral"])]),
        **common,
    )
    responder = ik(
        vector["name"],
        initiator=False,
        static=static,
        keys=ScriptedKeys(x25519=[bytes.fromhex(vector["resp_ephemeral"])]),
        **common,
    )
    messages = [(bytes.fromhex(m["payload"]), bytes.fromhex(m["ciphertext"])) for m in vector["messages"]]
    for (payload, ciphertext), writer, reader in (
        (messages[0], initiator, responder),
        (messages[1], responder, initiator),
    ):
        assert writer.write(payload) == ciphertext
        assert reader.read(ciphertext) == payload
    assert initiator.hash == responder.hash
    if "handshake_hash" in vector:
        assert initiator.hash.hex() == vector["handshake_hash"]
    cipher = vector["name"].split("_")[3]
    sides = [Records(initiator, cipher), Records(responder, cipher)]
    for payload, ciphertext in messages[2:]:
        assert sides[0].seal(payload) == ciphertext
        assert sides[1].open(ciphertext) == payload
        sides.reverse()


@pytest.mark.parametrize("file", EXPRESSIBLE)
def test_our_machine_reproduces_every_published_ik_vector(file: str) -> None:
    vectors = flynn_vectors() if file == "flynn-noise.txt" else json_vectors(file)
    checked = [check_ik(vector) for vector in vectors if is_classical_ik(vector)]

    assert len(checked) == IK_VECTORS[file]


def test_our_machine_reproduces_the_ik_vector_that_clatter_made_with_its_counter() -> None:
    fields = [
        line.split(": ", 1)
        for line in vector_file("clatter-nq_ik_aes_sha512.txt").read_text().splitlines()
        if ": " in line
    ]
    values = dict(fields)
    drawn = bytes((0xEF + n) % 256 for n in range(128))
    texts = [b"Scream without a sound", b"Flying off the handle", b"Eugene gene the dance machine"]
    messages = [("", values["msg[0] initiator"]), ("", values["msg[1] responder"])]
    messages += [
        (texts[n].hex(), values[f"transport[{n}] {side}"])
        for n, side in enumerate(("initiator", "responder", "initiator"))
    ]

    check_ik(
        {
            "name": "Noise_IK_25519_AESGCM_SHA512",
            "init_prologue": values["prologue_hex"],
            "init_static": drawn[:32].hex(),
            "resp_static": drawn[32:64].hex(),
            "init_ephemeral": drawn[64:96].hex(),
            "resp_ephemeral": drawn[96:].hex(),
            "handshake_hash": values["handshake_hash"],
            "messages": [{"payload": payload, "ciphertext": ciphertext} for payload, ciphertext in messages],
        }
    )


def connection(vector: dict[str, Any], side: str) -> Any:
    """One side in noiseprotocol, or None when it has no word for this name."""
    try:
        noise = NoiseConnection.from_name(vector["name"].encode())
    except (NoiseProtocolNameError, KeyError, ValueError, IndexError):
        return None
    if vector["psks"]:
        noise.set_psks(psks=[bytes.fromhex(psk) for psk in vector["psks"]])
    noise.set_prologue(bytes.fromhex(vector["init_prologue"] or ""))
    (noise.set_as_initiator if side == "init" else noise.set_as_responder)()
    other = "resp" if side == "init" else "init"
    for role, keypair in (("static", Keypair.STATIC), ("ephemeral", Keypair.EPHEMERAL)):
        if raw := vector.get(f"{side}_{role}"):
            noise.set_keypair_from_private_bytes(keypair, bytes.fromhex(raw))
    if (raw := vector.get(f"{other}_static")) and needs_remote(vector["name"], side):
        pair = noise.noise_protocol.keypair_class.from_private_bytes(bytes.fromhex(raw))
        noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, pair.public_bytes)
    noise.start_handshake()
    return noise


def needs_remote(name: str, side: str) -> bool:
    pattern = name.split("_")[1].split("psk")[0]
    one_way = len(pattern) == 1
    return one_way or pattern[1] == "K" if side == "init" else pattern[0] == "K"


def expressible(vector: dict[str, Any]) -> bool:
    name = vector["name"]
    return not any(character.isdigit() for character in name.split("_")[1].split("psk")[0]) and (
        "NoisePSK" not in name and "P256" not in name
    )


def check_with_noiseprotocol(vector: dict[str, Any], *, initiator_first: bool) -> bool:
    sides = [connection(vector, "init"), connection(vector, "resp")]
    if None in sides:
        return False
    one_way = len(vector["name"].split("_")[1].split("psk")[0]) == 1
    for index, message in enumerate(vector["messages"]):
        payload, ciphertext = bytes.fromhex(message["payload"]), bytes.fromhex(message["ciphertext"])
        writer, reader = sides
        if not writer.handshake_finished:
            assert bytes(writer.write_message(payload)) == ciphertext
            assert bytes(reader.read_message(ciphertext)) == payload
            sides.reverse()
            if writer.handshake_finished and (one_way or initiator_first) and index % 2 == 0:
                sides.reverse()
            continue
        if one_way and initiator_first and index == len(vector["messages"]) - 1:
            continue  # flynn's one-way vectors end with a line from a side that cannot send.
        assert bytes(writer.encrypt(payload)) == ciphertext
        assert bytes(reader.decrypt(ciphertext)) == payload
        if not one_way:
            sides.reverse()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("file", EXPRESSIBLE)
def test_noiseprotocol_reproduces_every_vector_that_it_can_express(file: str) -> None:
    flynn = file == "flynn-noise.txt"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of ephemeral keypairs is already set")
        checked = [
            check_with_noiseprotocol(vector, initiator_first=flynn)
            for vector in (flynn_vectors() if flynn else json_vectors(file))
            if expressible(vector)
        ]

    assert checked.count(True) == EXPRESSIBLE[file]
