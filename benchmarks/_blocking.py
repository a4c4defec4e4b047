"""What clients on blocking sockets share, whatever lies between them and the executor."""

import json
import socket
from typing import Any

_QUICKACK = getattr(socket, "TCP_QUICKACK", None)


def receive_some(source: socket.socket) -> bytes:
    """Wait for what comes, and acknowledge it at once: a peer with Nagle's algorithm on would wait 40 ms for that.

    Raises:
        ConnectionError: Nothing comes any more.
    """
    if _QUICKACK is not None:
        source.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
    data = source.recv(1024 * 1024)
    if not data:
        raise ConnectionError("the executor hung up")
    return data


class Asker:
    """Asks one question at a time of who answers to numbered messages."""

    _next_id = 0

    def send(self, message: object) -> None:
        """Send one message."""
        raise NotImplementedError

    def receive(self) -> bytes:
        """Give the next message."""
        raise NotImplementedError

    def call(self, method: str, params: object) -> Any:
        """Ask, and drop what comes before the answer.

        Raises:
            RuntimeError: It is an error, in these words.
        """
        self._next_id += 1
        self.send({"id": self._next_id, "method": method, "params": params})
        while True:
            answer = json.loads(self.receive())
            if answer.get("id") == self._next_id:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def wait_for(self, marker: bytes) -> None:
        """Drop messages until one begins as this one does."""
        while marker not in self.receive()[:64]:
            pass
