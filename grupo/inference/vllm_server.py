"""One vLLM server of an engine: its settings, the weights that it holds, and its sleep."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from grupo.inference import vllm_protocol as protocol
from grupo.inference.engine_errors import EngineError, TransientServerError
from grupo.inference.http_client import HTTPClient, in_time
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_processes import ServerProcess, watch_health
from grupo.inference.weight_transfer import PublishedWeights
from grupo.util.errors import ConfigError

SAME_ON_ALL_SERVERS = ("model", "max_model_len")  # the dtype is that of the recipe


class VllmServer:
    """A server that holds certain weights before any request is sent to it.

    Args:
        spec: the settings of the engine.
        process: where the server is.
        place: where its workers must be, to share memory with this process; "": anywhere.
    """

    def __init__(self, spec: Vllm, process: ServerProcess, place: str = "") -> None:
        self.spec = spec
        self.process = process
        self.place = place
        self.failures = 0  # in a row, without a reply between them
        self.is_missing = False  # whether it did not answer when it was last needed
        self.is_asleep = False
        self.settings: Mapping[str, str] = {}

    @property
    def url(self) -> str:
        """Where the server is now."""
        return self.process.url

    async def ensure_ready(self, client: HTTPClient, weights: PublishedWeights | None) -> None:
        """Loads the weights if the server does not hold them; None: it may hold any.

        Raises:
            ConfigError: the server computes differently than it must.
            EngineError: the server cannot load the weights, or this run has loaded none.
            TransientServerError: the server failed.
        """
        if weights is None:
            await self._facts(client)
        elif self.is_asleep:
            await self._wake_up(client, weights)
        elif not await self.holds(client, weights):
            await self._load(client, weights)

    async def holds(self, client: HTTPClient, weights: PublishedWeights) -> bool:
        """Whether all workers of the server hold these weights."""
        workers = await self._facts(client)
        if {facts["version"] for facts in workers} != {(weights.base or weights).version}:
            return False
        if not weights.adapter:
            return True
        is_loaded = {facts["adapter"] for facts in workers} == {weights.adapter}
        return is_loaded and await self._adapter_names(client) == [weights.adapter]

    async def adapter_problem(self, client: HTTPClient, config: str, modules: Sequence[str]) -> str:
        """Why the server cannot apply an adapter, or ""."""
        results = await self._call_workers(
            client, "grupo_adapter_problem", config, modules, timeout=self.spec.request_timeout
        )
        return next((result["problem"] for result in results if result["problem"]), "")

    async def _facts(self, client: HTTPClient) -> Sequence[Mapping[str, Any]]:
        """The workers' facts; raises ConfigError if the server computes in another way."""
        workers = await self._call_workers(client, "grupo_facts", timeout=self.spec.request_timeout)
        for facts in workers:
            protocol.check_facts(facts, self.spec.dtype, self.url)
            if self.place:
                protocol.check_place(facts, self.place, self.url)
        self.settings = {name: workers[0][name] for name in SAME_ON_ALL_SERVERS}
        return workers

    async def _adapter_names(self, client: HTTPClient) -> list[str]:
        names = protocol.loaded_adapters(client, {})
        return await in_time(names, self.spec.request_timeout, self.url)

    async def sleep(self, client: HTTPClient) -> None:
        """Lets the server release its memory; the weights are discarded."""
        with suppress(TransientServerError):  # a server that died holds no memory
            await self._call_workers(client, "grupo_discard", timeout=self.spec.request_timeout)
            # the weights are loaded anew in any case: level 2 keeps no copy of them
            await self._post(client, "/sleep?level=2")
        self.is_asleep = True

    async def _wake_up(self, client: HTTPClient, weights: PublishedWeights) -> None:
        """Loads the weights first: they and the KV cache would not fit beside a second copy."""
        await self._post(client, "/wake_up?tags=weights")
        await self._load(client, weights)
        await self._post(client, "/wake_up?tags=kv_cache")
        self.is_asleep = False

    async def _load(self, client: HTTPClient, weights: PublishedWeights) -> None:
        if not weights.version:
            raise EngineError(
                f"{client.name} holds weights of another run, and this one has loaded none."
            )
        if weights.base:
            await self._load(client, weights.base)  # nothing is done if the workers have it
        args = (*weights.args, weights.version)
        results = await self._call_workers(
            client, weights.method, *args, timeout=self.spec.startup_timeout
        )
        for result in results:
            await self._check_loaded(client, result, weights)
        if weights.adapter:
            call = protocol.load_adapter(client, {"version": weights.adapter})
            await in_time(call, self.spec.startup_timeout, self.url)

    async def _check_loaded(
        self, client: HTTPClient, result: Mapping[str, Any], weights: PublishedWeights
    ) -> None:
        if "interrupted" in result:
            raise TransientServerError(
                f"{client.name} received the weights in part ({result['interrupted']})"
            )
        if "error" in result:
            await self.process.handle_failure()  # its weights are a mixture of old and new ones
            raise EngineError(f"{client.name} cannot load the weights: {result['error']}")
        if result["version"] != weights.version:
            versions = f"blake2b {result['version']}, {weights.version} was written"
            raise EngineError(f"{client.name} loaded other weights than were written: {versions}.")

    async def _post(self, client: HTTPClient, path: str) -> None:
        body = {"path": path}
        await in_time(protocol.post_empty(client, body), self.spec.startup_timeout, self.url)

    async def _call_workers(
        self, client: HTTPClient, method: str, *args: str | int | Sequence[str], timeout: float
    ) -> Sequence[Mapping[str, Any]]:
        call = {"method": method, "args": args}
        workers = asyncio.ensure_future(protocol.call_workers(client, call))
        watch = asyncio.ensure_future(watch_health(self.url))
        try:
            await in_time(
                asyncio.wait((workers, watch), return_when="FIRST_COMPLETED"), timeout, self.url
            )
            if not workers.done():
                watch.result()  # raises the failure
            return await workers
        finally:
            workers.cancel()
            watch.cancel()


def check_same_settings(servers: Sequence[VllmServer]) -> None:
    """Raises ConfigError if two servers that have answered have other models or limits."""
    answered = [server for server in servers if server.settings]
    for server in answered[1:]:
        for name, value in answered[0].settings.items():
            if server.settings[name] != value:
                raise ConfigError(
                    f"urls: {server.url} has {name} {server.settings[name]}, and"
                    f" {answered[0].url} has {value}. Allowed: the same on all servers."
                )
