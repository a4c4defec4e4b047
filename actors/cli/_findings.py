"""What `greenroom doctor` found, and how it is told. Knows nothing of the machine."""

import enum
from collections.abc import Sequence

import attrs

__all__ = ["Finding", "Verdict", "as_json", "as_text", "worst"]


class Verdict(enum.Enum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """What was looked at, in a word or two."""
    verdict: Verdict
    """Whether it is as it should be."""
    seen: str
    """What was found."""
    remedy: str = ""
    """What to do about it; empty where there is nothing to do."""


def worst(findings: Sequence[Finding]) -> Verdict:
    """The verdict on them all: that of the worst one."""
    order = list(Verdict)
    return max((finding.verdict for finding in findings), key=order.index, default=Verdict.OK)


def as_text(findings: Sequence[Finding]) -> str:
    """One line a finding, the remedy under it."""
    width = max(len(finding.check) for finding in findings)
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.verdict.value:<8}{finding.check:<{width}}  {finding.seen}")
        if finding.remedy:
            lines.append(f"{'':<8}{'':<{width}}  -> {finding.remedy}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """The same, for a program: the verdict on all, then each finding."""
    told = [{**attrs.asdict(finding), "verdict": finding.verdict.value} for finding in findings]
    return {"verdict": worst(findings).value, "findings": told}
