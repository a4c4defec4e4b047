"""Run JavaScript cells in leased sessions and serve them over gRPC."""

from actors.sessions.host._engines import Engine as Engine
from actors.sessions.host._engines import find_engine as find_engine
from actors.sessions.host._errors import EngineNotFound as EngineNotFound
from actors.sessions.host._errors import HostError as HostError
from actors.sessions.host._host import HostOptions as HostOptions
from actors.sessions.host._host import serve_host as serve_host

__all__ = ["Engine", "EngineNotFound", "HostError", "HostOptions", "find_engine", "serve_host"]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
