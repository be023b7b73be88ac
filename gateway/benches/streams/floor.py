"""The server of floor.rs for Starlette: floor.py DIRECTORY serves the logs in a directory, and prints its URL."""

import asyncio
import pathlib
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

JOBS = pathlib.Path(sys.argv[1])
followed = {}
readers = set()


async def read(log, clients):
    following = 2
    while True:
        try:
            segment = (log / f"{following:020}.jsonl").read_text()
        except FileNotFoundError:
            await asyncio.sleep(0.2)
            continue
        for line in segment.splitlines():
            event = f"id: {following}\nevent: user.message\ndata: {line}\n\n"
            for client in clients:
                client.put_nowait(event)
            following += 1


async def events(client, clients):
    try:
        while True:
            yield await client.get()
    finally:
        clients.discard(client)


async def follow(request):
    job = request.path_params["job"]
    if job not in followed:
        followed[job] = set()
        readers.add(asyncio.create_task(read(JOBS / job, followed[job])))
    client = asyncio.Queue()
    followed[job].add(client)
    return StreamingResponse(events(client, followed[job]), media_type="text/event-stream")


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1024)
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
app = Starlette(routes=[Route("/api/jobs/{job}/events", follow)])
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
