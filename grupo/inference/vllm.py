"""A vLLM server as an engine: it is given the weights after each update, and asked over HTTP."""

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
    """A vLLM server: the one at `url`, or one of our own with `python`, an interpreter that has it.

    `port`, `memory` (the share of the device's) and `server_options` (more of vLLM's own) are of one that
    is started. It computes in `dtype` and reads `context` tokens, 0 being all that the model reads.
    Weights are handed over in `folder`, "" being the system's for temporary files. A server that
    brings no answer for `request_timeout` seconds has failed; after `tries` failures in a row without an
    answer between them the run ends. `startup_timeout` is how long it may take to start, or to load.
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
        check_constraints(
            [
                ("url", self.url, bool(self.url or self.python), "an address, or python"),
                ("dtype", self.dtype, self.dtype in DTYPES, " or ".join(DTYPES)),
                (
                    "context",
                    self.max_model_len,
                    self.max_model_len >= 0,
                    "1 or more; 0: as the model",
                ),
                (
                    "memory",
                    self.gpu_memory_utilization,
                    0 < self.gpu_memory_utilization <= 1,
                    "above 0, at most 1",
                ),
                ("at_once", self.max_concurrency, self.max_concurrency >= 1, "1 or more"),
                ("patience", self.request_timeout, self.request_timeout > 0, "seconds above 0"),
                ("starting", self.startup_timeout, self.startup_timeout > 0, "seconds above 0"),
                ("tries", self.max_failures, self.max_failures >= 1, "1 or more"),
            ]
        )

    def build(self, model: str, stop_conditions: StopConditions) -> "VllmEngine":
        """The engine; a server is started when it is first needed."""
        return VllmEngine(self, model, stop_conditions)

    def command(self, model: str, max_model_len: int) -> tuple[str, ...]:
        """How a server is started, but for its environment; `{port}` stands for the port."""
        length = ("--max-model-len", str(max_model_len)) if max_model_len < 1 << 30 else ()
        return (
            *(self.python, "-m", "vllm.entrypoints.openai.api_server", "--model", model),
            *("--host", "127.0.0.1", "--port", "{port}", "--dtype", self.dtype, *length),
            *(
                "--gpu-memory-utilization",
                str(self.gpu_memory_utilization),
                "--generation-config",
                "vllm",
            ),
            *(
                "--logprobs-mode",
                protocol.LOGPROBS_MODE,
                "--worker-extension-cls",
                "vllm_worker.Pushed",
            ),
            "--disable-uvicorn-access-log",
            *self.server_options,
        )


class VllmEngine:
    """Answers requests with the weights that were loaded last; before that, with the model's."""

    def __init__(self, spec: Vllm, model: str, stop_conditions: StopConditions) -> None:
        self.spec = spec
        self.stop_conditions = replace(
            stop_conditions,
            context_length=min(
                stop_conditions.context_length, spec.max_model_len or stop_conditions.context_length
            ),
        )
        self.folder = Path(tempfile.mkdtemp(prefix="grupo-", dir=spec.folder or None))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.weights_file = self.folder / "weights.safetensors"
        self.weights_version = ""  # the checksum of the weights that were loaded; none were
        self.server: Server = (
            self._managed_server(model)
            if spec.python
            else ExternalServer(spec.url, spec.request_timeout)
        )
        self.lock = threading.Lock()

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, each as soon as it has ended; where no room is left, with nothing.

        One call at a time: the next waits until this one has ended or was closed. What was answered
        stays so when the server fails: only what is missing is asked again.
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
        """Answer with these weights from now on, by the names that transformers gives them."""
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
        """End the server, if it is ours."""
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _retry_until_answered(
        self, missing: dict[int, Request], total: int
    ) -> Iterator[tuple[int, Reply]]:
        """Ask for what is missing until nothing is."""
        failures = 0
        while missing:
            left = len(missing)
            try:
                for i, reply in self._send_round(dict(missing)):
                    del missing[i]
                    yield i, reply
            except TransientServerError as fault:
                failures = 1 if len(missing) < left else failures + 1
                waiting = f"{len(missing)} of {total} requests are unanswered"
                self._handle_fault(fault, waiting, failures)

    def _send_round(self, requests: Mapping[int, Request]) -> Iterator[tuple[int, Reply]]:
        """Ask them all once, as far as the server lives."""
        self._ensure_ready()
        spec, url = self.spec, self.server.url
        bodies = {
            i: protocol.request_body(r, self.stop_conditions, self.weights_version)
            for i, r in requests.items()
        }
        limits = {"at_once": spec.max_concurrency, "patience": spec.request_timeout}
        with closing(send_all(url, bodies, protocol.request_completion, **limits)) as replies:
            yield from replies
        with suppress(
            TransientServerError
        ):  # it died after the last answer: the next call finds out
            if not self._has_current_weights():
                raise EngineError(f"vllm at {url} was given other weights while it answered.")

    def _ensure_ready(self) -> None:
        """The server runs, computes as it is to, and holds the weights that were loaded last."""
        self.server.wait_ready()
        if not self._has_current_weights():
            self._push_weights()

    def _has_current_weights(self) -> bool:
        """Does the server hold these weights? Refuses one that computes otherwise than it is to."""
        held = self._call_workers("grupo_facts", timeout=self.spec.request_timeout)
        for facts in held:
            protocol.check_facts(facts, self.spec.dtype, self.server.url)
        return {facts["version"] for facts in held} == {self.weights_version}

    def _push_weights(self) -> None:
        where = f"vllm at {self.server.url}"
        if not self.weights_version:
            raise EngineError(f"{where} holds weights of somebody else, and none were loaded yet.")
        loaded = self._call_workers(
            "grupo_load", str(self.weights_file), timeout=self.spec.startup_timeout
        )
        for said in loaded:
            if "error" in said:
                self.server.handle_failure()  # it holds a mixture now
                raise EngineError(f"{where} cannot load the weights: {said['error']}")
            if said["version"] != self.weights_version:
                theirs = f"blake2b {said['version']}, {self.weights_version} was written"
                raise EngineError(f"{where} loaded other weights than it was given: {theirs}.")

    def _call_workers(self, method: str, *args: str, timeout: float) -> Sequence[Mapping[str, Any]]:
        """What every worker of the server answers."""
        wire = HTTPClient(self.server.url, timeout)
        with closing(wire.connection):
            return protocol.call_workers(wire, method, *args)

    def _handle_fault(self, fault: TransientServerError, status: str, failures: int) -> None:
        """Say that the server failed and who waits; give up when it has failed too often."""
        line = f"{fault}; {status}.{self.server.handle_failure()}"
        if failures >= self.spec.max_failures:
            raise EngineError(f"{line} Given up after {failures} failures in a row.") from fault
        logger.warning("%s It is tried again.", line)

    def _managed_server(self, model: str) -> ManagedServer:
        shutil.copy(Path(__file__).with_name("vllm_worker.py"), self.folder)
        environment = SERVER_ENVIRONMENT | {"PYTHONPATH": str(self.folder)}
        command = self.spec.command(model, self.stop_conditions.context_length)
        port, starting = self.spec.port, self.spec.startup_timeout
        return ManagedServer(command, environment, self.folder, port=port, startup_timeout=starting)
