"""Our token machine against two independent implementations of Noise, live: flynn/noise in Go, noise-c in Node.

They speak no hybrid, so classical IK is spoken: the same machine, state classes and channel with another pattern.
`.ci/interop-noise` installs the peers and runs this.
"""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from actors.noise import RecordLimits, SecureChannel
from actors.noise._channel import Agreement
from actors.noise._primitives import PrivatePair, SystemKeys
from tests.actors.noise.classical import CIPHERS, HASHES, Records, ik
from tests.support.skips import needs, skip

PEERS = Path(__file__).parent / "peers"
GO_LIBRARIES = Path("/usr/share/gocode")  # Where Debian puts them.
PROLOGUE = b"prologue of an interop test"
SIZES = [0, 1, 15, 16, 17, 1000, 61_440, 65_519]

pytestmark = [
    pytest.mark.slow,
    needs(
        os.environ.get("GREENROOM_INTEROP_NOISE"),
        "another implementation of Noise",
        "run .ci/interop-noise, which installs them",
    ),
]


class Wire:
    """Length-prefixed frames to and from a peer's process."""

    def __init__(self, to_peer: IO[bytes], from_peer: IO[bytes]) -> None:
        self._to_peer, self._from_peer = to_peer, from_peer

    def send(self, frame: bytes) -> None:
        self._to_peer.write(len(frame).to_bytes(4, "big") + frame)
        self._to_peer.flush()

    def receive(self) -> bytes:
        size = self._from_peer.read(4)
        assert len(size) == 4, "the peer ended"
        return self._from_peer.read(int.from_bytes(size, "big"))


@pytest.fixture(scope="session")
def go_peer(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    if shutil.which("go") is None or not (GO_LIBRARIES / "src/github.com/flynn/noise").is_dir():
        skip("Go or flynn/noise", "apt-get install golang-go golang-github-flynn-noise-dev")
    work = tmp_path_factory.mktemp("go")
    source = work / "gopath" / "src" / "peer"
    shutil.copytree(PEERS / "go", source)
    environment = os.environ | {
        "GO111MODULE": "off",
        "GOPATH": f"{work / 'gopath'}:{GO_LIBRARIES}",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(work / "gocache"),
    }
    subprocess.run(["go", "build", "-o", work / "peer", "peer"], env=environment, check=True, timeout=240)
    return [str(work / "peer")]


@pytest.fixture(scope="session")
def node_peer(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    if shutil.which("npm") is None:
        skip("Node", "apt-get install nodejs npm")
    work = tmp_path_factory.mktemp("node") / "peer"
    shutil.copytree(PEERS / "node", work, ignore=shutil.ignore_patterns("node_modules"))
    fetch = ["npm", "ci", "--no-audit", "--no-fund"]
    fetched = subprocess.run(fetch, cwd=work, check=False, timeout=240, capture_output=True, text=True)
    if fetched.returncode != 0:
        skip("noise-c.wasm", f"let npm reach its registry; it said: {fetched.stderr.strip()[-200:]}")
    return ["node", str(work / "peer.js")]


@contextmanager
def running(command: list[str], *arguments: str) -> Generator[Wire, None, None]:
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Wire(process.stdin, process.stdout)
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("peer_role", ["initiator", "responder"])
@pytest.mark.parametrize("digest", HASHES)
@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("peer", ["go_peer", "node_peer"])
def test_both_ends_agree_on_the_hash_and_echo_records(
    request: pytest.FixtureRequest, peer: str, cipher: str, digest: str, peer_role: str
) -> None:
    command: list[str] = request.getfixturevalue(peer)
    static = PrivatePair(SystemKeys().new_x25519(), None)
    with running(command, peer_role, cipher, digest, PROLOGUE.hex()) as wire:
        theirs = wire.receive()
        ours = ik(
            f"Noise_IK_25519_{cipher}_{digest}",
            initiator=peer_role == "responder",
            prologue=PROLOGUE,
            static=static,
            remote=theirs if peer_role == "responder" else None,
        )
        if peer_role == "responder":
            wire.send(ours.write(b"asked by us"))
            payload = ours.read(wire.receive())
        else:
            wire.send(static.public.x25519_bytes)
            payload = ours.read(wire.receive())
            wire.send(ours.write(b"answered by us"))
        assert wire.receive() == ours.hash
        assert payload == (b"answered by the peer" if peer_role == "responder" else b"asked by the peer")
        assert ours.remote_static is not None
        assert ours.remote_static.x25519_bytes == theirs

        if cipher == "AESGCM":
            send, receive = ours.split()
            limits = RecordLimits(max_plaintext_bytes=65_519)
            channel = SecureChannel(Agreement(send=send, receive=receive, limits=limits))
            seal, unseal = channel.encrypt, channel.decrypt
        else:
            records = Records(ours, cipher)
            seal, unseal = records.seal, records.open
        for number in range(50):
            text = bytes([number]) * SIZES[number % len(SIZES)]
            wire.send(seal(text))
            assert unseal(wire.receive()) == text
