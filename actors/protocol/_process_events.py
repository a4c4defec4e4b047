"""What an executor tells of a process unasked: the events of its sequence. Byte strings travel as base64.

Members marked "ours" go beyond the other implementation, which ignores them.
"""

import attrs

from actors.protocol._codec import I32, LEFT_OUT, U64, Name
from actors.protocol._process_messages import Stream


@attrs.frozen(kw_only=True)
class ProcessOutput:
    """Bytes a process wrote, as they come.

    Attributes:
        process_id: Which process.
        seq: Position in the process's sequence, from 1.
        stream: Which output.
        chunk: The bytes; may end inside a character.
    """

    process_id: Name
    seq: U64
    stream: Stream
    chunk: bytes


@attrs.frozen(kw_only=True)
class ProcessExited:
    """The exit code is known. Output may still come.

    Attributes:
        process_id: Which process.
        seq: Position in the process's sequence.
        exit_code: 128 + n after signal n.
        sandbox_denied: The sandbox stopped it.
    """

    process_id: Name
    seq: U64
    exit_code: I32
    sandbox_denied: bool = False


@attrs.frozen(kw_only=True)
class Survivor:
    """A descendant that a kill of the group could not reach.

    Attributes:
        pid: Its number in the environment.
        name: Its name there.
    """

    pid: U64
    name: str


@attrs.frozen(kw_only=True)
class ProcessClosed:
    """Nothing more will come: the last of the sequence.

    Attributes:
        process_id: Which process.
        seq: Position in the process's sequence.
        drain_limited: Ours: a descendant still held the output when the drain limit ended the wait for end-of-file.
        survivors: Ours: descendants left alive.
    """

    process_id: Name
    seq: U64
    drain_limited: bool = attrs.field(default=False, metadata=LEFT_OUT)
    survivors: tuple[Survivor, ...] = attrs.field(default=(), metadata=LEFT_OUT)


ProcessEvent = ProcessOutput | ProcessExited | ProcessClosed
"""What a process's sequence is made of."""
