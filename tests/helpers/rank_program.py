"""A process that trains in groups of child processes, each of them a rank, and kills them.

Requests and results are lines of JSON, as for `training_program`.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import peft  # noqa: F401  # it imports 800 modules, which each child would load anew
import torch

from grupo.config.overrides import apply_overrides
from grupo.inference.vllm import Vllm
from grupo.kernels import native
from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import resume_pipeline, run_pipeline
from grupo.storage import fault_injection
from grupo.training.start import resume_training, run_training
from grupo.training.update import updates
from grupo.training.update.policy_device import WeightedBatch
from tests.helpers import pipelines, training_components, training_recipes
from tests.helpers.training_program import run_in_child

Request = Mapping[str, Any]
HANGING_AFTER = 900.0  # seconds; ranks are slow where many processes share the cores


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def execute(request: Request, model: str, rank: int, port: int) -> Mapping[str, str]:
    """Train or resume as one rank; returns the error."""
    torch.set_num_threads(1)
    if request["ranks"] > 1:
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(request["ranks"]),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
    os.environ["GRUPO_PATIENCE"] = str(request.get("patience", 60))
    os.environ["GRUPO_LOST_AFTER"] = "5"
    if rank == request.get("signalled"):
        fault_injection.KILL_AT = request["at"]
        fault_injection.KILL_SIGNAL = signal.Signals[request.get("signal", "SIGKILL")]
    if rank == request.get("without_memory"):
        run_out_of_memory_once()
    if rank == request.get("with_drift"):
        change_a_weight()
    if not request.get("kernels", True):
        native.library = lambda dtype: None
    try:
        if request["do"] == "resume":
            resume_training(request["run"])
        elif request["do"] == "resume pipeline":
            resume_pipeline(request["run"])
        elif request["do"] == "pipeline":
            run_pipeline(pipelines.PIPELINES[request["recipe"]](model), request["run"])
        else:
            recipe = training_recipes.recipe(request["recipe"], model)
            if isinstance(recipe.policy, CausalLM):
                recipe = recipe.replace(policy=replace(recipe.policy, dtype="float64"))
            recipe = apply_overrides(recipe, list(request.get("overrides", {}).items()))
            if "urls" in request or "python" in request:
                recipe = recipe.replace(policy=replace(recipe.policy, engine=engine_of(request)))
            run_training(recipe.replace(**request.get("changes", {})), request["run"])
    except BaseException as raised:  # the child must not run the parent's code
        return {"error": f"{type(raised).__name__}: {raised}"}
    return {"error": ""}


def engine_of(request: Request) -> Vllm:
    return Vllm(
        tuple(request.get("urls", ())),
        request.get("python", ""),
        request_timeout=5.0,
        weight_transfer=request.get("transfer", "file"),
    )


def run_out_of_memory_once() -> None:
    """Let the second micro-batch with gradients lack memory."""
    select_rows, calls = WeightedBatch.select_rows, count(1)

    def failing(*arguments: Any) -> Any:
        if next(calls) == 2:
            raise MemoryError
        return select_rows(*arguments)

    WeightedBatch.select_rows = failing


def change_a_weight() -> None:
    """Let every update of this rank differ by the smallest amount."""
    optimizer_step = updates.optimizer_step

    def drifting(optimizer: Any, *arguments: Any) -> Any:
        metrics = optimizer_step(optimizer, *arguments)
        optimizer.param_groups[0]["params"][0].data.view(-1)[0].mul_(1 + 2**-23)
        return metrics

    updates.optimizer_step = drifting


def run_ranks(request: Request, model: str) -> list[dict[str, Any]]:
    """Run all ranks; returns the error and the signal of each, and the seconds until it ended."""
    port = free_port()
    pipes: dict[int, tuple[int, int]] = {}
    for rank in range(request["ranks"]):
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            result = execute(request, model, rank, port)
            os.write(write_end, json.dumps(result).encode())
            os._exit(0)
        os.close(write_end)
        pipes[read_end] = (rank, child)
    return wait_for_ranks(pipes)


def wait_for_ranks(pipes: dict[int, tuple[int, int]]) -> list[dict[str, Any]]:
    """Wait until all ranks that are not stopped have ended; then kill the stopped ones."""
    start = time.monotonic()
    results: dict[int, dict[str, Any]] = {}
    output = dict.fromkeys(pipes, b"")
    while pipes and time.monotonic() - start < HANGING_AFTER:
        for pipe in select.select(list(pipes), [], [], 0.1)[0]:
            content = os.read(pipe, 1 << 16)
            output[pipe] += content
            if not content:
                rank, child = pipes.pop(pipe)
                status = os.waitpid(child, 0)[1]
                results[rank] = {
                    **json.loads(output[pipe] or b'{"error": "killed"}'),
                    "signal": os.WTERMSIG(status),
                    "seconds": time.monotonic() - start,
                }
        if pipes and all(is_stopped(child) for _, child in pipes.values()):
            break
    for rank, child in pipes.values():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        results[rank] = {"error": "stopped", "signal": signal.SIGKILL, "seconds": HANGING_AFTER}
    return [results[rank] for rank in sorted(results)]


def is_stopped(child: int) -> bool:
    return Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].startswith("T")


def main(model: str) -> None:
    torch.set_num_threads(1)
    run_in_child(lambda _: training_components.save_models(Path(model)))
    loading.load(model, torch.float32, torch.device("cpu"))  # warms the caches of all children
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(run_ranks(json.loads(line), model)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
