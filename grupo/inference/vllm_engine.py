"""The inference engine of vLLM servers: loads weights, sends requests, retries."""

import asyncio
import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.core.dtypes import DTYPES
from grupo.inference import background
from grupo.inference import vllm_protocol as protocol
from grupo.inference.background import Put
from grupo.inference.base import (
    Reply,
    Request,
    StopConditions,
    check_ordinary_decoding,
    check_scores_nothing,
)
from grupo.inference.engine_errors import EngineError
from grupo.inference.http_client import HTTPClient, open_session
from grupo.inference.request_routing import PromptHomes
from grupo.inference.server_process import ManagedServer
from grupo.inference.server_sharing import UNSHARED, ServerSharing
from grupo.inference.vllm import Vllm
from grupo.inference.vllm_command import copy_worker, server_command, server_environment
from grupo.inference.vllm_jobs import AdapterCheck, GenerateJob, LoadJob
from grupo.inference.vllm_pool import ServerPool
from grupo.inference.vllm_processes import ExternalServer, ServerProcess, StartedServer
from grupo.inference.vllm_server import VllmServer
from grupo.inference.vllm_worker.shared_memory import place_of
from grupo.inference.weight_sender import ProcessGroupTransfer
from grupo.inference.weight_transfer import (
    FileTransfer,
    PublishedWeights,
    SharedMemoryTransfer,
    WeightTransfer,
    publish_adapter,
)
from grupo.util.errors import ConfigError

THREAD = "vllm"
NO_LORA = "does not support LoRA"  # in vLLM's error for a model


class VllmEngine:
    """Generates with the weights that were loaded last.

    Args:
        spec: the servers' settings.
        model: path or name of the model, for a server that is started.
        stop_conditions: of all answers.
        device: of the trained policy.
        lora_rank: of the adapters that a started server gets; 0: none.
    """

    def __init__(
        self,
        spec: Vllm,
        model: str,
        stop_conditions: StopConditions,
        device: torch.device = torch.device("cpu"),
        *,
        lora_rank: int = 0,
    ) -> None:
        self.spec = spec
        context_length = stop_conditions.context_length
        if spec.max_model_len:
            context_length = min(context_length, spec.max_model_len)
        self.stop_conditions = replace(stop_conditions, context_length=context_length)
        self.folder = Path(tempfile.mkdtemp(prefix="grupo-", dir=spec.folder or None)).absolute()
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.model = model
        processes: list[ServerProcess] = (
            [StartedServer(self._managed_server(lora_rank))]
            if spec.python
            else [ExternalServer(url, spec.request_timeout) for url in spec.server_urls]
        )
        place = place_of(device) if spec.weight_transfer == "ipc" else ""
        self.pool = ServerPool(spec, [VllmServer(spec, process, place) for process in processes])
        self.homes = PromptHomes()
        self.transfer = self._make_transfer("weights", device)
        self.adapter_transfer = self._make_transfer("adapter", device)
        self.base = PublishedWeights()  # below the adapters, if these are loaded
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
        check_scores_nothing(requests, "vllm")
        check_ordinary_decoding(requests, "a vLLM server")
        protocol.check_num_likeliest(requests)
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
                self._load_as_sender(lambda: self.transfer.publish(weights))
            else:
                self.weights = PublishedWeights.from_data(self.sharing.receive())
                self._load_on_servers()

    def adapter_problem(self, settings: Mapping[str, Any], modules: Sequence[str]) -> str:
        """Why the servers cannot apply an adapter, or "" if all of them can.

        Args:
            settings: of the adapter, by their names in peft's `adapter_config.json`.
            modules: names of the adapted modules in transformers.
        """
        config = json.dumps(settings)

        async def check() -> str:
            job = AdapterCheck(self.pool.servers, config, modules)
            await self.pool.run(job, None)
            return job.problem

        with self.lock:
            try:
                return background.run(check, THREAD)
            except (ConfigError, EngineError) as error:
                if self._starts_without_lora(error):
                    return f"vLLM {NO_LORA} for this model"
                self.sharing.send_error(error)
                raise

    def publish_base(self, weights: Mapping[str, Tensor]) -> None:
        """Keeps the weights that the adapters of `load_adapter` belong to."""
        with self.lock:
            self.base = self.transfer.publish(weights)

    def load_adapter(self, weights: Mapping[str, Tensor], settings: Mapping[str, Any]) -> None:
        """Generates with this adapter from now on, on the weights of `publish_base`.

        Args:
            weights: the matrices by their names in peft's files.
            settings: of the adapter, by their names in `adapter_config.json`.
        """
        with self.lock:
            self._load_as_sender(
                lambda: publish_adapter(self.adapter_transfer, weights, settings, self.base)
            )

    def release_memory(self) -> None:
        """Lets the servers release their memory until weights are loaded, if they shall sleep."""
        if not self.spec.sleep or not self.sharing.is_sender:
            return
        with self.lock:
            background.run(self._sleep, THREAD)

    def close(self) -> None:
        """Ends the server if this engine started it."""
        self.transfer.close()
        self.adapter_transfer.close()
        for server in self.pool.servers:
            server.process.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _load_as_sender(self, publish: Callable[[], PublishedWeights]) -> None:
        try:
            self.weights = publish()
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

    def _make_transfer(self, name: str, device: torch.device) -> WeightTransfer:
        dtype = DTYPES[self.spec.dtype]
        if self.spec.weight_transfer == "file":
            return FileTransfer(self.folder / f"{name}.safetensors", dtype)
        if self.spec.weight_transfer == "nccl" and device.type != "cuda":
            raise ConfigError(
                f"weight_transfer: 'nccl'. Allowed with a policy on {device}: file or gloo."
            )
        if self.spec.weight_transfer == "ipc":
            return SharedMemoryTransfer(dtype)
        url = "http://127.0.0.1" if self.spec.python else self.spec.server_urls[0]
        nccl_device = device if self.spec.weight_transfer == "nccl" else None
        return ProcessGroupTransfer(url, dtype, nccl_device)

    def _starts_without_lora(self, error: Exception) -> bool:
        """Let vLLM start without adapters if it does not know any for this model."""
        (process, *_) = (server.process for server in self.pool.servers)
        if NO_LORA not in str(error) or not isinstance(process, StartedServer):
            return False
        process.managed.command = self._command(0)
        return True

    def _command(self, lora_rank: int) -> tuple[str, ...]:
        length = self.stop_conditions.context_length
        return server_command(self.spec, self.model, length, lora_rank=lora_rank)

    def _managed_server(self, lora_rank: int) -> ManagedServer:
        copy_worker(self.folder)
        return ManagedServer(
            self._command(lora_rank),
            server_environment(self.spec) | {"PYTHONPATH": str(self.folder)},
            self.folder,
            port=self.spec.port,
            startup_timeout=self.spec.startup_timeout,
        )
