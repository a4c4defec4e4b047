"""What must never be seen, kept or compared carelessly, numbered as in the list of docs/threat-model.md."""

import ast
import base64
import copy
import dataclasses
import gc
import logging
import os
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from noise.state import CipherState, SymmetricState

import actors.noise
from actors.noise import (
    Identity,
    Initiator,
    InvalidState,
    NoiseError,
    PublicKey,
    Responder,
    SecureChannel,
    store_identity,
)
from actors.noise._handshake import Handshake
from actors.noise._primitives import SystemKeys
from tests.actors.noise.support import (
    AUTHORIZATION,
    EXECUTOR,
    HARNESS,
    PROLOGUE,
    agree,
    ends,
    everything_said_by,
    flip,
)

PACKAGE = Path(actors.noise.__file__).parent
SEED = bytes(range(100, 196))
PLAINTEXT = b"a plaintext that nobody may see"


class CountedKeys(SystemKeys):
    """Counts public-key work."""

    def __init__(self) -> None:
        self.drawn = 0

    def new_x25519(self) -> X25519PrivateKey:
        self.drawn += 1
        return super().new_x25519()


def test_19_a_responder_costs_nothing_until_a_message_of_a_possible_size_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Budgets for failed handshakes, pending validations and time belong to whoever owns the stream."""
    keys = CountedKeys()
    worked = list[int]()
    monkeypatch.setattr(Handshake, "read", lambda self, message: worked.append(len(message)))
    for size in (0, 3567, 7665, 65_535, 1 << 20):
        with pytest.raises(NoiseError):
            Responder(EXECUTOR, prologue=PROLOGUE, keys=keys).read_request(bytes(size))

    assert worked == []
    assert keys.drawn == 0


def test_19_a_refused_request_draws_no_ephemeral_key_and_allows_no_second_try() -> None:
    keys = CountedKeys()
    responder = Responder(EXECUTOR, prologue=PROLOGUE, keys=keys)
    request = ends()[0].write_request(AUTHORIZATION)
    with pytest.raises(NoiseError):
        responder.read_request(flip(request, 0))

    with pytest.raises(InvalidState):
        responder.read_request(request)
    assert keys.drawn == 0


def comparisons(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
            yield node.lineno, ast.unparse(node)


# Everything else that is compared with == in this package is a public number or name.
HARMLESS = {
    "_channel.py": {"len(ciphertext) == TAG_BYTES"},
    "_ends.py": set[str](),
    "_handshake.py": {"step == 'ekem'", "mine == 's'", "theirs == 's'", "len(part) != size"},
    "_identity.py": {"len(seed) == IDENTITY_SEED_BYTES"},
    "_identity_file.py": {
        "os.write(descriptor, _content(identity)) != _FILE_BYTES",
        "len(content) != _FILE_BYTES",
    },
    "_primitives.py": {"len(seed) == X25519_BYTES + MLKEM768_SEED_BYTES"},
    "_symmetric.py": {"outputs == 2"},
    "_public_key.py": {
        "suite != SUITE", "members.keys() == _FIELDS", "len(members) != len(pairs)", "len(raw) != size",
    },
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_20_no_key_payload_or_token_is_compared_with_an_operator_that_stops_early(path: Path) -> None:
    found = {text for _, text in comparisons(path)}

    assert found <= HARMLESS.get(path.name, set())


def spellings(secret: bytes) -> list[str]:
    return [secret.hex()[:24], base64.b64encode(secret).decode()[:20], repr(secret)[2:-1][:12]]


def everything_made(tmp_path: Path) -> tuple[list[object], list[str]]:
    """One of each public object in each of its states, and every spelling of what they hide."""
    identity = Identity.from_seed(SEED)
    initiator, responder = Initiator(HARNESS, identity.public_key, prologue=PROLOGUE), Responder(
        identity, prologue=PROLOGUE
    )  # fmt: skip
    fresh = [*ends()]
    request = responder.read_request(initiator.write_request(AUTHORIZATION))
    waiting = [Initiator(HARNESS, identity.public_key, prologue=PROLOGUE)]
    response, executor = responder.accept()
    harness = initiator.read_response(response)
    harness.encrypt(PLAINTEXT)
    secrets = [s for secret in (SEED[:32], SEED[32:], AUTHORIZATION, PLAINTEXT) for s in spellings(secret)]
    secrets += [s for half in (identity.public_key.x25519, identity.public_key.mlkem768) for s in spellings(half)]
    return [
        identity,
        identity.public_key,
        *fresh,
        *waiting,
        initiator,
        responder,
        request,
        executor,
        harness,
    ], secrets


def test_21_no_text_of_any_object_shows_a_secret(tmp_path: Path) -> None:
    objects, secrets = everything_made(tmp_path)
    for thing in objects:
        record = logging.LogRecord("x", logging.INFO, "x", 1, "%s %r", (thing, thing), None)
        texts = [
            repr(thing),
            str(thing),
            f"{thing}",
            f"{thing!r:>80}",
            f"{thing}",
            record.getMessage(),
        ]
        texts.append(repr([{"nested": thing}]))
        said = "\n".join(texts)

        assert not [secret for secret in secrets if secret in said], type(thing)
        assert not hasattr(thing, "__dict__"), "vars() would show its fields"


def test_21_nothing_that_holds_keys_can_be_copied_pickled_or_taken_apart(tmp_path: Path) -> None:
    objects, _ = everything_made(tmp_path)
    ways: list[Callable[[Any], object]] = [
        copy.copy, copy.deepcopy,
        *(lambda o, p=p: pickle.dumps(o, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
        lambda o: copy.deepcopy([o]), lambda o: o.__getstate__(), lambda o: o.__reduce__(), lambda o: o.__replace__(),
        dataclasses.asdict, attrs.asdict, lambda o: dataclasses.replace(o), lambda o: attrs.evolve(o),
    ]  # fmt: skip
    for thing in objects:
        if isinstance(thing, PublicKey):
            continue
        for way in ways:
            with pytest.raises((TypeError, attrs.exceptions.NotAnAttrsClassError)) as refused:
                way(thing)
            assert refused.value.__cause__ is None


LOW_ORDER = PublicKey(x25519=bytes(32), mlkem768=EXECUTOR.public_key.mlkem768)

CALLS: list[Callable[[int], object]] = [
    lambda n: ends()[1].read_request(flip(ends()[0].write_request(AUTHORIZATION), n % (3601 * 8))),
    lambda n: ends()[1].read_request(ends()[0].write_request(AUTHORIZATION)[: n % 3601]),
    lambda n: ends()[0].write_request(AUTHORIZATION * 2000),
    lambda n: Initiator(HARNESS, LOW_ORDER, prologue=PROLOGUE).write_request(AUTHORIZATION),
    lambda n: ends()[1].accept(),
    lambda n: ends()[1].reject_credentials(),
    lambda n: agree()[0].decrypt(flip(agree()[1].encrypt(PLAINTEXT), n % 376)),
    lambda n: agree()[0].encrypt(PLAINTEXT * 2000),
    lambda n: agree()[0].decrypt(PLAINTEXT[: n % 16]),
    lambda n: Identity.from_seed(SEED[: n % 96]),
    lambda n: PublicKey.from_json(EXECUTOR.public_key.to_json()[: n % 1700]),
    lambda n: PublicKey(x25519=SEED[: n % 32], mlkem768=SEED),
]


@given(st.sampled_from(CALLS), st.integers(0, 40_000))
def test_21_no_error_and_no_traceback_with_locals_shows_a_secret(call: Callable[[int], object], n: int) -> None:
    """Mutant killed: errors raised in the handlers of `_ends`, with the key agreement as their context."""
    with pytest.raises((NoiseError, ValueError)) as raised:
        call(n)
    said = everything_said_by(raised.value)

    hidden = (AUTHORIZATION, PLAINTEXT, SEED[:12], EXECUTOR.public_key.x25519)
    assert not [s for secret in hidden for s in spellings(secret) if s in said]


def test_21_no_error_holds_a_frame_of_the_key_agreement() -> None:
    responder = ends()[1]
    with pytest.raises(NoiseError) as refused:
        responder.read_request(flip(ends()[0].write_request(AUTHORIZATION), 3600 * 8))
    files = list[str]()
    traceback = refused.value.__traceback__
    while traceback is not None:
        files.append(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next

    assert [Path(file).name for file in files if "/actors/noise/_" in file] == ["_ends.py"]
    assert not [file for file in files if "/noise/state" in file or "/noise/backends" in file]


def live(kind: type) -> int:
    return sum(type(thing) is kind for thing in gc.get_objects())


def test_22_nothing_of_a_handshake_outlives_its_split() -> None:
    gc.collect()
    gc.disable()
    try:
        before = live(SymmetricState), live(CipherState), live(Handshake)
        initiator, responder = ends()
        responder.read_request(initiator.write_request(AUTHORIZATION))
        response, executor = responder.accept()
        harness = initiator.read_response(response)

        # Without the collector: no cycle keeps a key waiting for it.
        assert (live(SymmetricState), live(CipherState), live(Handshake)) == before
        assert executor.decrypt(harness.encrypt(b"alive")) == b"alive"
    finally:
        gc.enable()


def test_22_a_failed_or_closed_handshake_is_freed_at_once_and_so_is_an_identity() -> None:
    gc.collect()
    gc.disable()
    try:
        before = live(SymmetricState)
        identity = Identity.generate()
        responder, closed = Responder(identity, prologue=PROLOGUE), Responder(identity, prologue=PROLOGUE)
        gone = [weakref.ref(thing) for thing in (identity, responder._handshake, closed._handshake)]
        with suppress(NoiseError):
            responder.read_request(flip(ends()[0].write_request(b""), 5))
        closed.close()
        del identity

        assert [reference() for reference in gone] == [None, None, None]
        assert live(SymmetricState) == before
    finally:
        gc.enable()


def test_22_a_channel_holds_no_key_that_python_can_read_and_drops_even_its_objects_when_it_dies() -> None:
    harness, executor = agree()
    held = [getattr(harness, slot) for slot in SecureChannel.__slots__]

    assert not [value for value in held if isinstance(value, bytes | bytearray)]
    with pytest.raises(NoiseError):
        executor.decrypt(flip(harness.encrypt(b"x"), 0))
    assert executor._seal is executor._open


def test_23_the_seed_file_is_private_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes, owners, atomicity and what is refused stand in test_identity_file."""
    modes = list[int]()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (modes.append(os.fstat(fd).st_mode & 0o777), write(fd, data))[1])
    store_identity(EXECUTOR, tmp_path / "identity")

    assert modes == [0o600]


def test_23_no_module_reads_a_key_from_the_environment_or_the_command_line() -> None:
    for path in PACKAGE.glob("*.py"):
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not names & {"environ", "getenv", "argv"}, path.name


def test_26_what_this_package_needs_of_its_dependencies_is_there() -> None:
    """The contract itself stands in test_dependency, the vector suite in test_vectors."""
    assert {"_symmetric.py"} == {p.name for p in PACKAGE.glob("*.py") if "from noise." in p.read_text()}
