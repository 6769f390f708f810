"""Servers of OpenEnv in threads of this process: an echo that can fail, and a grid of moves."""

import time
from contextlib import contextmanager
from threading import Lock

import pytest

pytest.importorskip("openenv")

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from tests.helpers.http_serving import serving

HANG_SECONDS = 2.0


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


APP = create_fastapi_app(Echo, EchoAction, EchoObservation, max_concurrent_envs=8)


@contextmanager
def served(environment, action, observation, sessions=64, requests=None):
    """The URL of a server for an environment, and the server; as `serving`."""
    app = create_fastapi_app(environment, action, observation, max_concurrent_envs=sessions)
    with serving(app, requests=requests) as (url, server):
        yield url, server
