"""`greenroom codemode-host`: serve code sessions in the foreground and say where."""

import ssl
import sys
from argparse import Namespace
from functools import partial
from typing import Final

import trio

from actors import sessions
from actors.cli._foreground import announce
from actors.cli._output import OutputRefused
from actors.cli._programs import cannot_listen, run_program_politely
from actors.cli._tokens import TokenFileRefused, read_token
from actors.sessions.host import EngineNotFound, HostError, HostOptions, RunningHost, open_host

__all__ = ["codemode_host"]

_MIB: Final = 1024 * 1024


def codemode_host(chosen: Namespace) -> int:
    """Serve until interrupted; 1 when it cannot be had, 2 when it may not be had."""
    try:
        options = _options(chosen)
    except sessions.InvalidArgument as refused:
        option = f"--{refused.field.replace('_', '-')}"
        print(f"greenroom codemode-host: {option}: {refused.rule}", file=sys.stderr)
        return 2
    except (TokenFileRefused, ValueError) as refused:
        print(f"greenroom codemode-host: {refused}", file=sys.stderr)
        return 2
    try:
        return run_program_politely(partial(_serve, chosen, options))
    except EngineNotFound as missing:
        print(f"greenroom codemode-host: {missing}".replace("`engine_path`", "`--engine`"), file=sys.stderr)
        return 2
    except (HostError, ValueError) as refused:
        print(f"greenroom codemode-host: {refused}", file=sys.stderr)
        return 2
    except OutputRefused as refused:
        print(f"greenroom codemode-host: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"greenroom codemode-host: {cannot_listen(chosen.listen, error)}", file=sys.stderr)
        return 1


def _options(chosen: Namespace) -> HostOptions:
    if (chosen.tls_certificate is None) != (chosen.tls_key is None):
        raise ValueError("--tls-certificate and --tls-key belong together")
    if chosen.heap_mib <= 0:
        raise ValueError(f"--heap-mib: must be above 0, not {chosen.heap_mib}")
    if chosen.stored_mib <= 0:
        raise ValueError(f"--stored-mib: must be above 0, not {chosen.stored_mib}")
    return HostOptions(
        engine_path=chosen.engine,
        heap_bytes=chosen.heap_mib * _MIB,
        warm_engines=chosen.warm_engines,
        cells_max=chosen.cells_max,
        cells_per_session_max=chosen.cells_per_session_max,
        cells_per_engine_max=1 if chosen.process_per_cell else None,
        cell_deadline_s=chosen.cell_deadline_s,
        stored_bytes_max=chosen.stored_mib * _MIB,
        walls_required=chosen.require_walls,
        token=read_token(chosen.token_file),
        ssl_context=_tls(chosen.tls_certificate, chosen.tls_key),
    )


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None or key is None:
        return None
    for option, path in (("--tls-certificate", certificate), ("--tls-key", key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise ValueError(f"the certificate cannot be used: {option} {path}: {error.strerror}") from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ValueError(f"the certificate cannot be used: {certificate} with {key}: {error}") from error
    return context


async def _serve(chosen: Namespace, options: HostOptions, asked_to_end: trio.Event) -> int:
    async with open_host(chosen.listen, options=options) as running:
        announce(_facts(running), running.endpoint, as_json=chosen.json)
        if not chosen.json:
            _tell(running)
        await asked_to_end.wait()
        await running.drain(grace_s=chosen.drain_s)
    return 0


def _facts(running: RunningHost) -> dict[str, object]:
    engine, walls = running.engine, running.walls
    return {
        "url": running.endpoint,
        "engine": {"kind": engine.kind, "version": engine.version, "path": engine.path, "found": engine.found},
        "walls": {"active": [*walls.active], "missing": dict(walls.missing)},
    }


def _tell(running: RunningHost) -> None:
    engine, walls = running.engine, running.walls
    print(f"engine: {engine.kind} {engine.version} ({engine.found})", file=sys.stderr)
    print(f"walls: {', '.join(walls.active) or 'none'}", file=sys.stderr)
    for name, why in walls.missing.items():
        print(f"no {name}: {why}", file=sys.stderr)
