"""Say what to install where the extra `sessions` is missing, before anything else here is imported."""

import importlib

_NEEDED = ("h2", "google")

try:
    for name in ("google.protobuf", "h2.connection"):
        importlib.import_module(name)
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in _NEEDED:
        raise
    text = (
        f"code sessions need the extra `sessions` ({missing.name} is not installed): `pip install '.[sessions]'` in "
        "the folder of greenroom"
    )
    raise ModuleNotFoundError(text, name=missing.name) from None
