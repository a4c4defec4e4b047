"""`greenroom serve`: a registry and rendezvous in the foreground."""

import ssl
import sys
from argparse import Namespace
from functools import partial
from urllib.parse import SplitResult, urlsplit

import attrs
import trio

from actors.cli._foreground import announce, stay
from actors.cli._output import OutputRefused
from actors.cli._programs import cannot_listen, run_program
from actors.cli._tokens import TokenFileRefused, read_token
from actors.rendezvous import Grant, Rendezvous, RendezvousLimits, open_rendezvous

__all__ = ["serve"]


def serve(chosen: Namespace) -> int:
    """Serve until told to end; 1 when the address cannot be had, 2 when the call makes no sense."""
    try:
        options = _options(chosen)
    except (TokenFileRefused, ValueError) as refused:
        print(f"greenroom serve: {refused}", file=sys.stderr)
        return 2
    stopping = trio.Event()
    try:
        run = partial(_serve, options, stopping)
        return run_program(partial(stay, run, exit_with_parent=chosen.exit_with_parent), stopping=stopping)
    except OutputRefused as refused:
        print(f"greenroom serve: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"greenroom serve: {cannot_listen(chosen.listen, error)}", file=sys.stderr)
        return 1


@attrs.frozen(kw_only=True)
class _Options:
    """What was typed, judged.

    Attributes:
        host: Where to listen.
        port: On which port.
        grants: Who may do what.
        limits: Bounds.
        certificate: Serves TLS.
        public_url: How clients reach it.
        drain_s: How long streams may go on after SIGTERM.
        status_every_s: How often to tell the numbers; 0 is never.
        as_json: Whether programs read along.
    """

    host: str
    port: int
    grants: list[Grant] = attrs.field(repr=False)
    limits: RendezvousLimits
    certificate: ssl.SSLContext | None
    public_url: str | None
    drain_s: float
    status_every_s: float
    as_json: bool


def _options(chosen: Namespace) -> _Options:
    certificate = _certificate(chosen.certificate, chosen.key)
    host, port = _address(chosen.listen, "http" if certificate is None else "https")
    _check_public(chosen.public_url)
    return _Options(
        host=host,
        port=port,
        grants=_grants(chosen),
        limits=_limits(chosen),
        certificate=certificate,
        public_url=chosen.public_url,
        drain_s=chosen.drain_s,
        status_every_s=chosen.status_every_s,
        as_json=chosen.json,
    )


def _address(listen: str, scheme: str) -> tuple[str, int]:
    parts = _read_url("--listen", listen, scheme)
    if parts.port is None or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError(f"--listen takes {scheme}://HOST:PORT and nothing behind it, such as {scheme}://127.0.0.1:0")
    return str(parts.hostname), parts.port


def _check_public(url: str | None) -> None:
    if url is None:
        return
    parts = _read_url("--public-url", url, "https" if url.startswith("https:") else "http")
    if parts.port == 0 or parts.query or parts.fragment:
        raise ValueError("--public-url takes the address that clients dial, such as https://relay.example")


def _read_url(option: str, url: str, scheme: str) -> SplitResult:
    """Give the parts of a URL with a host, and a port that is one or none."""
    try:
        parts = urlsplit(url)
        is_wrong = parts.scheme != scheme or not parts.hostname or parts.username is not None
    except ValueError:
        parts, is_wrong = SplitResult("", "", "", "", ""), True
    if is_wrong:
        how = " with a certificate" if scheme == "https" else ""
        hint = "; https:// needs --certificate and --key" if parts.scheme == "https" and scheme == "http" else ""
        raise ValueError(f"{option} takes {scheme}://HOST:PORT{how}{hint}")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{option} {url!r}: the port must be a number from 0 to 65535") from None
    return parts


def _certificate(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ValueError("--certificate and --key belong together")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for option, path in (("--certificate", certificate), ("--key", key)):
        _check_readable(option, path)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # Of files that are no certificate or do not fit, too: `ssl.SSLError`.
        raise ValueError(f"--certificate {certificate!r} and --key {key!r} cannot be used: {error}") from None
    return context


def _check_readable(option: str, path: str) -> None:
    """Demand a file that can be read: OpenSSL does not say which of two it could not."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ValueError(f"{option} {path!r} cannot be used: {error.strerror}") from None


def _no_password() -> str:
    """OpenSSL would ask on the terminal, and wait for ever where there is none."""
    raise ValueError("the key is locked by a password")


def _grants(chosen: Namespace) -> list[Grant]:
    """One token for everybody, or one for executors and one for harnesses, or all three."""
    rights: dict[str, tuple[str | None, bool, bool]] = {
        "token-file": (chosen.token_file, True, True),
        "executor-token-file": (chosen.executor_token_file, True, False),
        "harness-token-file": (chosen.harness_token_file, False, True),
    }
    grants = [
        Grant(token=token, name=name, may_register=may_register, may_connect=may_connect)
        for name, (path, may_register, may_connect) in rights.items()
        if (token := read_token(path)) is not None
    ]
    if not any(grant.may_register for grant in grants) or not any(grant.may_connect for grant in grants):
        raise ValueError("it takes --token-file, or both --executor-token-file and --harness-token-file")
    if len({grant.token for grant in grants}) < len(grants):
        raise ValueError("two of the token files hold the same token")
    return grants


def _limits(chosen: Namespace) -> RendezvousLimits:
    named = {
        "max_connections": chosen.max_connections,
        "max_streams_per_token": chosen.max_streams,
        "requests_per_s": chosen.requests_per_s,
        "bytes_per_s": chosen.bytes_per_s,
    }
    return RendezvousLimits(**{name: value for name, value in named.items() if value is not None})


async def _serve(options: _Options, stopping: trio.Event) -> None:
    async with open_rendezvous(
        options.grants,
        host=options.host,
        port=options.port,
        limits=options.limits,
        public_url=options.public_url,
        ssl_context=options.certificate,
    ) as rendezvous:
        announce({"url": rendezvous.url}, rendezvous.url, as_json=options.as_json)
        with trio.CancelScope() as telling:
            async with trio.open_nursery() as nursery:
                if options.status_every_s:
                    nursery.start_soon(_tell_now_and_then, rendezvous, options)
                await stopping.wait()
                await _drain(rendezvous, options)
                telling.cancel()


async def _tell_now_and_then(rendezvous: Rendezvous, options: _Options) -> None:
    while True:
        await trio.sleep(options.status_every_s)
        _tell(rendezvous, options)


def _tell(rendezvous: Rendezvous, options: _Options) -> None:
    status = attrs.asdict(rendezvous.statistics())
    carried = f"{status['executors']} executors, {status['streams']} streams"
    announce({"status": status}, carried, as_json=options.as_json)


async def _drain(rendezvous: Rendezvous, options: _Options) -> None:
    """Take nothing new, give the streams their time, then tell how it ended; leaving the rendezvous closes the rest."""
    streams = rendezvous.statistics().streams
    if streams:
        told = f"taking nothing new; {streams} streams may end within {options.drain_s:g} s"
        print(f"greenroom serve: {told}", file=sys.stderr)
    if not await rendezvous.drain(options.drain_s):
        left = rendezvous.statistics().streams
        print(f"greenroom serve: {left} streams are told to come again", file=sys.stderr)
    if options.as_json:
        _tell(rendezvous, options)
