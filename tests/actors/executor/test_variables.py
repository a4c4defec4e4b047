"""Which variables a process gets. Case P17, the pure half."""

from collections.abc import Mapping

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from actors.executor._variables import CORE_NAMES, build_variables
from actors.protocol import EnvironmentInherit, EnvironmentPolicy

EXECUTOR = {
    "PATH": "/bin",
    "HOME": "/root",
    "LANG": "C",
    "API_KEY": "k",
    "my_secret": "s",
    "GH_TOKEN": "t",
    "HTTPS_PROXY": "http://user:password@proxy",
    "LD_PRELOAD": "/lib/x.so",
    "BASH_ENV": "/etc/rc",
    "EDITOR": "vi",
}


def policy(
    inherit: EnvironmentInherit = EnvironmentInherit.ALL,
    *,
    keep_secrets: bool = False,
    exclude: tuple[str, ...] = (),
    add: Mapping[str, str] | None = None,
    only: tuple[str, ...] = (),
) -> EnvironmentPolicy:
    return EnvironmentPolicy(
        inherit=inherit,
        ignore_default_excludes=keep_secrets,
        exclude=exclude,
        set=add or {},
        include_only=only,
    )


def names(given_variables: Mapping[str, str], chosen: EnvironmentPolicy | None) -> set[str]:
    return set(build_variables(given_variables, chosen, executor=EXECUTOR).values)


def test_without_a_policy_the_process_gets_exactly_what_was_given() -> None:
    built = build_variables({"A": "1"}, None, executor=EXECUTOR)

    assert built.values == {"A": "1"}
    assert built.inherited_names == ()


def test_core_is_a_short_documented_list() -> None:
    assert names({"A": "1"}, policy(EnvironmentInherit.CORE)) == {"PATH", "HOME", "LANG", "A"}
    assert len(CORE_NAMES) < 15


def test_names_that_smell_of_secrets_are_dropped_whatever_their_case() -> None:
    assert not names({}, policy()) & {"API_KEY", "my_secret", "GH_TOKEN"}
    assert names({}, policy(keep_secrets=True)) == set(EXECUTOR)


def test_an_exclude_never_touches_what_the_policy_sets_or_the_client_gives() -> None:
    assert names({"EDITOR": "x"}, policy(exclude=("ED*", "P?TH"), add={"PATH": "y"})) >= {"EDITOR", "PATH"}


def test_include_only_also_judges_what_the_policy_sets_but_not_what_the_client_gives() -> None:
    chosen = policy(EnvironmentInherit.NONE, exclude=("A",), add={"A": "b", "B": "c", "TOKEN": "t"}, only=("A", "B"))

    assert build_variables({"A": "over"}, chosen, executor=EXECUTOR).values == {"A": "over", "B": "c"}


def test_the_audit_sees_which_names_came_from_the_executor() -> None:
    built = build_variables({"HOME": "/x"}, policy(EnvironmentInherit.CORE, add={"LANG": "de"}), executor=EXECUTOR)

    assert built.inherited_names == ("PATH",)


def test_values_are_in_no_representation() -> None:
    built = build_variables({"A": "hush-1"}, policy(keep_secrets=True, add={"B": "hush-2"}), executor=EXECUTOR)

    assert "hush" not in repr(built)
    assert "password" not in repr(built)


@pytest.mark.parametrize(("pattern", "hit"), [("a*c", "ABXC"), ("a?c", "abc"), ("[a]", "[A]"), (".*", ".x"), ("*", "")])
def test_only_star_and_question_mark_mean_something(pattern: str, hit: str) -> None:
    built = build_variables({}, policy(exclude=(pattern,)), executor={hit: "1", "other": "2"})

    assert hit not in built.values
    assert ("other" in built.values) == (pattern != "*")


NAMES = st.sampled_from(["PATH", "HOME", "A", "B", "A_KEY", "TOKEN_X", "lang", "USER"])
VARIABLES = st.dictionaries(NAMES, st.text("abc", min_size=1, max_size=2), max_size=6)
PATTERNS = st.lists(st.sampled_from(["A*", "?", "*_KEY", "PATH", "*", "h*"]), max_size=2).map(tuple)


@given(
    given_variables=VARIABLES,
    executor=VARIABLES,
    added=VARIABLES,
    inherit=st.sampled_from(EnvironmentInherit),
    keep_secrets=st.booleans(),
    exclude=PATTERNS,
    only=PATTERNS,
)
def test_nothing_comes_from_nowhere_and_what_was_given_always_wins(
    given_variables: dict[str, str],
    executor: dict[str, str],
    added: dict[str, str],
    inherit: EnvironmentInherit,
    keep_secrets: bool,
    exclude: tuple[str, ...],
    only: tuple[str, ...],
) -> None:
    """Killed: `given` laid under `set`; default excludes skipped beside an `exclude`; `exclude` applied after `set`;
    the audit built before `include_only`."""
    chosen = policy(inherit, keep_secrets=keep_secrets, exclude=exclude, add=added, only=only)
    built = build_variables(given_variables, chosen, executor=executor)
    event(f"inherited {len(built.inherited_names)}")

    assert given_variables.items() <= built.values.items()
    for name, value in built.values.items():
        sources = [source[name] for source in (given_variables, added, executor) if name in source]
        assert sources[0] == value
        if name in built.inherited_names:
            assert name not in given_variables
            assert name not in added
            assert keep_secrets or not any(word in name for word in ("KEY", "SECRET", "TOKEN"))
            assert inherit is EnvironmentInherit.ALL or name.upper() in CORE_NAMES
    foreign = set(built.values) - set(given_variables) - set(added)
    assert foreign == set(built.inherited_names)
    if not only:
        assert set(added) <= set(built.values)
