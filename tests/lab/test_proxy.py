"""The proxy is a bad link for those who have no root."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from lab.proxy import Proxy, Trouble


@pytest_asyncio.fixture
async def echo_port() -> AsyncIterator[int]:
    """A server that says what it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> bytes:
    writer.write(data)
    return await reader.readexactly(len(data))


async def test_it_passes_everything_on_when_nothing_is_wrong(echo_port: int) -> None:
    async with Proxy("127.0.0.1", echo_port) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        data = bytes(range(256)) * 1000

        assert await told(reader, writer, data) == data
        writer.write_eof()
        assert await reader.read() == b""
        assert proxy.connections == 1
        writer.close()


async def test_a_silent_link_takes_connections_and_passes_nothing_until_it_is_mended(echo_port: int) -> None:
    async with Proxy("127.0.0.1", echo_port, Trouble(silent=True)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await told(reader, writer, b"hello")

        await proxy.change(Trouble())

        assert await reader.readexactly(5) == b"hello"
        writer.close()


async def test_a_link_is_cut_after_so_many_bytes(echo_port: int) -> None:
    async with Proxy("127.0.0.1", echo_port, Trouble(cut_after_bytes=10)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await told(reader, writer, b"12345") == b"12345"

        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await told(reader, writer, b"6")
        writer.close()


@pytest.mark.parametrize("trouble", [Trouble(rate_bytes_per_s=20_000), Trouble(delay_s=0.1)])
async def test_a_slow_link_takes_its_time(echo_port: int, trouble: Trouble) -> None:
    async with Proxy("127.0.0.1", echo_port, trouble) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await told(reader, writer, b"x" * 2_000)

        assert await reader.readexactly(2_000) == b"x" * 2_000
        writer.close()


async def test_a_reset_ends_all_connections_and_new_ones_are_taken(echo_port: int) -> None:
    async with Proxy("127.0.0.1", echo_port) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        await told(reader, writer, b"hello")

        proxy.reset()

        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await told(reader, writer, b"hello")
        again, writer_again = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await told(again, writer_again, b"hello") == b"hello"
        writer.close()
        writer_again.close()
