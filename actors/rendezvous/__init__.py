"""Where harnesses and executors find each other: a registry over HTTP, and a router for their encrypted streams.

`open_rendezvous` runs both on one port. It sees tokens, ids, sizes and ciphertext; it never holds a private key, and
everything it knows can be rebuilt after a restart. `open_registry_client` asks such a registry, ours or another.
"""

from actors.rendezvous._answers import HarnessConnection as HarnessConnection
from actors.rendezvous._answers import RegistryAnswerInvalid as RegistryAnswerInvalid
from actors.rendezvous._answers import RegistryAuthFailed as RegistryAuthFailed
from actors.rendezvous._answers import RegistryConfigInvalid as RegistryConfigInvalid
from actors.rendezvous._answers import RegistryError as RegistryError
from actors.rendezvous._answers import RegistryHttpFailed as RegistryHttpFailed
from actors.rendezvous._answers import RegistryRequestFailed as RegistryRequestFailed
from actors.rendezvous._answers import RemoteRegistration as RemoteRegistration
from actors.rendezvous._client import RegistryClient as RegistryClient
from actors.rendezvous._client import bearer as bearer
from actors.rendezvous._client import open_registry_client as open_registry_client
from actors.rendezvous._counters import Counters as Counters
from actors.rendezvous._counters import RendezvousStatistics as RendezvousStatistics
from actors.rendezvous._limits import RendezvousLimits as RendezvousLimits
from actors.rendezvous._server import Rendezvous as Rendezvous
from actors.rendezvous._server import open_rendezvous as open_rendezvous
from actors.rendezvous._settings import RendezvousSettingInvalid as RendezvousSettingInvalid
from actors.rendezvous._tokens import Grant as Grant

__all__ = [
    "Counters",
    "Grant",
    "HarnessConnection",
    "RegistryAnswerInvalid",
    "RegistryAuthFailed",
    "RegistryClient",
    "RegistryConfigInvalid",
    "RegistryError",
    "RegistryHttpFailed",
    "RegistryRequestFailed",
    "RemoteRegistration",
    "Rendezvous",
    "RendezvousLimits",
    "RendezvousSettingInvalid",
    "RendezvousStatistics",
    "bearer",
    "open_registry_client",
    "open_rendezvous",
]

for _name in __all__:
    if getattr(_object := globals()[_name], "__module__", "").startswith(__name__ + "."):
        _object.__module__ = __name__
