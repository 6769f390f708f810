"""The environment of an actor: it replies and scores for the process that trains."""

import json
import os
import sys
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.core.interfaces import ClosableSessions, Env, EnvSpec, open_env
from grupo.core.serialization import from_data
from grupo.core.usage import count_external_usage
from grupo.envs.on_failure import RewardError
from grupo.ray_workers.messages import from_bytes, to_bytes
from grupo.util.error_location import error_location
from grupo.util.errors import ConfigError

MAX_OPENINGS = 4  # environments whose sessions are kept: those of a step and of an evaluation
# errors that end a run with their message; any other one is a bug of the environment
EXPECTED_ERRORS: tuple[type[Exception], ...] = (ConfigError, RewardError)


class EnvCallError(RuntimeError):
    """An environment in an actor raised an error that it does not handle itself."""


class EnvWorker:
    """An environment that is built of its JSON data; the class of Ray's actors.

    Args:
        env_data: The environment as JSON, written by `grupo.core.serialization.to_data`.
        folder: Working folder of the process that trains, in which modules are found.
    """

    def __init__(self, env_data: str, folder: str) -> None:
        self.env_data = env_data
        self.folder = folder
        self.spec: EnvSpec | None = None
        self.openings: OrderedDict[int, Env] = OrderedDict()

    async def start(self) -> str:
        """Build the environment; returns the reason if that is impossible, otherwise ""."""
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
            sys.path.append(self.folder)
        try:
            self.spec = from_data(json.loads(self.env_data))
        except ConfigError as error:
            return str(error)
        return ""

    async def call(self, opening: int, method: str, arguments: bytes) -> bytes:
        """The result of a method of the environment, its usage, or its error.

        Args:
            opening: Number of the opened environment; calls with the same one share sessions.
            method: "reply" or "score".
            arguments: The arguments, by `to_bytes`.
        """
        with count_external_usage() as usage:
            try:
                value = await getattr(self._opened(opening), method)(*from_bytes(arguments))
                outcome = {"value": _as_tuple(value)}
                return to_bytes({**outcome, "usage": usage}, f"result of {method}")
            except Exception as error:
                return to_bytes({"error": _describe(error), "usage": usage}, "error")

    def _opened(self, opening: int) -> Env:
        """The environment of this number; sessions of one that was dropped are replayed."""
        if opening not in self.openings:
            assert self.spec, "start was called"
            self.openings[opening] = open_env(self.spec)
        self.openings.move_to_end(opening)
        while len(self.openings) > MAX_OPENINGS:
            _, dropped = self.openings.popitem(last=False)
            if isinstance(dropped, ClosableSessions):
                dropped.close()  # those of rollouts that a later step continues
        return self.openings[opening]


def result_of(reply: Mapping[str, Any]) -> Any:
    """The value of a call of `EnvWorker`; raises the error that the environment raised."""
    if "error" not in reply:
        return reply["value"]
    kind, message = reply["error"]
    for cls in EXPECTED_ERRORS:
        if cls.__name__ == kind:
            raise cls(message)
    raise EnvCallError(f"{kind}: {message}")


def _as_tuple(value: Any) -> Any:
    """A sequence of results as a tuple; an observation as it is."""
    return tuple(value) if isinstance(value, list) else value


def _describe(error: Exception) -> tuple[str, str]:
    location = error_location(error)
    is_expected = isinstance(error, EXPECTED_ERRORS)
    where = f" ({location})" if location and not is_expected else ""
    return type(error).__name__, f"{error}{where}"
