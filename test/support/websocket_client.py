"""Listens to a WebSocket: websocket_client.py URL. Sends each line of its input as a message, and writes each message as a line."""

import asyncio
import sys

import websockets


async def main(url):
    async with websockets.connect(url) as connection:

        async def send():
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                await connection.send(line.strip())
            await connection.close()

        sending = asyncio.create_task(send())
        async for message in connection:
            print(message, flush=True)
        await sending
    print(f'closed {connection.close_code}', flush=True)


asyncio.run(main(sys.argv[1]))
