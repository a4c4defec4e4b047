"""What `environment/info` says about this machine."""

import hashlib
import importlib.metadata
import os
import pwd
import sys
import tempfile
import uuid

from actors.protocol import Capabilities, EnvironmentInfo, Shell, uri_from_path

__all__ = ["gather_information", "platform_name"]


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
        capabilities=Capabilities(process_stdin_eof=True, process_terminate_grace=True, process_tty_size=True),
    )


def _shell() -> str:
    try:
        listed = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # A user that only exists as a number.
        listed = ""
    candidates = (os.environ.get("SHELL", ""), listed, "/bin/bash")
    return next((path for path in candidates if path.startswith("/") and os.access(path, os.X_OK)), "/bin/sh")


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
