"""Load environments of verifiers, each once."""

import signal
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from grupo.envs.verifiers.rubric import record_reward_errors
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module
from grupo.util.loader_errors import loader_errors
from grupo.util.optional_deps import optional_dependency

SIGNALS = (signal.SIGINT, signal.SIGTERM)
EnvArgs = tuple[tuple[str, Any], ...]
MULTI_TURN = "SingleTurnEnv, MultiTurnEnv, ToolEnv and their subclasses"


@cache
def load_verifiers_env(env_id: str, args: EnvArgs) -> Any:
    """The environment that the module of `env_id` returns from its `load_environment(**args)`.

    Raises:
        ConfigError: verifiers or the environment is not installed, does not accept the arguments,
            or is of a kind that asks a model by itself.
    """
    vf = import_verifiers()
    env_utils = import_module("verifiers.utils.env_utils")
    load_module(env_utils.env_module_name(env_id))  # its errors name the searched module
    with loader_errors(f"env: {env_id}"), _restored_signal_handlers():
        env = vf.load_environment(env_id, **dict(args))
    if not isinstance(env, vf.MultiTurnEnv):
        kind = type(env).__name__
        raise ConfigError(f"env: {env_id!r} is a {kind}. Allowed: {MULTI_TURN}.")
    record_reward_errors(env.rubric)
    return env


def import_verifiers() -> Any:
    """The package `verifiers` with `load_environment`, which 0.3 moved and 0.4 removed."""
    with optional_dependency("verifiers", "verifiers"):
        vf: Any = import_module("verifiers")
    try:
        for name in ("load_environment", "MultiTurnEnv"):  # they are imported on demand
            getattr(vf, name)
    except AttributeError as error:
        raise ConfigError(
            f"env: verifiers {vf.__version__} has no load_environment. Allowed: 0.2, or"
            ' taskset:NAME for a taskset of 0.4. Install 0.2: pip install "grupo[verifiers]".'
        ) from error
    return vf


@contextmanager
def _restored_signal_handlers() -> Generator[None]:
    """Restore the handlers of signals, which an environment of verifiers replaces."""
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError("An environment of verifiers loads in the main thread only.")
    handlers: Mapping[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
