"""A vLLM server on a machine of the cluster, kept running by an actor."""

import json
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.serve import ServeOptions, check_interpreter
from grupo.inference.server_process import ManagedServer, free_port
from grupo.inference.vllm_command import copy_worker
from grupo.models.model_folder import model_folder
from grupo.util.errors import ConfigError

POLL_SECONDS = 0.5  # between two looks at a server
PORT_SECONDS = 30.0  # in which a server that was killed has left its port
START_SECONDS = 1800.0  # until its first answer: weights may come over a network


class ServerHost:
    """One server of `grupo serve`; the class of Ray's actors.

    Args:
        options: The options of the server as JSON, written by `options_to_json`.
        previous_url: Address of the server that this one replaces; "" if it replaces none. The new
            server keeps the address if it is on the same machine and the port becomes free.
    """

    def __init__(self, options: str, previous_url: str) -> None:
        ray = import_module("ray")
        self.options = options_from_json(options)
        self.previous_url = previous_url
        self.machine: str = ray.get_runtime_context().get_node_id()
        self.address = address_of_machine(ray, self.machine)
        self.server: ManagedServer | None = None

    def keep_up(self) -> str:
        """Start the server, or look at it after a pause and start it again if it has ended.

        Returns:
            JSON with its `url`, the `machine`, the `failure` after which it was started again, or
            "", and the `error` for which it cannot run, or "".
        """
        state = {"url": "", "machine": self.machine, "failure": "", "error": ""}
        try:
            if self.server is None:
                self.server = self._make_server()
            else:
                time.sleep(POLL_SECONDS)
            state["failure"] = _look_after(self.server)
            state["url"] = self.server.url
        except (ConfigError, EngineError, TransientServerError) as error:
            state["error"] = str(error)
        return json.dumps(state)

    def _make_server(self) -> ManagedServer:
        """The server; it ends with this process, and with it its folder."""
        check_interpreter(self.options.python)
        port = self._port()
        folder = Path(tempfile.mkdtemp(prefix="grupo-serve-"))
        worker = folder / "worker"  # it may contain no other file
        worker.mkdir()
        copy_worker(worker)
        model = model_folder(self.options.model)  # in the cache of this machine
        options = replace(self.options, model=model, bind=self.address, port=port, data_parallel=1)
        ((environment, command),) = options.commands(str(worker))
        server = ManagedServer(
            command,
            environment,
            folder,
            port=port,
            startup_timeout=START_SECONDS,
            host=self.address,
        )
        weakref.finalize(server, shutil.rmtree, folder, ignore_errors=True)
        return server

    def _port(self) -> int:
        """The port of the previous server as soon as it is free, or another one."""
        parts = urlsplit(self.previous_url)
        deadline = time.monotonic() + PORT_SECONDS
        while parts.port and parts.hostname == self.address and time.monotonic() < deadline:
            with suppress(ConfigError):
                return free_port(parts.port, self.address)
            time.sleep(POLL_SECONDS)
        return free_port(0, self.address)


def _look_after(server: ManagedServer) -> str:
    """Start a server that does not run; returns the reason if it has run before, or ""."""
    try:
        server.wait_ready()
    except TransientServerError as error:
        failure = f"{error}.{server.handle_failure()}"
        server.wait_ready()
        return failure
    return ""


def address_of_machine(ray: Any, machine: str) -> str:
    """The address of a machine of the cluster, given its identifier."""
    addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    return addresses[machine]


def options_to_json(options: ServeOptions) -> str:
    """The options as JSON."""
    return json.dumps(asdict(options))


def options_from_json(text: str) -> ServeOptions:
    """The options that `options_to_json` wrote."""
    data: dict[str, Any] = json.loads(text)
    data["more"] = tuple(data["more"])
    return ServeOptions(**data)
