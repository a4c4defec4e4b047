"""Say what to install where the extra `sessions` is missing, before anything else here is imported."""

_NEEDED = ("h2", "google")

try:
    import google.protobuf  # noqa: F401 - only whether it is there.
    import h2.connection  # noqa: F401 - as well.
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in _NEEDED:
        raise
    text = (
        f"code sessions need the extra `sessions` ({missing.name} is not installed): `pip install '.[sessions]'` in "
        "the folder of greenroom, or `pip install 'greenroom[sessions]'`"
    )
    raise ModuleNotFoundError(text, name=missing.name) from None
