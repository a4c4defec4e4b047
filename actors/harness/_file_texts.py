"""Files as text: what does not fit names the file and what to do, and is no other error than Python's own."""

from typing import cast

from actors.harness._arguments import check_kind
from actors.harness._errors import InvalidArgument


def decoded_file(path: str, data: bytes, encoding: str, errors: str) -> str:
    """Read what a file holds as text.

    Raises:
        UnicodeDecodeError: It holds something else.
    """
    check_kind("encoding", encoding, str)
    check_kind("errors", errors, str)
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        error.reason += f", in {path}: read_bytes() gives it as it is, and errors='replace' puts marks there"
        raise


def encoded_text(path: str, text: str, encoding: str) -> bytes:
    """Write a text as bytes of a file.

    Raises:
        UnicodeEncodeError: The encoding cannot say it.
    """
    if isinstance(cast("object", text), bytes | bytearray | memoryview):
        raise InvalidArgument("text", f"must be text, not {type(text).__name__}; write_bytes() takes bytes")
    check_kind("text", text, str)
    check_kind("encoding", encoding, str)
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        error.reason += f", for {path}: choose another encoding, or write_bytes()"
        raise
