"""A web server that takes its time: run as `python backend.py ADDRESS PORT NAME`."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

# Half of each answer comes at once, the other half after this.
ANSWER_SECONDS: Final = 0.08
SECONDS: Final = {b"/health": 0, b"/long": 3600}
HALF: Final = b"x" * 500


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: bytes) -> None:
    """Answer one request after another, as long as the other side likes."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            seconds = SECONDS.get(head.split()[1], ANSWER_SECONDS)
            body = HALF + name
            length = len(body) + len(HALF)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + body)
            await writer.drain()
            await asyncio.sleep(seconds)
            writer.write(HALF)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def serve(address: str, port: int, name: bytes) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: converse(reader, writer, name), address, port
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()))
