"""Messages about files: what they say, what they hide, and what their failures mean."""

import errno
import os
from typing import Any

import pytest

from actors.protocol import (
    FS_CLOSE,
    FS_GET_METADATA,
    FS_MISSING_CHANGED,
    FS_OPEN,
    FS_READ_FILE,
    FS_REMOVE,
    FS_WRITE_FILE,
    CloseResult,
    ErrorCode,
    FileFailureKind,
    GetMetadataParams,
    InvalidParams,
    ReadFileResult,
    RemoveParams,
    WriteFileParams,
    file_failure_kind,
    file_os_failure,
    file_too_large,
    handle_unknown,
    not_a_file,
    outside_roots,
    path_holds_link,
)


def test_what_files_hold_is_in_no_repr() -> None:
    assert "c2VjcmV0" not in repr(WriteFileParams(path="file:///f", data_base64="c2VjcmV0"))
    assert "secret" not in repr(ReadFileResult(data_base64=b"secret"))


def test_members_of_ours_travel_only_when_they_say_something() -> None:
    assert FS_GET_METADATA.encode_params(GetMetadataParams(path="file:///f")) == {"path": "file:///f"}
    assert FS_CLOSE.encode_result(CloseResult()) == {}
    assert FS_CLOSE.encode_result(CloseResult(replaced=True)) == {"replaced": True}


def test_what_is_dangerous_by_default_is_always_said() -> None:
    params = RemoveParams(path="file:///f", recursive=False, force=False)

    assert FS_REMOVE.encode_params(params) == {"path": "file:///f", "recursive": False, "force": False}


@pytest.mark.parametrize(
    ("method", "params", "rule"),
    [
        (FS_READ_FILE, {}, "missing field `path`"),
        (FS_READ_FILE, {"path": "file:///", "sandbox": {}}, "missing field `permissions`"),
        (FS_WRITE_FILE, {"path": "file:///"}, "missing field `dataBase64`"),
        (FS_OPEN, {"handleId": 5, "path": ""}, "invalid type: number, expected a string"),
        (FS_OPEN, {"handleId": "h", "path": "", "mode": "x"}, "unknown variant `x`, expected `read` or `replace`"),
        (FS_MISSING_CHANGED, {"watchId": -1}, "invalid number"),
    ],
)
def test_wrong_parameters_are_refused_in_the_words_of_the_wire(method: Any, params: Any, rule: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        method.decode_params(params)

    assert refused.value.rule == rule


@pytest.mark.parametrize(
    ("number", "code", "text", "kind"),
    [
        (errno.ENOENT, ErrorCode.NOT_FOUND, "No such file or directory (os error 2)", FileFailureKind.NOT_FOUND),
        (errno.ELOOP, ErrorCode.INTERNAL, f"Symbolic link loop (os error {errno.ELOOP})", FileFailureKind.LINK_LOOP),
        (errno.ENOTDIR, ErrorCode.INTERNAL, "Not a directory (os error 20)", FileFailureKind.NOT_DIRECTORY),
        (errno.ENOSPC, ErrorCode.INTERNAL, "No space left on device (os error 28)", FileFailureKind.OTHER),
    ],
)
def test_system_errors_read_as_the_other_implementation_writes_them(
    number: int, code: ErrorCode, text: str, kind: FileFailureKind
) -> None:
    failure = file_os_failure(number, os.strerror(number), "/f")

    assert (failure.code, failure.message) == (code, text)
    assert failure.data == {"kind": kind.value, "path": "/f"}
    # The same is read out of an answer without our data.
    assert file_failure_kind(failure.code, failure.message, None) is kind


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (not_a_file("/f"), FileFailureKind.NOT_FILE),
        (file_too_large("/f"), FileFailureKind.TOO_LARGE),
        (path_holds_link("/f"), FileFailureKind.LINK_LOOP),
        (handle_unknown("h"), FileFailureKind.NOT_FOUND),
    ],
)
def test_kinds_are_read_with_and_without_our_data(failure: Any, kind: FileFailureKind) -> None:
    assert file_failure_kind(failure.code, failure.message, failure.data) is kind
    assert file_failure_kind(failure.code, failure.message, None) is kind


def test_a_name_that_is_no_text_can_be_told() -> None:
    assert outside_roots(os.fsdecode(b"/\xff")).message == "path `/�` is outside of the roots of this executor"


@pytest.mark.parametrize("data", [None, [], "x", {"kind": 5}, {"kind": "nonsense"}])
def test_foreign_data_is_harmless(data: Any) -> None:
    assert file_failure_kind(-32603, "whatever", data) is FileFailureKind.OTHER
