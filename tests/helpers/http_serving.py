"""HTTP servers in threads of this process, on loopback ports."""

import time
from contextlib import contextmanager
from threading import Thread

import uvicorn

START_SECONDS = 20.0


@contextmanager
def serving(app, port=0, requests=None):
    """The URL of a server for an ASGI application, and the server.

    Args:
        app: The application.
        port: The port; 0 takes a free one.
        requests: Receives path, method and headers of each request.
    """
    config = uvicorn.Config(_recording(app, requests), "127.0.0.1", port, log_level="critical")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        stop(server)
        thread.join(START_SECONDS)


def stop(server):
    """End a server and all its connections."""
    server.should_exit = server.force_exit = True


def _recording(app, requests):
    async def recorded(scope, receive, send):
        if requests is not None and scope["type"] in ("http", "websocket"):
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            requests.append((scope["path"], scope.get("method", ""), headers))
        await app(scope, receive, send)

    return recorded
