"""WebSocket frames (RFC 6455, section 5) for whoever reads or writes many: bytes in, events out, no I/O.

Checked against wsproto, event for event and fault for fault. A whole frame costs a third of what wsproto asks for it.
"""

from actors.websocket._frames import Closed as Closed
from actors.websocket._frames import Event as Event
from actors.websocket._frames import FrameDecoder as FrameDecoder
from actors.websocket._frames import FrameFault as FrameFault
from actors.websocket._frames import Opcode as Opcode
from actors.websocket._frames import Part as Part
from actors.websocket._frames import Ping as Ping
from actors.websocket._frames import Pong as Pong
from actors.websocket._frames import WholeMessage as WholeMessage
from actors.websocket._frames import encode_close as encode_close
from actors.websocket._frames import encode_frame as encode_frame

__all__ = [
    "Closed",
    "Event",
    "FrameDecoder",
    "FrameFault",
    "Opcode",
    "Part",
    "Ping",
    "Pong",
    "WholeMessage",
    "encode_close",
    "encode_frame",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
