"""What `environment/info` says about this machine."""

import hashlib
import importlib.metadata
import os
import pwd
import sys
import tempfile
import uuid

import attrs

from actors.protocol import Capabilities, EnvironmentInfo, Shell, uri_from_path

__all__ = ["gather_information", "platform_name", "with_http"]


def platform_name() -> str:
    """Name this system as the protocol does: ``linux``, ``macos``."""
    return {"darwin": "macos"}.get(sys.platform, sys.platform)


def gather_information() -> EnvironmentInfo:
    """Look once at the machine, the user and this installation."""
    shell = _shell()
    return EnvironmentInfo(
        shell=Shell(name=os.path.basename(shell), path=shell),
        executor_version=_version(),
        provider_id=_provider_id(),
        cwd=uri_from_path(os.getcwd()),
        user_home_dir=uri_from_path(os.path.expanduser("~")),
        platform_os=platform_name(),
        temporary_directories=_temporary_directories(),
        temp_dir=uri_from_path(tempfile.gettempdir()),
        capabilities=Capabilities(
            fs_watch_missing=True,
            file_write_streaming=True,
            process_stdin_eof=True,
            process_terminate_grace=True,
            process_tty_size=True,
            fs_links=True,
            fs_close_discard=True,
        ),
    )


def with_http(information: EnvironmentInfo) -> EnvironmentInfo:
    """Say as well that HTTP requests are made for clients."""
    more = attrs.evolve(information.capabilities, http_header_env_vars=True, http_flow_control=True)
    return attrs.evolve(information, capabilities=more)


def _shell() -> str:
    try:
        listed = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # A user that only exists as a number.
        listed = ""
    candidates = (os.environ.get("SHELL", ""), listed, "/bin/bash")
    # What is not printable may have no form on the wire.
    fit = (path for path in candidates if path.startswith("/") and path.isprintable() and os.access(path, os.X_OK))
    return next(fit, "/bin/sh")


def _temporary_directories() -> tuple[str, ...]:
    named = os.environ.get("TMPDIR", "")
    return (uri_from_path(named),) if named.startswith("/") else ()


def _version() -> str:
    try:
        return importlib.metadata.version("greenroom")
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


def _provider_id() -> str:
    """Tell this installation from others without naming the machine."""
    seed = f"{uuid.getnode()}:{sys.prefix}:{_version()}"
    return "sha256:" + hashlib.sha256(seed.encode()).hexdigest()
