"""The connection of this process to a Ray cluster."""

import logging
import os
import re
import socket
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from secrets import token_hex
from threading import Lock
from typing import Any

from grupo.envs.daemon_threads import call_in_worker
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency

LOCAL = "local"  # a cluster of this machine, which ends with this process
AUTO = "auto"  # the cluster that runs on this machine, or that RAY_ADDRESS names
ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d+)")
CONNECT_SECONDS = 60.0  # in which Ray must have connected, or started a local cluster
PROBE_SECONDS = 5.0  # in which an address must accept a connection
LOCAL_OPTIONS = {
    "include_dashboard": False,
    "object_store_memory": 1 << 28,  # Ray's default is a third of the memory
}
# Address of the only machine of a local cluster, at which other machines do not reach its servers:
# Ray would replace 127.0.0.1. Other systems than Linux have no second one, and Ray uses the first.
LOOPBACK = {"_node_ip_address": "127.0.0.2"} if sys.platform == "linux" else {}
# A raylet of the local cluster that has ended is noticed after five failed checks, by default three
# seconds apart. A raylet that is only slow has ten seconds to answer each.
HEALTH_CHECKS = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000}
# nothing is sent to the developers of Ray, and actors without GPUs do not see any
VARIABLES = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}

_lock = Lock()  # `ray.init` is called once


def check_address(address: str, field: str) -> None:
    """Raise `ConfigError`, which names the field, if an address is none of a Ray cluster."""
    if address not in (LOCAL, AUTO) and not ADDRESS.fullmatch(address):
        raise ConfigError(f"{field}: {address!r}. Allowed: {LOCAL}, {AUTO} or HOST:PORT.")


def import_ray(address: str) -> Any:
    """The module `ray`; raises `ConfigError` if it is not installed."""
    if "ray" not in sys.modules:  # it reads its variables while it is imported
        for name, value in _variables(address).items():
            os.environ.setdefault(name, value)
    with optional_dependency("Ray", "ray"):
        return import_module("ray")


def connect(address: str) -> Any:
    """The module `ray`, connected to a cluster. A process that is connected stays where it is.

    Args:
        address: "local", "auto" or HOST:PORT.

    Raises:
        ConfigError: Ray is not installed, or the cluster cannot be reached.
    """
    ray = import_ray(address)
    with _lock:
        if not ray.is_initialized():
            _check_reachable(address)
            _initialize(ray, address)
    return ray


def check_resources(ray: Any, name: str, needed: float, demand: str) -> None:
    """Raise `ConfigError` if a cluster has less of a resource than is needed.

    Args:
        ray: The module, connected.
        name: "CPU" or "GPU".
        needed: Number that is needed.
        demand: Beginning of the message: the field and what it asks for.
    """
    total = ray.cluster_resources().get(name, 0.0)
    if needed > total:
        raise ConfigError(
            f"{demand}, {needed:g} {name}s together. Allowed: at most the {total:g} of the cluster."
        )


def has_machines(ray: Any) -> bool:
    """Whether a machine of the cluster is alive, so that actors can start."""
    return any(node["Alive"] for node in ray.nodes())


def _check_reachable(address: str) -> None:
    match = ADDRESS.fullmatch(address)
    if match is None:
        return
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), PROBE_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"address: no Ray cluster answers at {address} ({error}). Allowed: the address of one"
            f' that runs, such as that which "ray start --head" prints; {LOCAL!r} starts one here.'
        ) from error


def _initialize(ray: Any, address: str) -> None:
    """Connect in a thread that lives as long as this process: a local cluster ends with it."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    options: dict[str, Any] = {}
    if address == LOCAL:
        options = {**LOCAL_OPTIONS, **LOOPBACK, "_system_config": HEALTH_CHECKS}
    init = partial(
        ray.init,
        address,
        log_to_driver=False,
        configure_logging=False,
        **options,
    )
    try:
        call_in_worker(init, CONNECT_SECONDS)
    except Exception as error:  # of many types, those of its C++ part among them
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ConfigError(f"address: no connection to Ray at {address!r}: {reason}") from error


def _variables(address: str) -> Mapping[str, str]:
    """Environment variables of Ray; a local cluster accepts only programs that know its token."""
    if address != LOCAL or "RAY_AUTH_MODE" in os.environ:
        return VARIABLES
    return {**VARIABLES, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
