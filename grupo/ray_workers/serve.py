"""`grupo serve --ray`: vLLM servers on the machines of a cluster, started again when they end."""

import json
import signal
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from grupo.inference.serve import ServeOptions
from grupo.inference.served_process import ServerEndedError
from grupo.ray_workers.cluster import check_address, check_resources, connect
from grupo.ray_workers.server_host import ServerHost, options_to_json
from grupo.util.console import print_error, print_line
from grupo.util.errors import ConfigError

WAIT_SECONDS = 0.5  # after which a signal is handled
END_SECONDS = 20.0  # in which servers that answer have ended
MAX_RESTARTS = 20  # of one server; then all end


@dataclass(frozen=True)
class RayServeOptions:
    """Servers on a Ray cluster.

    Args:
        servers: Their options; the cluster chooses machines and ports.
        address: Address of the cluster: "local", "auto" or HOST:PORT.
        gpus: GPUs of each server; 0 for servers on CPUs.
    """

    servers: ServeOptions
    address: str
    gpus: int

    def __post_init__(self) -> None:
        check_address(self.address, "ray")
        if self.gpus not in (0, self.servers.tensor_parallel):
            raise ConfigError(
                f"gpus: {self.gpus}. Allowed: {self.servers.tensor_parallel}, which is"
                " tensor_parallel, or 0 for servers on CPUs."
            )
        for name in ("port", "bind"):
            if getattr(self.servers, name) != getattr(ServeOptions, name):
                raise ConfigError(
                    f"{name}: {getattr(self.servers, name)!r}. Leave it out with ray: the cluster"
                    " chooses the machines, and each a port."
                )


@dataclass
class Place:
    """The place of one server, held by one actor after another.

    Args:
        actor: The present actor.
        look: Reference to the result of the next look at the server.
        machine: Identifier of its machine; "" before the first answer of the server.
        url: Address of the server; "" before its first answer.
        restarts: Number of times that it was started again.
    """

    actor: Any
    look: Any
    machine: str = ""
    url: str = ""
    restarts: int = 0


class RayServers:
    """Servers that a cluster runs for this process.

    Args:
        options: Number, command and place of the servers.
    """

    def __init__(self, options: RayServeOptions) -> None:
        self.options = options
        self.ray = connect(options.address)
        self.announced: tuple[str, ...] = ()
        self.places: list[Place] = []
        count = options.servers.data_parallel
        for name, each in (("GPU", options.gpus), ("CPU", 1)):
            demand = f"data_parallel: {count} servers with {each} {name}s each need"
            check_resources(self.ray, name, count * each, demand)

    def run(self) -> NoReturn:
        """Run the servers until Ctrl-C or SIGTERM; print their addresses when all answer.

        Raises:
            ServerEndedError: A server cannot be started, or has ended too often.
        """
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            for _ in range(self.options.servers.data_parallel):
                actor = self._new_actor("", "")
                self.places.append(Place(actor, actor.keep_up.remote()))
            while True:
                looks = [place.look for place in self.places]
                done, _ = self.ray.wait(looks, num_returns=1, timeout=WAIT_SECONDS)
                for place in self.places:
                    if place.look in done:
                        self._handle(place)
                self._announce()
        finally:
            self._end()

    def _end(self) -> None:
        """End the actors, which end their servers; those that are starting one are killed."""
        ends = [place.actor.__ray_terminate__.remote() for place in self.places]
        if ends:
            self.ray.wait(ends, num_returns=len(ends), timeout=END_SECONDS)
        for place in self.places:
            self.ray.kill(place.actor)

    def _handle(self, place: Place) -> None:
        """Handle the result of a look at a server, and begin the next look."""
        try:
            state = json.loads(self.ray.get(place.look))
        except self.ray.exceptions.RayError as error:
            self._count_restart(place, f"its actor is lost ({type(error).__name__})")
            place.actor = self._new_actor(place.url, place.machine)
        else:
            if state["error"]:
                raise ServerEndedError(f"A server cannot run: {state['error']}")
            if state["failure"]:
                self._count_restart(place, state["failure"])
            place.machine = state["machine"]
            place.url = state["url"]
        place.look = place.actor.keep_up.remote()

    def _count_restart(self, place: Place, failure: str) -> None:
        place.restarts += 1
        name = place.url or "a server that has not answered yet"
        if place.restarts > MAX_RESTARTS:
            raise ServerEndedError(f"{name} has ended {place.restarts} times: {failure}")
        print_error(f"{name} was started again ({place.restarts} of {MAX_RESTARTS}): {failure}")

    def _announce(self) -> None:
        """Print the addresses of all servers, and once more if one has moved."""
        urls = tuple(place.url for place in self.places)
        if all(urls) and urls != self.announced:
            print_line(f"Vllm(urls={urls!r}, dtype={self.options.servers.dtype!r})")
            self.announced = urls

    def _new_actor(self, previous_url: str, machine: str) -> Any:
        """An actor for a server, on the machine of the previous one if that still exists."""
        strategies = import_module("ray.util.scheduling_strategies")
        strategy: Any = "SPREAD"
        if machine:
            strategy = strategies.NodeAffinitySchedulingStrategy(machine, soft=True)
        remote = self.ray.remote(ServerHost).options(
            num_cpus=1, num_gpus=self.options.gpus, max_restarts=0, scheduling_strategy=strategy
        )
        return remote.remote(options_to_json(self.options.servers), previous_url)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
