"""A process with Dynamo in it: `python -m tierfuzz.routers.dynamo_house router|indexer` in a private network.

It reads commands from its input, a JSON line each, and ends with it. Both kinds know the same commands: add,
remove, dump, device and best. A worker of ours is a Dynamo worker by its number.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

import msgspec

SIOCSIFFLAGS = 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40


def loopback_up() -> None:
    """In a fresh network namespace even the loopback is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", IFF_UP | IFF_RUNNING, b"")
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


async def serve(house: Any) -> None:
    """Commands one after the other, until the input ends."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        given: dict[str, Any] = msgspec.json.decode(line)
        command: Callable[..., Any] = getattr(house, given.pop("command"))
        try:
            answer = {"result": await command(**given)}
        except Exception as error:  # whatever Dynamo raises is told to who asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(ANSWERS, msgspec.json.encode(answer) + b"\n")
    await house.end()


async def main(kind: str) -> None:
    """The house of this kind; its modules are loaded late, when the network is there."""
    if kind == "router":
        from tierfuzz.routers.dynamo_router_house import RouterHouse

        await serve(RouterHouse())
    else:
        from tierfuzz.routers.dynamo_indexer_house import IndexerHouse

        await serve(await IndexerHouse.started())


ANSWERS = 1  # replaced below, so that nothing else can write between the answers

if __name__ == "__main__":
    ANSWERS = os.dup(1)
    os.dup2(2, 1)
    loopback_up()
    asyncio.run(main(sys.argv[1]))
    os._exit(0)  # Dynamo's threads would be waited for
