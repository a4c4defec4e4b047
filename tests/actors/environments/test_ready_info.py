"""What may be told about a ready environment: the exact limits, their order, and the texts that peers know."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.environments import (
    MAX_SELECTED_CAPABILITY_ROOTS,
    InvalidReadyInfo,
    ProtocolError,
    ReadyInfo,
    SelectedCapabilityRoot,
)
from actors.environments._ready_info import check_ready_info

PATH = "file:///plugins/root"
BELONG = (
    "exec-server protocol error: selected capability roots must have unique non-empty IDs and belong to environment `e`"
)
TOO_MANY = "exec-server protocol error: environment ready info contains more than 256 selected capability roots"


def root(root_id: str, environment_id: str = "e", path: str = PATH) -> SelectedCapabilityRoot:
    return SelectedCapabilityRoot(id=root_id, environment_id=environment_id, path=path)


def info(*roots: SelectedCapabilityRoot) -> ReadyInfo:
    return ReadyInfo(selected_capability_roots=roots)


def test_an_empty_list_is_valid() -> None:
    check_ready_info(ReadyInfo(), "e")


def test_256_roots_are_accepted_and_257_are_not() -> None:
    roots = [root(f"r{number}") for number in range(257)]
    check_ready_info(info(*roots[:256]), "e")

    with pytest.raises(InvalidReadyInfo) as refused:
        check_ready_info(info(*roots), "e")

    assert MAX_SELECTED_CAPABILITY_ROOTS == 256
    assert str(refused.value) == TOO_MANY


@pytest.mark.parametrize(
    "roots",
    [[root("")], [root("  \t ")], [root("a", "other")], [root("a"), root("b"), root("a")]],
    ids=["empty id", "blank id", "other environment", "doubled id"],
)
def test_a_root_that_is_blank_foreign_or_doubled_is_refused(roots: list[SelectedCapabilityRoot]) -> None:
    with pytest.raises(InvalidReadyInfo) as refused:
        check_ready_info(info(*roots), "e")

    assert str(refused.value) == BELONG


def test_ids_are_compared_untrimmed() -> None:
    check_ready_info(info(root("a"), root(" a"), root("A")), "e")


def test_the_number_is_checked_before_the_roots() -> None:
    with pytest.raises(InvalidReadyInfo) as refused:
        check_ready_info(info(*[root("")] * 257), "e")

    assert str(refused.value) == TOO_MANY


def test_the_first_bad_root_is_named_in_a_note() -> None:
    with pytest.raises(InvalidReadyInfo) as refused:
        check_ready_info(info(root("a"), root("b", "x"), root("")), "e")

    assert refused.value.__notes__ == ["The first root that breaks the rule has the id 'b'."]


@pytest.mark.parametrize("path", ["https:///a", "/a", "", "file", "file:a", "FILE", "data:,x"])
def test_a_path_that_is_no_file_uri_is_refused_at_birth(path: str) -> None:
    with pytest.raises(ProtocolError, match="must be a file: URI"):
        root("a", path=path)


def test_the_wire_shape_is_what_peers_write() -> None:
    written = {"id": "a", "location": {"type": "environment", "environmentId": "e", "path": PATH}}

    assert root("a").to_json() == written
    assert SelectedCapabilityRoot.from_json({**written, "extra": 1}) == root("a")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ([], "must be an object"),
        ({"id": "a"}, "location must be an object"),
        ({"id": "a", "location": {"type": "disk"}}, "location type 'disk' is unknown"),
        ({"id": 1, "location": {"type": "environment", "environmentId": "e", "path": PATH}}, "`id`"),
        ({"id": "a", "location": {"type": "environment", "path": PATH}}, "`environmentId`"),
        ({"id": "a", "location": {"type": "environment", "environmentId": "e", "path": "http://x"}}, "file: URI"),
    ],
)
def test_a_bad_wire_shape_is_refused_by_the_name_of_the_member(written: object, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        SelectedCapabilityRoot.from_json(written)


@given(
    st.lists(
        st.builds(root, st.sampled_from(["", " ", "a", "b", " a", "c"]), st.sampled_from(["e", "e", "e", "f"])),
        max_size=8,
    )
)
def test_information_is_accepted_exactly_when_a_plain_reading_of_the_rules_accepts_it(
    roots: list[SelectedCapabilityRoot],
) -> None:
    """Mutants seen killed: ids compared after `strip()`; blank test without `strip()`; environment never compared."""
    ids = [one.id for one in roots]
    fine = len(set(ids)) == len(ids) and all(one.id.strip() and one.environment_id == "e" for one in roots)

    if fine:
        check_ready_info(info(*roots), "e")
        assert list(info(*roots).selected_capability_roots) == roots
    else:
        with pytest.raises(InvalidReadyInfo):
            check_ready_info(info(*roots), "e")
