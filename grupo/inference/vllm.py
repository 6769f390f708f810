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

from grupo.core.component import piece
from grupo.core.validation import check
from grupo.inference import vllm_protocol as protocol
from grupo.inference.base import Bounds, Reply, Request, check_drawn
from grupo.inference.http_client import EngineFailed, Fault, Wire, ask_all
from grupo.inference.server_process import Ours, Server, Theirs
from grupo.models.loading import DTYPES

ENVIRONMENT = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
logger = logging.getLogger(__name__)


@piece
class Vllm:
    """A vLLM server: the one at `url`, or one of our own with `python`, an interpreter that has it.

    `port`, `memory` (the share of the device's) and `options` (more of vLLM's own) are of one that
    is started. It computes in `dtype` and reads `context` tokens, 0 being all that the model reads.
    Weights are handed over in `folder`, "" being the system's for temporary files. A server that
    brings no answer for `patience` seconds has failed; after `tries` failures in a row without an
    answer between them the run ends. `starting` is how long it may take to start, or to load.
    """

    url: str = "http://127.0.0.1:8000"
    python: str = ""
    port: int = 0
    dtype: str = "float32"
    context: int = 0
    memory: float = 0.5
    options: tuple[str, ...] = ()
    folder: str = ""
    at_once: int = 128
    patience: float = 600.0
    starting: float = 900.0
    tries: int = 3

    def __post_init__(self) -> None:
        check(
            [
                ("url", self.url, bool(self.url or self.python), "an address, or python"),
                ("dtype", self.dtype, self.dtype in DTYPES, " or ".join(DTYPES)),
                ("context", self.context, self.context >= 0, "1 or more; 0: as the model"),
                ("memory", self.memory, 0 < self.memory <= 1, "above 0, at most 1"),
                ("at_once", self.at_once, self.at_once >= 1, "1 or more"),
                ("patience", self.patience, self.patience > 0, "seconds above 0"),
                ("starting", self.starting, self.starting > 0, "seconds above 0"),
                ("tries", self.tries, self.tries >= 1, "1 or more"),
            ]
        )

    def build(self, model: str, bounds: Bounds) -> "VllmEngine":
        """The engine; a server is started when it is first needed."""
        return VllmEngine(self, model, bounds)

    def command(self, model: str, context: int) -> tuple[str, ...]:
        """How a server is started, but for its environment; `{port}` stands for the port."""
        length = ("--max-model-len", str(context)) if context < 1 << 30 else ()
        return (
            *(self.python, "-m", "vllm.entrypoints.openai.api_server", "--model", model),
            *("--host", "127.0.0.1", "--port", "{port}", "--dtype", self.dtype, *length),
            *("--gpu-memory-utilization", str(self.memory), "--generation-config", "vllm"),
            *("--logprobs-mode", protocol.MODE, "--worker-extension-cls", "vllm_worker.Pushed"),
            "--disable-uvicorn-access-log",
            *self.options,
        )


class VllmEngine:
    """Answers requests with the weights that were loaded last; before that, with the model's."""

    def __init__(self, spec: Vllm, model: str, bounds: Bounds) -> None:
        self.spec = spec
        self.bounds = replace(bounds, context=min(bounds.context, spec.context or bounds.context))
        self.folder = Path(tempfile.mkdtemp(prefix="grupo-", dir=spec.folder or None))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.weights = self.folder / "weights.safetensors"
        self.version = ""  # the checksum of the weights that were loaded; none were
        self.server: Server = self._ours(model) if spec.python else Theirs(spec.url, spec.patience)
        self.lock = threading.Lock()

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, each as soon as it has ended; where no room is left, with nothing.

        One call at a time: the next waits until this one has ended or was closed. What was answered
        stays so when the server fails: only what is missing is asked again.
        """
        check_drawn(requests, "vllm")
        for sampling in dict.fromkeys(request.sampling for request in requests):
            protocol.check_sampling(sampling)
        with self.lock:
            missing = {i: r for i, r in enumerate(requests) if self.bounds.room(r) > 0}
            yield from ((i, Reply()) for i in range(len(requests)) if i not in missing)
            yield from self._insist(missing, len(requests))

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Answer with these weights from now on, by the names that transformers gives them."""
        with self.lock:
            self.version = protocol.write(weights, DTYPES[self.spec.dtype], self.weights)
            for failures in count(1):
                try:
                    return self._ready()
                except Fault as fault:
                    self._bear(fault, "weights wait to be loaded", failures)

    def close(self) -> None:
        """End the server, if it is ours."""
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _insist(self, missing: dict[int, Request], of: int) -> Iterator[tuple[int, Reply]]:
        """Ask for what is missing until nothing is."""
        failures = 0
        while missing:
            left = len(missing)
            try:
                for i, reply in self._round(dict(missing)):
                    del missing[i]
                    yield i, reply
            except Fault as fault:
                failures = 1 if len(missing) < left else failures + 1
                waiting = f"{len(missing)} of {of} requests are unanswered"
                self._bear(fault, waiting, failures)

    def _round(self, requests: Mapping[int, Request]) -> Iterator[tuple[int, Reply]]:
        """Ask them all once, as far as the server lives."""
        self._ready()
        spec, url = self.spec, self.server.url
        bodies = {i: protocol.asked(r, self.bounds, self.version) for i, r in requests.items()}
        limits = {"at_once": spec.at_once, "patience": spec.patience}
        with closing(ask_all(url, bodies, protocol.complete, **limits)) as replies:
            yield from replies
        with suppress(Fault):  # it died after the last answer: the next call finds out
            if not self._holds():
                raise EngineFailed(f"vllm at {url} was given other weights while it answered.")

    def _ready(self) -> None:
        """The server runs, computes as it is to, and holds the weights that were loaded last."""
        self.server.ready()
        if not self._holds():
            self._push()

    def _holds(self) -> bool:
        """Does the server hold these weights? Refuses one that computes otherwise than it is to."""
        held = self._rpc("grupo_facts", patience=self.spec.patience)
        for facts in held:
            protocol.check_facts(facts, self.spec.dtype, self.server.url)
        return {facts["version"] for facts in held} == {self.version}

    def _push(self) -> None:
        where = f"vllm at {self.server.url}"
        if not self.version:
            raise EngineFailed(f"{where} holds weights of somebody else, and none were loaded yet.")
        loaded = self._rpc("grupo_load", str(self.weights), patience=self.spec.starting)
        for said in loaded:
            if "error" in said:
                self.server.failed()  # it holds a mixture now
                raise EngineFailed(f"{where} cannot load the weights: {said['error']}")
            if said["version"] != self.version:
                theirs = f"blake2b {said['version']}, {self.version} was written"
                raise EngineFailed(f"{where} loaded other weights than it was given: {theirs}.")

    def _rpc(self, method: str, *args: str, patience: float) -> Sequence[Mapping[str, Any]]:
        """What every worker of the server answers."""
        wire = Wire(self.server.url, patience)
        with closing(wire.http):
            return protocol.call(wire, method, *args)

    def _bear(self, fault: Fault, waiting: str, failures: int) -> None:
        """Say that the server failed and who waits; give up when it has failed too often."""
        line = f"{fault}; {waiting}.{self.server.failed()}"
        if failures >= self.spec.tries:
            raise EngineFailed(f"{line} Given up after {failures} failures in a row.") from fault
        logger.warning("%s It is tried again.", line)

    def _ours(self, model: str) -> Ours:
        shutil.copy(Path(__file__).with_name("vllm_worker.py"), self.folder)
        environment = ENVIRONMENT | {"PYTHONPATH": str(self.folder)}
        command = self.spec.command(model, self.bounds.context)
        port, starting = self.spec.port, self.spec.starting
        return Ours(command, environment, self.folder, port=port, starting=starting)
