"""The jobs of vLLM servers: load weights, sleep, answer requests."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from grupo.inference import vllm_protocol as protocol
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.http_client import HTTPClient, no_response
from grupo.inference.request_routing import PromptHomes
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_server import VllmServer
from grupo.inference.weight_transfer import PublishedWeights


class LoadJob:
    """Weights are loaded by all servers that answer, of which there must be one.

    Args:
        servers: of the engine.
        needs_all: whether the job waits for servers that do not answer.
    """

    def __init__(self, servers: Sequence[VllmServer], *, needs_all: bool) -> None:
        self.servers = servers
        self.needs_all = needs_all
        self.loaded: set[VllmServer] = set()
        self.left_out: set[VllmServer] = set()
        self.complete = asyncio.Event()

    async def work(self, server: VllmServer, client: HTTPClient) -> None:
        self.loaded.add(server)
        self.left_out.discard(server)
        self._check_complete()

    def leave_out(self, server: VllmServer) -> None:
        self.left_out.add(server)
        self._check_complete()

    def status(self) -> str:
        return "weights wait to be loaded"

    def _check_complete(self) -> None:
        enough = self.loaded if self.needs_all else self.loaded | self.left_out
        if self.loaded and len(enough) == len(self.servers):
            self.complete.set()


class AdapterCheck(LoadJob):
    """All servers answer whether they can apply an adapter.

    Args:
        servers: of the engine.
        config: JSON of the adapter's settings.
        modules: that the adapter changes.
    """

    def __init__(self, servers: Sequence[VllmServer], config: str, modules: Sequence[str]) -> None:
        super().__init__(servers, needs_all=True)
        self.config = config
        self.modules = modules
        self.problem = ""  # of the first server that cannot, with its address

    async def work(self, server: VllmServer, client: HTTPClient) -> None:
        problem = await server.adapter_problem(client, self.config, self.modules)
        if problem and not self.problem:
            self.problem = f"{client.name} cannot apply them alone, because {problem.rstrip('.')}"
        await super().work(server, client)

    def status(self) -> str:
        return "adapters wait to be checked"


@dataclass
class _Work:
    """The requests of one server.

    Args:
        waiting: requests that are not sent yet, in order.
        in_flight: requests without a reply.
        last_sign: of life: the time of the last reply, or of a request after silence.
        changed: more requests are waiting, or all of the job are answered.
    """

    waiting: dict[int, None] = field(default_factory=dict)
    in_flight: set[int] = field(default_factory=set)
    last_sign: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class GenerateJob:
    """Requests are answered, each by one of the servers.

    Requests of a server that fails go to the others. A server that is back gets a part of those
    that no server works on yet.

    Args:
        requests: to answer, by index.
        servers: of the engine.
        spec: the settings of the engine.
        stop_conditions: of all answers.
        weights: that answer.
        homes: the servers of prompts.
        put: gets the index of a request and its reply.
    """

    def __init__(
        self,
        requests: Mapping[int, Request],
        servers: Sequence[VllmServer],
        spec: Vllm,
        stop_conditions: StopConditions,
        weights: PublishedWeights,
        homes: PromptHomes,
        put: Callable[[tuple[int, Reply]], None],
    ) -> None:
        self.requests = requests
        self.servers = servers
        self.spec = spec
        self.stop_conditions = stop_conditions
        self.weights = weights
        self.homes = homes
        self.put = put
        self.costs = {
            i: len(r.tokens) + stop_conditions.remaining_tokens(r) for i, r in requests.items()
        }
        self.unassigned: dict[int, None] = dict.fromkeys(requests)
        self.num_unanswered = len(requests)
        self.undecided = set(servers)  # of which it is not known yet whether they answer
        self.works: dict[VllmServer, _Work] = {}
        self.complete = asyncio.Event()

    async def work(self, server: VllmServer, client: HTTPClient) -> None:
        self.works[server] = _Work()
        self._take_back_waiting()
        self._decided(server)
        num_connections = min(self.spec.max_concurrency, len(self.requests))
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(server))
                senders = [
                    group.create_task(self._send(server, client)) for _ in range(num_connections)
                ]
                await asyncio.gather(*senders)
                watch.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        await self._check_weights(server, client)

    def leave_out(self, server: VllmServer) -> None:
        work = self.works.pop(server, _Work())
        self.unassigned |= dict.fromkeys(sorted({*work.waiting, *work.in_flight}))
        self._decided(server)

    def status(self) -> str:
        return f"{self.num_unanswered} of {len(self.requests)} requests are unanswered"

    def _decided(self, server: VllmServer) -> None:
        """Assign requests once it is known of each server whether it answers."""
        self.undecided.discard(server)
        if self.undecided or not self.works or not self.unassigned:
            return
        numbers = {i: s for i, s in enumerate(self.servers) if s in self.works}
        loads = {i: self._tokens_under_way(self.works[s]) for i, s in numbers.items()}
        prompts = {i: self.requests[i].tokens for i in self.unassigned}
        for i, number in self.homes.assign(prompts, self.costs, loads).items():
            self.works[numbers[number]].waiting[i] = None
        self.unassigned.clear()
        self._wake_senders()

    def _wake_senders(self) -> None:
        for work in self.works.values():
            work.changed.set()

    def _take_back_waiting(self) -> None:
        """Assign anew what no server works on: one more server has come."""
        for work in self.works.values():
            self.unassigned |= work.waiting
            work.waiting.clear()

    def _tokens_under_way(self, work: _Work) -> int:
        return sum(self.costs[i] for i in (*work.waiting, *work.in_flight))

    async def _next(self, work: _Work) -> int:
        """The next request of a server; -1 if all are answered."""
        while not work.waiting:
            if self.complete.is_set():
                return -1
            work.changed.clear()
            await work.changed.wait()
        i = next(iter(work.waiting))
        del work.waiting[i]
        if not work.in_flight:
            work.last_sign = time.monotonic()
        work.in_flight.add(i)
        return i

    async def _send(self, server: VllmServer, client: HTTPClient) -> None:
        """Send one request after the other, until all requests of the job are answered."""
        work = self.works[server]
        while (i := await self._next(work)) >= 0:
            body = protocol.request_body(self.requests[i], self.stop_conditions, self.weights)
            reply = await protocol.request_completion(client, body)
            work.last_sign = time.monotonic()
            work.in_flight.discard(i)
            server.failures = 0
            self.num_unanswered -= 1
            self.put((i, reply))
            if not self.num_unanswered:
                self.complete.set()
                self._wake_senders()

    async def _watch(self, server: VllmServer) -> None:
        """Raise TransientServerError if the server is silent for too long."""
        work = self.works[server]
        timeout = self.spec.request_timeout
        while True:
            silence = time.monotonic() - work.last_sign if work.in_flight else 0.0
            if silence >= timeout:
                raise no_response(server.url, timeout)
            await asyncio.sleep(timeout - silence)

    async def _check_weights(self, server: VllmServer, client: HTTPClient) -> None:
        # a server that died after the last reply is noticed by the next call
        with suppress(TransientServerError):
            if not await server.holds(client, self.weights):
                raise EngineError(f"{client.name} received other weights during the call.")
