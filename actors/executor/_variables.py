"""Decide which environment variables a process gets: exactly those asked for.

Knows names, values and patterns. Does not know where the executor's own variables come from; they are handed in.
"""

import re
from collections.abc import Iterable, Mapping

import attrs

from actors.protocol import EnvironmentInherit, EnvironmentPolicy

__all__ = ["CORE_NAMES", "Variables", "build_variables"]

CORE_NAMES = frozenset({
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "USER", "USERNAME",
})  # fmt: skip
"""What ``inherit: core`` passes on: a search path, a home, a user, a locale, a place for temporary files."""

DEFAULT_EXCLUDES = ("*KEY*", "*SECRET*", "*TOKEN*")


@attrs.frozen(kw_only=True)
class Variables:
    """The environment of one process, and how much of it was passed on."""

    values: Mapping[str, str] = attrs.field(repr=False)
    """Everything the process gets, and nothing else."""
    inherited_names: tuple[str, ...] = ()
    """Sorted names whose value came from the executor's own environment: fit for an audit log, values are not."""


def build_variables(
    given: Mapping[str, str], policy: EnvironmentPolicy | None, *, executor: Mapping[str, str]
) -> Variables:
    """Build the variables of one process: exactly ``given`` unless a policy asks for more.

    Order: inherit, default excludes, excludes, ``set``, ``include_only``, and last ``given`` over everything.

    Args:
        given: What the client sent for this process.
        policy: What the client asked to be passed on; ``None`` passes nothing on.
        executor: The executor's own environment, as it was when serving began.
    """
    if policy is None:
        return Variables(values=dict(given))
    inherited = _inherited(policy, executor)
    values = {**inherited, **policy.set}
    if policy.include_only:
        keep = _matcher(policy.include_only)
        values = {name: value for name, value in values.items() if keep(name)}
    from_executor = inherited.keys() - policy.set.keys() - given.keys()
    return Variables(
        values={**values, **given},
        inherited_names=tuple(sorted(from_executor & values.keys())),
    )


def _inherited(policy: EnvironmentPolicy, executor: Mapping[str, str]) -> dict[str, str]:
    if policy.inherit is EnvironmentInherit.NONE:
        return {}
    dropped = _matcher((*policy.exclude, *(() if policy.ignore_default_excludes else DEFAULT_EXCLUDES)))
    core_only = policy.inherit is EnvironmentInherit.CORE
    return {
        name: value
        for name, value in executor.items()
        if not dropped(name) and (not core_only or name.upper() in CORE_NAMES)
    }


class _matcher:  # noqa: N801 - it is used as a function, and a closure would hide the pattern.
    """Says whether a name matches one of some patterns, letter case ignored."""

    __slots__ = ("_pattern",)

    def __init__(self, patterns: Iterable[str]) -> None:
        joined = "|".join(_expression(pattern) for pattern in patterns)
        self._pattern = re.compile(joined, re.IGNORECASE | re.DOTALL) if joined else None

    def __call__(self, name: str) -> bool:
        return self._pattern is not None and self._pattern.fullmatch(name) is not None


def _expression(pattern: str) -> str:
    return "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern) or "(?!)"
