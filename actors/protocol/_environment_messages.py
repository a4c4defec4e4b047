"""Messages about the connection and the environment as a whole."""

from typing import Any

import attrs

from actors.protocol._codec import LEFT_OUT


@attrs.frozen(kw_only=True)
class InitializeParams:
    """Open or resume a session: the first request of a connection."""

    client_name: str
    """Who calls; may be empty."""
    resume_session_id: str | None = None
    """The session to attach to again; a new one when None."""


@attrs.frozen(kw_only=True)
class Shell:
    """The user's shell in the environment."""

    name: str
    """Such as `bash`."""
    path: str
    """Where it is."""


@attrs.frozen(kw_only=True)
class Capabilities:
    """What an executor can do beyond the methods every one has; absent members are False."""

    network_proxy_launch: bool = False
    """Starts processes behind a network proxy."""
    network_proxy_review_domains: bool = False
    """Asks about each new domain."""
    network_proxy_transparent_tcp: bool = False
    """Catches plain TCP, too."""
    credential_masking: bool = False
    """Hides credentials in output."""
    credential_masking_custom_providers: bool = False
    """Hides those of named providers."""
    capability_discovery_sandbox: bool = False
    """Discovers capabilities inside a sandbox."""
    fs_watch_missing: bool = False
    """Has `fs/watchMissing`."""
    capability_discovery_v2: bool = False
    """Has `capabilities/discoverV2`."""
    environment_config_read: bool = False
    """Has `environmentConfig/read`."""
    http_header_env_vars: bool = False
    """Fills HTTP header values from its own environment."""
    sandboxed_file_streaming: bool = False
    """Streams files inside a sandbox."""
    file_write_streaming: bool = False
    """Has `fs/writeBlock`."""
    shell_snapshot_v2: bool = False
    """Takes shell snapshots."""
    windows_mxc: bool = False
    """Has the sandbox of that name."""
    linux_root_write_preserves_devices: bool = False
    """Keeps device nodes when the root is writable."""
    linux_approved_root_write_preserves_restrictions: bool = False
    """Keeps restrictions when the root is writable."""
    process_stdin_eof: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: `process/write` with `eof` closes standard input."""
    process_terminate_grace: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: `process/terminate` with `graceMs` asks first."""
    process_tty_size: bool = attrs.field(default=False, metadata=LEFT_OUT)
    """Ours: `process/start` takes `rows` and `cols`."""


@attrs.frozen(kw_only=True)
class EnvironmentInfo:
    """Where processes will run. Only the shell is certain; a harness accepts an answer without the rest."""

    shell: Shell
    """The user's shell."""
    executor_version: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """The executor's own version."""
    provider_id: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Which installation it is."""
    cwd: str | None = None
    """File URI of the folder the executor was started in."""
    user_home_dir: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """File URI of the user's home."""
    platform_os: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Such as `linux`."""
    prepend_path_dirs: tuple[str, ...] | None = attrs.field(default=None, metadata=LEFT_OUT)
    """Folders put in front of PATH; absent when empty."""
    temporary_directories: tuple[str, ...] = ()
    """File URIs of folders for temporary files."""
    temp_dir: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    """File URI of the folder for temporary files."""
    capabilities: Capabilities = Capabilities()
    """What it can do beyond the common methods."""


@attrs.frozen(kw_only=True)
class InitializeResult:
    """The session this connection is attached to."""

    session_id: str
    """What to resume by."""
    environment_info: EnvironmentInfo | None = attrs.field(default=None, metadata=LEFT_OUT)
    """As `environment/info` answers; older executors leave it out."""


@attrs.frozen(kw_only=True)
class EnvironmentStatus:
    """The executor is alive and answers."""

    status: str
    """`ready`."""


@attrs.frozen
class Nothing:
    """No parameters: absent, null and an empty object mean the same."""


@attrs.frozen
class Empty:
    """An object without members of interest; what it holds is ignored."""


JsonValue = Any
"""A decoded JSON value that passes through."""
