"""vLLM as an inference engine: weights are sent after each update, requests go over HTTP."""

import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from torch import Tensor

from grupo.core.component import component
from grupo.core.dtypes import DTYPES
from grupo.core.validation import check_constraints
from grupo.inference import vllm_protocol as protocol
from grupo.inference.base import Reply, Request, StopConditions, check_generate_only
from grupo.inference.http_client import EngineError, HTTPClient, TransientServerError, send_all
from grupo.inference.server_process import ExternalServer, ManagedServer, Server

SERVER_ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
logger = logging.getLogger(__name__)


@component
class Vllm:
    """A vLLM server: the running one at `url`, or one that is started with `python`.

    Args:
        url: of a running server; ignored with `python`.
        python: interpreter of an environment with vLLM, to start a server with.
        port: of a started server, on 127.0.0.1; 0 takes any free port.
        dtype: in which vLLM computes and weights are transferred.
        max_model_len: context length of vLLM, in tokens; 0: that of the model.
        gpu_memory_utilization: fraction of the device's memory for a started server.
        server_options: more command line options of a started server.
        folder: where weights are transferred; "": the system's folder for temporary files.
        max_concurrency: requests in flight.
        request_timeout: longest time without any answer before the server counts as failed, in
            seconds.
        startup_timeout: longest time for starting and for loading weights, in seconds.
        max_failures: failures in a row, without an answer between them, that end the run.
    """

    url: str = "http://127.0.0.1:8000"
    python: str = ""
    port: int = 0
    dtype: str = "float32"
    max_model_len: int = 0
    gpu_memory_utilization: float = 0.5
    server_options: tuple[str, ...] = ()
    folder: str = ""
    max_concurrency: int = 128
    request_timeout: float = 600.0
    startup_timeout: float = 900.0
    max_failures: int = 3

    def __post_init__(self) -> None:
        share = self.gpu_memory_utilization
        counts = {"max_concurrency": self.max_concurrency, "max_failures": self.max_failures}
        times = {"request_timeout": self.request_timeout, "startup_timeout": self.startup_timeout}
        check_constraints(
            [
                ("url", self.url, bool(self.url or self.python), "an address, or python"),
                ("dtype", self.dtype, self.dtype in DTYPES, " or ".join(DTYPES)),
                (
                    "max_model_len",
                    self.max_model_len,
                    self.max_model_len >= 0,
                    "1 or more; 0: as the model",
                ),
                ("gpu_memory_utilization", share, 0 < share <= 1, "above 0, at most 1"),
                *((name, value, value >= 1, "1 or more") for name, value in counts.items()),
                *((name, value, value > 0, "seconds above 0") for name, value in times.items()),
            ]
        )

    def build(self, model: str, stop_conditions: StopConditions) -> "VllmEngine":
        """The engine; a server is started when it is first needed."""
        return VllmEngine(self, model, stop_conditions)

    def command(self, model: str, max_model_len: int) -> tuple[str, ...]:
        """The command that starts a server; `{port}` stands for the port."""
        options = {
            "--model": model,
            "--host": "127.0.0.1",
            "--port": "{port}",
            "--dtype": self.dtype,
            **({"--max-model-len": str(max_model_len)} if max_model_len < 1 << 30 else {}),
            "--gpu-memory-utilization": str(self.gpu_memory_utilization),
            "--generation-config": "vllm",
            "--logprobs-mode": protocol.LOGPROBS_MODE,
            "--worker-extension-cls": "vllm_worker.WeightLoaderExtension",
        }
        return (
            *(self.python, "-m", "vllm.entrypoints.openai.api_server"),
            *(word for option in options.items() for word in option),
            "--disable-uvicorn-access-log",
            *self.server_options,
        )


class VllmEngine:
    """Generates with the weights that were loaded last.

    Args:
        spec: the server's settings.
        model: path or name of the model, for a server that is started.
        stop_conditions: of all answers.
    """

    def __init__(self, spec: Vllm, model: str, stop_conditions: StopConditions) -> None:
        self.spec = spec
        context_length = stop_conditions.context_length
        if spec.max_model_len:
            context_length = min(context_length, spec.max_model_len)
        self.stop_conditions = replace(stop_conditions, context_length=context_length)
        self.folder = Path(tempfile.mkdtemp(prefix="grupo-", dir=spec.folder or None))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.weights_file = self.folder / "weights.safetensors"
        self.weights_version = ""  # checksum of the loaded weights; "" before the first load
        self.server: Server = (
            self._managed_server(model)
            if spec.python
            else ExternalServer(spec.url, spec.request_timeout)
        )
        self.lock = threading.Lock()

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers every request; an empty reply if the context is full.

        Calls are serialised: the next one waits until this one has ended or was closed. When the
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
            yield from self._retry_until_answered(missing, len(requests))

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Generates with these weights from now on; their names are those of transformers."""
        with self.lock:
            self.weights_version = protocol.write_weights(
                weights, DTYPES[self.spec.dtype], self.weights_file
            )
            for failures in count(1):
                try:
                    return self._ensure_ready()
                except TransientServerError as fault:
                    self._handle_fault(fault, "weights wait to be loaded", failures)

    def close(self) -> None:
        """Ends the server if this engine started it."""
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _retry_until_answered(
        self, missing: dict[int, Request], total: int
    ) -> Iterator[tuple[int, Reply]]:
        failures = 0
        while missing:
            before = len(missing)
            try:
                for i, reply in self._send_round(dict(missing)):
                    del missing[i]
                    yield i, reply
            except TransientServerError as fault:
                failures = 1 if len(missing) < before else failures + 1
                status = f"{len(missing)} of {total} requests are unanswered"
                self._handle_fault(fault, status, failures)

    def _send_round(self, requests: Mapping[int, Request]) -> Iterator[tuple[int, Reply]]:
        """Sends all requests once; yields replies until all have arrived or the server fails."""
        self._ensure_ready()
        spec, url = self.spec, self.server.url
        bodies = {
            i: protocol.request_body(r, self.stop_conditions, self.weights_version)
            for i, r in requests.items()
        }
        replies = send_all(
            url,
            bodies,
            protocol.request_completion,
            max_concurrency=spec.max_concurrency,
            request_timeout=spec.request_timeout,
        )
        with closing(replies):
            yield from replies
        # a server that died after the last reply is noticed by the next call
        with suppress(TransientServerError):
            if not self._has_current_weights():
                raise EngineError(f"vllm at {url} received other weights during the call.")

    def _ensure_ready(self) -> None:
        """Waits for the server and loads the current weights if it does not hold them."""
        self.server.wait_ready()
        if not self._has_current_weights():
            self._push_weights()

    def _has_current_weights(self) -> bool:
        """Whether all workers hold the current weights.

        Raises ConfigError if the server computes differently than it must.
        """
        workers = self._call_workers("grupo_facts", timeout=self.spec.request_timeout)
        for facts in workers:
            protocol.check_facts(facts, self.spec.dtype, self.server.url)
        return {facts["version"] for facts in workers} == {self.weights_version}

    def _push_weights(self) -> None:
        server = f"vllm at {self.server.url}"
        if not self.weights_version:
            raise EngineError(
                f"{server} holds weights of another run, and this one has loaded none."
            )
        results = self._call_workers(
            "grupo_load", str(self.weights_file), timeout=self.spec.startup_timeout
        )
        for result in results:
            if "error" in result:
                self.server.handle_failure()  # its weights are a mixture of old and new ones
                raise EngineError(f"{server} cannot load the weights: {result['error']}")
            if result["version"] != self.weights_version:
                versions = f"blake2b {result['version']}, {self.weights_version} was written"
                raise EngineError(f"{server} loaded other weights than were written: {versions}.")

    def _call_workers(self, method: str, *args: str, timeout: float) -> Sequence[Mapping[str, Any]]:
        client = HTTPClient(self.server.url, timeout)
        with closing(client.connection):
            return protocol.call_workers(client, method, *args)

    def _handle_fault(self, fault: TransientServerError, status: str, failures: int) -> None:
        """Logs a failure; raises EngineError after too many failures in a row."""
        line = f"{fault}; {status}.{self.server.handle_failure()}"
        if failures >= self.spec.max_failures:
            raise EngineError(f"{line} Gave up after {failures} failures in a row.") from fault
        logger.warning("%s Retrying.", line)

    def _managed_server(self, model: str) -> ManagedServer:
        shutil.copy(Path(__file__).with_name("vllm_worker.py"), self.folder)
        return ManagedServer(
            self.spec.command(model, self.stop_conditions.context_length),
            SERVER_ENVIRONMENT | {"PYTHONPATH": str(self.folder)},
            self.folder,
            port=self.spec.port,
            startup_timeout=self.spec.startup_timeout,
        )
