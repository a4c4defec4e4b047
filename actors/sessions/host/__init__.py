"""Run JavaScript cells in leased sessions and serve them over gRPC."""

from actors.sessions.host._engines import Engine as Engine
from actors.sessions.host._engines import find_engine as find_engine
from actors.sessions.host._errors import EngineNotFound as EngineNotFound
from actors.sessions.host._errors import HostError as HostError
from actors.sessions.host._errors import ListenRefused as ListenRefused
from actors.sessions.host._errors import WallsMissing as WallsMissing
from actors.sessions.host._launching import WALLS as WALLS
from actors.sessions.host._launching import Walls as Walls
from actors.sessions.host._opening import RunningHost as RunningHost
from actors.sessions.host._opening import open_host as open_host
from actors.sessions.host._opening import serve_host as serve_host
from actors.sessions.host._options import HostOptions as HostOptions
from actors.sessions.host._options import HostStatistics as HostStatistics

__all__ = [
    "WALLS",
    "Engine",
    "EngineNotFound",
    "HostError",
    "HostOptions",
    "HostStatistics",
    "ListenRefused",
    "RunningHost",
    "Walls",
    "WallsMissing",
    "find_engine",
    "open_host",
    "serve_host",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
