"""Say what to install where the extra `sessions` is missing, before anything else here is imported."""

from importlib.util import find_spec

_NEEDED = ("h2", "google")

try:
    # Looked for, not imported: a host starts its engines before it needs them.
    for name in ("google.protobuf", "h2.connection"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in _NEEDED:
        raise
    text = (
        f"code sessions need the extra `sessions` ({missing.name} is not installed): `pip install '.[sessions]'` in "
        "the folder of greenroom"
    )
    raise ModuleNotFoundError(text, name=missing.name) from None
