"""The inference engine of vLLM servers: loads weights, sends requests, retries."""

import asyncio
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from grupo.core.dtypes import DTYPES
from grupo.core.errors import ConfigError
from grupo.inference import background, vllm_worker
from grupo.inference import vllm_protocol as protocol
from grupo.inference.background import Put
from grupo.inference.base import Reply, Request, StopConditions, check_generate_only
from grupo.inference.engine_errors import EngineError
from grupo.inference.http_client import HTTPClient, open_session
from grupo.inference.request_routing import PromptHomes
from grupo.inference.server_process import ManagedServer
from grupo.inference.server_sharing import UNSHARED, ServerSharing
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import server_command, server_environment
from grupo.inference.vllm_jobs import GenerateJob, LoadJob
from grupo.inference.vllm_pool import ServerPool
from grupo.inference.vllm_processes import ExternalServer, ServerProcess, StartedServer
from grupo.inference.vllm_server import VllmServer
from grupo.inference.weight_sender import ProcessGroupTransfer
from grupo.inference.weight_transfer import FileTransfer, PublishedWeights, WeightTransfer

THREAD = "vllm"


class VllmEngine:
    """Generates with the weights that were loaded last.

    Args:
        spec: the servers' settings.
        model: path or name of the model, for a server that is started.
        stop_conditions: of all answers.
        device: of the trained policy.
    """

    def __init__(
        self,
        spec: Vllm,
        model: str,
        stop_conditions: StopConditions,
        device: torch.device = torch.device("cpu"),
    ) -> None:
        self.spec = spec
        context_length = stop_conditions.context_length
        if spec.max_model_len:
            context_length = min(context_length, spec.max_model_len)
        self.stop_conditions = replace(stop_conditions, context_length=context_length)
        self.folder = Path(tempfile.mkdtemp(prefix="grupo-", dir=spec.folder or None)).absolute()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        processes: list[ServerProcess] = (
            [StartedServer(self._managed_server(model))]
            if spec.python
            else [ExternalServer(url, spec.request_timeout) for url in spec.server_urls]
        )
        self.pool = ServerPool(spec, [VllmServer(spec, process) for process in processes])
        self.homes = PromptHomes()
        self.transfer = self._make_transfer(device)
        self.weights = PublishedWeights()
        self.sharing = UNSHARED
        self.lock = threading.Lock()

    @property
    def weights_version(self) -> str:
        """Checksum of the loaded weights; "" before the first load."""
        return self.weights.version

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers every request; an empty reply if the context is full.

        Calls are serialised: the next one waits until this one has ended or was closed. When a
        server fails, replies that have arrived are kept and only the missing ones are requested
        again.
        """
        check_generate_only(requests, "vllm")
        for sampling in dict.fromkeys(request.sampling for request in requests):
            protocol.check_sampling(sampling)
        with self.lock:
            missing = {
                i: r for i, r in enumerate(requests) if self.stop_conditions.remaining_tokens(r) > 0
            }
            yield from ((i, Reply()) for i in range(len(requests)) if i not in missing)
            if missing:
                yield from self._generate(missing)

    def share(self, sharing: ServerSharing) -> None:
        """Use the servers together with other processes, of which one hands over the weights."""
        self.sharing = sharing

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Generates with these weights from now on; their names are those of transformers.

        With several processes, returns when the servers have the weights of the sender.
        """
        with self.lock:
            if self.sharing.is_sender:
                self._load_as_sender(weights)
            else:
                self.weights = PublishedWeights.from_data(self.sharing.receive())
                self._load_on_servers()

    def release_memory(self) -> None:
        """Lets the servers release their memory until weights are loaded, if they shall sleep."""
        if not self.spec.sleep or not self.sharing.is_sender:
            return
        with self.lock:
            background.run(self._sleep, THREAD)

    def close(self) -> None:
        """Ends the server if this engine started it."""
        self.transfer.close()
        for server in self.pool.servers:
            server.process.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _load_as_sender(self, weights: Mapping[str, Tensor]) -> None:
        try:
            self.weights = self.transfer.publish(weights)
            self._load_on_servers()
        except (ConfigError, EngineError) as error:
            self.sharing.send_error(error)
            raise
        self.sharing.send(self.weights.to_data())

    def _load_on_servers(self) -> None:
        self.homes.clear()
        pool = self.pool

        async def load() -> None:
            job = LoadJob(pool.servers, needs_all=not pool.has_loaded)
            await pool.run(job, self.weights)
            pool.has_loaded = True

        background.run(load, THREAD)

    def _generate(self, requests: Mapping[int, Request]) -> Iterator[tuple[int, Reply]]:
        async def generate(put: Put[tuple[int, Reply]]) -> None:
            job = GenerateJob(
                requests,
                self.pool.servers,
                self.spec,
                self.stop_conditions,
                self.weights,
                self.homes,
                put,
            )
            await self.pool.run(job, self.weights)

        return background.stream(generate, THREAD)

    async def _sleep(self) -> None:
        async def sleep(server: VllmServer) -> None:
            async with open_session(1) as session:
                await server.sleep(HTTPClient(server.url, session))

        await asyncio.gather(*(sleep(s) for s in self.pool.servers if not s.is_asleep))

    def _make_transfer(self, device: torch.device) -> WeightTransfer:
        dtype = DTYPES[self.spec.dtype]
        if self.spec.weight_transfer == "file":
            return FileTransfer(self.folder / "weights.safetensors", dtype)
        if self.spec.weight_transfer == "nccl" and device.type != "cuda":
            raise ConfigError(
                f"weight_transfer: 'nccl'. Allowed with a policy on {device}: file or gloo."
            )
        url = "http://127.0.0.1" if self.spec.python else self.spec.server_urls[0]
        nccl_device = device if self.spec.weight_transfer == "nccl" else None
        return ProcessGroupTransfer(url, dtype, nccl_device)

    def _managed_server(self, model: str) -> ManagedServer:
        shutil.copy(vllm_worker.__file__, self.folder)
        return ManagedServer(
            server_command(self.spec, model, self.stop_conditions.context_length),
            server_environment(self.spec) | {"PYTHONPATH": str(self.folder)},
            self.folder,
            port=self.spec.port,
            startup_timeout=self.spec.startup_timeout,
        )
