"""Our host as a process of its own: prints its address and serves until it is killed."""

import sys

import trio

from actors.sessions.host import serve_host


async def main() -> None:
    async with trio.open_nursery() as nursery:
        address: str = await nursery.start(serve_host, sys.argv[1])
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main)
