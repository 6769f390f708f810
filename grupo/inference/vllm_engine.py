"""The inference engine of a vLLM server: loads weights, sends requests, retries."""

import logging
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_fixed,
)
from torch import Tensor

from grupo.core.dtypes import DTYPES
from grupo.inference import vllm_protocol as protocol
from grupo.inference.base import Reply, Request, StopConditions, check_generate_only
from grupo.inference.http_client import EngineError, TransientServerError, send_all, send_one
from grupo.inference.server_process import ExternalServer, ManagedServer, Server
from grupo.inference.vllm import Vllm

RETRY_INTERVAL = 0.25  # seconds between a failure and the next attempt
SERVER_ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
logger = logging.getLogger(__name__)


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
        self.is_asleep = False
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
            if missing:
                yield from self._retry_until_answered(missing, len(requests))

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Generates with these weights from now on; their names are those of transformers."""
        with self.lock:
            self.weights_version = protocol.write_weights(
                weights, DTYPES[self.spec.dtype], self.weights_file
            )
            self._retrying(lambda: "weights wait to be loaded")(self._ensure_ready)

    def release_memory(self) -> None:
        """Lets the server release its memory until weights are loaded, if it shall sleep."""
        if not self.spec.sleep or self.is_asleep:
            return
        with self.lock:
            with suppress(TransientServerError):  # a server that died holds no memory
                # the weights are loaded anew in any case: level 2 keeps no copy of them
                self._post("/sleep?level=2")
            self.is_asleep = True

    def close(self) -> None:
        """Ends the server if this engine started it."""
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _retry_until_answered(
        self, missing: dict[int, Request], total: int
    ) -> Iterator[tuple[int, Reply]]:
        for attempt in self._retrying(lambda: f"{len(missing)} of {total} requests are unanswered"):
            with attempt, closing(self._send_round(dict(missing))) as replies:
                for i, reply in replies:
                    attempt.retry_state.attempt_number = 1  # only failures in a row count
                    del missing[i]
                    yield i, reply

    def _send_round(
        self, requests: Mapping[int, Request]
    ) -> Generator[tuple[int, Reply], None, None]:
        """Sends all requests once; yields replies until all have arrived or the server fails."""
        self._ensure_ready()
        spec = self.spec
        url = self.server.url
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
        if self.is_asleep:
            self._wake_up()
        elif not self._has_current_weights():
            self._push_weights()

    def _wake_up(self) -> None:
        """Loads the weights first: they and the KV cache would not fit beside a second copy."""
        self._post("/wake_up?tags=weights")
        self._push_weights()
        self._post("/wake_up?tags=kv_cache")
        self.is_asleep = False

    def _post(self, path: str) -> None:
        body = {"path": path}
        send_one(self.server.url, body, protocol.post_empty, timeout=self.spec.startup_timeout)

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
        call = {"method": method, "args": args}
        return send_one(self.server.url, call, protocol.call_workers, timeout=timeout)

    def _retrying(self, status: Callable[[], str]) -> Retrying:
        """Repeats what fails because of the server; raises EngineError after `max_failures`.

        Each failure is logged with its cause and the status at that time.
        """

        def failure_line(state: RetryCallState) -> str:
            return f"{_fault_of(state)}; {status()}.{self.server.handle_failure()}"

        def give_up(state: RetryCallState) -> None:
            line = f"{failure_line(state)} Gave up after {state.attempt_number} failures in a row."
            raise EngineError(line) from _fault_of(state)

        return Retrying(
            retry=retry_if_exception_type(TransientServerError),
            stop=stop_after_attempt(self.spec.max_failures),
            wait=wait_fixed(RETRY_INTERVAL),
            before_sleep=lambda state: logger.warning("%s Retrying.", failure_line(state)),
            retry_error_callback=give_up,
        )

    def _managed_server(self, model: str) -> ManagedServer:
        shutil.copy(Path(__file__).with_name("vllm_worker.py"), self.folder)
        return ManagedServer(
            server_command(self.spec, model, self.stop_conditions.context_length),
            server_environment(self.spec) | {"PYTHONPATH": str(self.folder)},
            self.folder,
            port=self.spec.port,
            startup_timeout=self.spec.startup_timeout,
        )


def server_environment(spec: Vllm) -> dict[str, str]:
    """Variables of a started server."""
    return SERVER_ENVIRONMENT | ({"CUDA_VISIBLE_DEVICES": spec.devices} if spec.devices else {})


def server_command(spec: Vllm, model: str, max_model_len: int) -> tuple[str, ...]:
    """The command that starts a server; `{port}` stands for the port."""
    options = {
        "--model": model,
        "--host": "127.0.0.1",
        "--port": "{port}",
        "--dtype": spec.dtype,
        "--load-format": "safetensors",  # "auto" would fall back to pickles
        **({"--max-model-len": str(max_model_len)} if max_model_len < 1 << 30 else {}),
        "--gpu-memory-utilization": str(spec.gpu_memory_utilization),
        "--generation-config": "vllm",
        "--logprobs-mode": protocol.LOGPROBS_MODE,
        "--worker-extension-cls": "vllm_worker.WeightLoaderExtension",
    }
    return (
        *(spec.python, "-m", "vllm.entrypoints.openai.api_server"),
        *(word for option in options.items() for word in option),
        "--disable-uvicorn-access-log",
        *(("--enable-sleep-mode",) if spec.sleep else ()),
        *spec.server_options,
    )


def _fault_of(state: RetryCallState) -> BaseException | None:
    """The exception that ended the last attempt."""
    return state.outcome.exception() if state.outcome else None
