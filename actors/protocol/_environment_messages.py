"""Messages about the connection and the environment as a whole."""

import attrs

from actors.protocol._codec import LEFT_OUT, Name


@attrs.frozen(kw_only=True)
class InitializeParams:
    """Open or resume a session: the first request of a connection.

    Attributes:
        client_name: Who calls; may be empty.
        resume_session_id: The session to attach to again; a new one when None.
    """

    client_name: Name
    resume_session_id: Name | None = None


@attrs.frozen(kw_only=True)
class Shell:
    """The user's shell in the environment.

    Attributes:
        name: Such as `bash`.
        path: Where it is.
    """

    name: str
    path: str


@attrs.frozen(kw_only=True)
class Capabilities:
    """What an executor can do beyond the methods every one has; absent members are False.

    Attributes:
        network_proxy_launch: Starts processes behind a network proxy.
        network_proxy_review_domains: Asks about each new domain.
        network_proxy_transparent_tcp: Catches plain TCP, too.
        credential_masking: Hides credentials in output.
        credential_masking_custom_providers: Hides those of named providers.
        capability_discovery_sandbox: Discovers capabilities inside a sandbox.
        fs_watch_missing: Has `fs/watchMissing`.
        capability_discovery_v2: Has `capabilities/discoverV2`.
        environment_config_read: Has `environmentConfig/read`.
        http_header_env_vars: Fills HTTP header values from its own environment.
        sandboxed_file_streaming: Streams files inside a sandbox.
        file_write_streaming: Has `fs/writeBlock`.
        shell_snapshot_v2: Takes shell snapshots.
        windows_mxc: Has the sandbox of that name.
        linux_root_write_preserves_devices: Keeps device nodes when the root is writable.
        linux_approved_root_write_preserves_restrictions: Keeps restrictions when the root is writable.
        process_stdin_eof: Ours: `process/write` with `eof` closes standard input.
        process_terminate_grace: Ours: `process/terminate` with `graceMs` asks first.
        process_tty_size: Ours: `process/start` takes `rows` and `cols`.
        fs_links: Ours: `fs/getMetadata` with `linkItself`; listings and walks say what is a link.
        fs_close_discard: Ours: what is written to an open file becomes the file at `fs/close`, and `discard` drops it.
        http_flow_control: Ours: `http/request` is there, and takes `windowBytes`, `http/request/more` and
            `http/request/cancel`.
    """

    network_proxy_launch: bool = False
    network_proxy_review_domains: bool = False
    network_proxy_transparent_tcp: bool = False
    credential_masking: bool = False
    credential_masking_custom_providers: bool = False
    capability_discovery_sandbox: bool = False
    fs_watch_missing: bool = False
    capability_discovery_v2: bool = False
    environment_config_read: bool = False
    http_header_env_vars: bool = False
    sandboxed_file_streaming: bool = False
    file_write_streaming: bool = False
    shell_snapshot_v2: bool = False
    windows_mxc: bool = False
    linux_root_write_preserves_devices: bool = False
    linux_approved_root_write_preserves_restrictions: bool = False
    process_stdin_eof: bool = attrs.field(default=False, metadata=LEFT_OUT)
    process_terminate_grace: bool = attrs.field(default=False, metadata=LEFT_OUT)
    process_tty_size: bool = attrs.field(default=False, metadata=LEFT_OUT)
    fs_links: bool = attrs.field(default=False, metadata=LEFT_OUT)
    fs_close_discard: bool = attrs.field(default=False, metadata=LEFT_OUT)
    http_flow_control: bool = attrs.field(default=False, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class EnvironmentInfo:
    """Where processes will run. Only the shell is certain; a harness accepts an answer without the rest.

    Attributes:
        shell: The user's shell.
        executor_version: The executor's own version.
        provider_id: Which installation it is.
        cwd: File URI of the folder the executor was started in.
        user_home_dir: File URI of the user's home.
        platform_os: Such as `linux`.
        prepend_path_dirs: Folders put in front of PATH; absent when empty.
        temporary_directories: File URIs of folders for temporary files.
        temp_dir: File URI of the folder for temporary files.
        capabilities: What it can do beyond the common methods.
    """

    shell: Shell
    executor_version: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    provider_id: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    cwd: str | None = None
    user_home_dir: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    platform_os: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    prepend_path_dirs: tuple[str, ...] | None = attrs.field(default=None, metadata=LEFT_OUT)
    temporary_directories: tuple[str, ...] = ()
    temp_dir: str | None = attrs.field(default=None, metadata=LEFT_OUT)
    capabilities: Capabilities = Capabilities()


@attrs.frozen(kw_only=True)
class InitializeResult:
    """The session this connection is attached to.

    Attributes:
        session_id: What to resume by.
        environment_info: As `environment/info` answers; older executors leave it out.
    """

    session_id: Name
    environment_info: EnvironmentInfo | None = attrs.field(default=None, metadata=LEFT_OUT)


@attrs.frozen(kw_only=True)
class EnvironmentStatus:
    """The executor is alive and answers.

    Attributes:
        status: `ready`.
    """

    status: str


@attrs.frozen
class Nothing:
    """No parameters: absent, null and an empty object mean the same."""


@attrs.frozen
class Empty:
    """An object without members of interest; what it holds is ignored."""
