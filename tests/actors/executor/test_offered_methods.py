"""Every method and notification of the protocol, and where it stands; the table in the documents is true."""

from pathlib import Path

from actors.executor import open_executor
from actors.protocol import METHODS, NEWS
from tests.actors.executor.client import Refused, memory_client
from tests.support.skips import needs

WIRE = Path(__file__).parents[3] / "docs" / "wire.md"
NOT_OFFERED = {"capabilities/discoverV2", "environmentConfig/read", "network/policyRequest", "network/policyDecision"}
THEIRS = {
    "initialize",
    "environment/info",
    "environment/status",
    *(f"process/{verb}" for verb in ("start", "read", "write", "signal", "terminate")),
    *(f"fs/{verb}" for verb in ("readFile", "writeFile", "createDirectory", "getMetadata", "canonicalize")),
    *(f"fs/{verb}" for verb in ("readDirectory", "walk", "remove", "copy", "open", "readBlock", "writeBlock")),
    *(f"fs/{verb}" for verb in ("close", "watchMissing")),
    "http/request",
    "capabilityRoots/discoverV1",
}
OURS = {"http/request/more", "http/request/cancel"}


def test_the_methods_are_those_of_the_protocol_and_two_of_ours() -> None:
    assert set(METHODS) == THEIRS | OURS
    assert set(NEWS) == {
        "initialized",
        "process/output",
        "process/exited",
        "process/closed",
        "fs/missingChanged",
        "http/request/bodyDelta",
    }


@needs(WIRE.exists(), "the folder of documents", "run this test in a checkout of the repository")
def test_the_table_in_the_documents_names_each_of_them() -> None:
    table = WIRE.read_text().partition("**Methods.**")[2].partition("\n\n**")[0]

    assert {name for name in {*METHODS, *NEWS, *NOT_OFFERED} if f"`{name}`" not in table} == set()


async def test_an_executor_answers_each_method_it_offers_and_no_other() -> None:
    async with open_executor(http=True) as executor, memory_client(executor) as client:
        for method in sorted({*METHODS, *NOT_OFFERED}):
            code = 0
            try:
                await client.call(method, nothing="of meaning")
            except Refused as refused:
                code = refused.code
            assert (code == -32601) == (method in NOT_OFFERED), method
