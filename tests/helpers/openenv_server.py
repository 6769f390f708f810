"""Servers of OpenEnv in threads of this process: an echo that can fail, and a grid of moves."""

import time
from contextlib import contextmanager
from threading import Lock, Thread

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

HANG_SECONDS = 2.0
START_SECONDS = 20.0


class EchoAction(Action):
    message: str


class EchoObservation(Observation):
    echoed: str


class Echo(Environment):
    """The reward is the message's length; "end" ends, "raise" raises, "hang" and "stuck" hang."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    open_sessions = opened = 0
    lock = Lock()

    def __init__(self):
        super().__init__()
        with Echo.lock:
            Echo.open_sessions += 1
            Echo.opened += 1

    def reset(self, seed=None, episode_id=None, greeting="ready", stuck=False, **kwargs):
        if stuck:
            time.sleep(HANG_SECONDS)
        self.seed = seed
        return EchoObservation(echoed=f"{greeting} {seed}")

    def step(self, action, timeout_s=None, **kwargs):
        if action.message == "hang":
            time.sleep(HANG_SECONDS)
        if action.message == "raise":
            raise RuntimeError("the echo broke")
        done = action.message == "end"
        return EchoObservation(
            echoed=f"{action.message} {self.seed}", reward=len(action.message), done=done
        )

    @property
    def state(self):
        return State()

    def close(self):
        with Echo.lock:
            Echo.open_sessions -= 1


class MoveAction(Action):
    row: int
    column: int


class MoveObservation(Observation):
    board: str
    free: tuple[int, ...] = ()


class Moves(Environment):
    """Ends at the first move into row 0, with a reward of 1."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **kwargs):
        return MoveObservation(board="...", free=(0, 1, 2))

    def step(self, action, timeout_s=None, **kwargs):
        done = action.row == 0
        return MoveObservation(board=f"at {action.column}", reward=float(done), done=done)

    @property
    def state(self):
        return State()


@contextmanager
def served(environment, action, observation, sessions=64, headers=None):
    """The URL of a server for an environment, and the server; `headers` receives those sent."""
    app = create_fastapi_app(environment, action, observation, max_concurrent_envs=sessions)
    config = uvicorn.Config(
        _recording(app, headers), "127.0.0.1", 0, log_level="error", lifespan="off"
    )
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


def _recording(app, headers):
    async def recorded(scope, receive, send):
        if headers is not None and scope["type"] in ("http", "websocket"):
            headers.append((scope["path"], dict(scope["headers"]).get(b"authorization")))
        await app(scope, receive, send)

    return recorded
