"""The least that can stand between an executor and a blocking client: registry, rendezvous and harness in one.

The registry is a thread that says yes to everybody; the rendezvous is one socket, and whoever measures reads it
itself, so that no hop of a router is measured. Speaks to any executor that registers itself.
"""

import base64
import hashlib
import json
import re
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from actors.noise import Identity, Initiator, PublicKey, stream_prologue
from actors.relay import Data, Frame, Handshake, Reset, Resume, decode, encode
from actors.websocket import FrameDecoder, Opcode, Part, Ping, WholeMessage, encode_frame
from benchmarks._blocking import Asker, receive_some

ENVIRONMENT = "measured"
TOKEN = "a-token-for-measuring-only"
_REGISTRATION = "registration-1"
_ACCEPT_WITH = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Relay:
    """Where an executor registers and dials, as often as it is cut."""

    def __init__(self) -> None:
        self.executor_key: PublicKey | None = None
        self.uplink: Uplink | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(60)
        dial = f"ws://127.0.0.1:{self._listener.getsockname()[1]}/rendezvous?role=executor"
        relay = self

        class Registry(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked: Any = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path.endswith("/register"):
                    relay.executor_key = PublicKey.from_fields(asked["executor_public_key"])
                    told: dict[str, object] = {
                        "environment_id": ENVIRONMENT,
                        "url": dial,
                        "security_profile": asked["security_profile"],
                        "executor_registration_id": _REGISTRATION,
                    }
                else:
                    told = {"valid": True}
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._registry = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        self.registry_url = f"http://127.0.0.1:{self._registry.server_address[1]}"
        threading.Thread(target=self._registry.serve_forever, daemon=True).start()

    def wait_for_executor(self) -> None:
        """Wait until the executor dials."""
        self.uplink = Uplink(self._listener.accept()[0])

    def cut(self) -> None:
        """Cut the executor's connection, and wait until it has dialled again."""
        assert self.uplink is not None, "nothing is there to be cut"
        self.uplink.close()
        self.wait_for_executor()

    def close(self) -> None:
        self._registry.shutdown()
        self._registry.server_close()
        self._listener.close()


class Uplink:
    """The executor's one WebSocket, as its server sees it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.settimeout(60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b""
        while b"\r\n\r\n" not in head:
            head += receive_some(self._socket)
        head, _, early = head.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
        assert found is not None, "an executor dials with a WebSocket"
        accept = base64.b64encode(hashlib.sha1(found[1] + _ACCEPT_WITH).digest())
        self._socket.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self._decoder = FrameDecoder(message_bytes_max=16 * 1024 * 1024)
        self._decoder.feed(early)

    def send(self, frames: list[bytes]) -> None:
        self._socket.sendall(b"".join([encode_frame(Opcode.BINARY, frame) for frame in frames]))

    def receive(self) -> bytes:
        while True:
            match self._decoder.next_event():
                case WholeMessage(data=data):
                    return data
                case Ping(payload=payload):
                    self._socket.sendall(encode_frame(Opcode.PONG, payload))
                case None:
                    self._decoder.feed(receive_some(self._socket))
                case Part():
                    pass
                case _:
                    raise ConnectionError("the executor ended the connection")

    # For who carries what comes, whatever it is.

    def fileno(self) -> int:
        return self._socket.fileno()

    def read_more(self) -> None:
        self._decoder.feed(receive_some(self._socket))

    def messages(self) -> list[bytes]:
        """Give the messages that are there."""
        found: list[bytes] = []
        while (event := self._decoder.next_event()) is not None:
            match event:
                case WholeMessage(data=data):
                    found.append(data)
                case Ping(payload=payload):
                    self._socket.sendall(encode_frame(Opcode.PONG, payload))
                case Part():
                    pass
                case _:
                    raise ConnectionError("the peer ended the connection")
        return found

    def close(self) -> None:
        self._socket.close()


class RelayedConnection(Asker):
    """One stream: what the plain client of `executor.py` is, over Noise."""

    def __init__(self, relay: Relay, resume: str | None = None) -> None:
        assert relay.executor_key is not None, "an executor registers before it dials"
        assert relay.uplink is not None, "an executor has dialled"
        self._uplink, self._stream_id = relay.uplink, str(uuid.uuid4())
        prologue = stream_prologue(ENVIRONMENT, _REGISTRATION, self._stream_id)
        initiator = Initiator(Identity.generate(), relay.executor_key, prologue=prologue)
        asked = initiator.write_request(b"an-authorization")
        self._uplink.send([encode(Frame(self._stream_id, body)) for body in (Resume(), Handshake(asked))])
        self._channel = initiator.read_response(self._wait_for(Handshake).payload)
        self._input = bytearray()
        self._at = 0
        self._seq = 0
        self.session_id = self._greet({"clientName": "benchmark"} | ({"resumeSessionId": resume} if resume else {}))
        self.send({"method": "initialized"})

    def _greet(self, greeting: dict[str, str]) -> str:
        while True:
            try:
                greeted: Any = self.call("initialize", greeting)
            except RuntimeError as refused:
                if "already attached" not in str(refused):
                    raise
                # The executor has yet to notice that the other connection is gone.
                time.sleep(0.005)
            else:
                return greeted["sessionId"]

    def _wait_for(self, kind: type[Any]) -> Any:
        while True:
            frame = decode(self._uplink.receive())
            if frame.stream_id != self._stream_id:
                continue
            if isinstance(frame.body, Reset):
                raise ConnectionError("the executor reset the stream")
            if isinstance(frame.body, kind):
                return frame.body

    def close(self) -> None:
        self._uplink.send([encode(Frame(self._stream_id, Reset("done")))])

    def send(self, message: object) -> None:
        self.send_raw([json.dumps(message).encode()])

    def send_raw(self, messages: list[bytes]) -> None:
        """Send each message in a record of its own, as the client in the field does; all in one write."""
        frames: list[bytes] = []
        for message in messages:
            sealed = self._channel.encrypt(len(message).to_bytes(4, "big") + message)
            frames.append(encode(Frame(self._stream_id, Data(self._seq, sealed))))
            self._seq += 1
        self._uplink.send(frames)

    def receive(self) -> bytes:
        while True:
            held, at = self._input, self._at
            begin = at + 4
            if len(held) >= begin and len(held) >= (end := begin + int.from_bytes(held[at:begin], "big")):
                self._at = end
                return bytes(held[begin:end])
            if at:
                del held[:at]
                self._at = 0
            held += self._channel.decrypt(self._wait_for(Data).payload)
