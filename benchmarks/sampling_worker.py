"""A worker that only samples: python -m benchmarks.sampling_worker ENGINE WORKLOAD PRECISION.

The engines have separate virtual environments, so each function imports its own dependencies.
"""

import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel
from benchmarks.workloads import SAMPLING_WORKLOADS, Workload, random_prompts

SampleOnce = Callable[[], int]  # samples once, returns the number of tokens


def grupo(workload: Workload, precision: str) -> SampleOnce:
    """Sample with grupo's engine through a policy, including log-probabilities."""
    import asyncio

    from grupo.core.types import Rollout
    from grupo.models.causal_lm import CausalLM
    from grupo.util.event_loop import run_coroutine

    spec = CausalLM(
        str(model_folder(workload.shape)), max_new_tokens=workload.max_new_tokens, dtype=precision
    )
    policy = spec.build()
    texts = random_prompts(workload, workload.prompts)
    rounds = count()

    async def sample_all() -> int:
        actor = policy.actor(next(rounds))
        responses = await asyncio.gather(
            *(
                actor.fork(prompt, row)(Rollout(), text)
                for prompt, text in enumerate(texts)
                for row in range(workload.group_size)
            )
        )
        return sum(len(response.items) for response in responses)

    return lambda: run_coroutine(sample_all())


def dynamic(workload: Workload, precision: str) -> SampleOnce:
    """Sample with `generate` of transformers and its default cache."""
    return _hf_generate(workload, precision, {})


def static(workload: Workload, precision: str) -> SampleOnce:
    """Sample with `generate` of transformers and a static cache."""
    return _hf_generate(workload, precision, {"cache_implementation": "static"})


def _hf_generate(workload: Workload, precision: str, options: dict[str, Any]) -> SampleOnce:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    path, dtype = model_folder(workload.shape), getattr(torch, precision)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
    tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
    texts = [
        text
        for text in random_prompts(workload, workload.prompts)
        for _ in range(workload.group_size)
    ]
    inputs = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    sampling = {"do_sample": True, "top_k": 0, "max_new_tokens": workload.max_new_tokens}
    config = GenerationConfig(
        **sampling, **options, pad_token_id=1, eos_token_id=0, disable_compile=True
    )

    @torch.no_grad()
    def sample() -> int:
        sequences = model.generate(**inputs, generation_config=config)
        return sequences[:, inputs["input_ids"].shape[1] :].numel()

    return sample


def vllm(workload: Workload, precision: str) -> SampleOnce:
    """Sample with vLLM's CPU build, including log-probabilities."""
    import os

    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "2"}  # GB, more than enough
    from vllm import LLM, SamplingParams

    model = LLM(str(model_folder(workload.shape)), dtype=precision, max_model_len=512)
    params = SamplingParams(
        n=workload.group_size,
        max_tokens=workload.max_new_tokens,
        ignore_eos=True,
        logprobs=0,
        temperature=1.0,
    )
    texts = random_prompts(workload, workload.prompts)

    def sample() -> int:
        outputs = model.generate(texts, params, use_tqdm=False)
        return sum(len(answer.token_ids) for output in outputs for answer in output.outputs)

    return sample


def bound(workload: Workload, precision: str) -> SampleOnce:
    """Compute as many multiplications as the new tokens need, in products of large matrices."""
    import torch

    from benchmarks.bound import matrix_products
    from grupo.models.devices import compute_dtype

    tokens = workload.rows * workload.max_new_tokens
    dtype = compute_dtype(precision, torch.device("cpu"))
    multiply = matrix_products(tokens * workload.shape.product_weights, dtype)

    def sample() -> int:
        multiply()
        return tokens

    return sample


ENGINES = {"grupo": grupo, "dynamic": dynamic, "static": static, "vllm": vllm, "bound": bound}
PACKAGES = {
    "grupo": ("grupo", "torch"),
    "dynamic": ("transformers", "torch"),
    "static": ("transformers", "torch"),
    "vllm": ("vllm", "torch"),
    "bound": ("torch",),
}


def main() -> None:
    """Load the engine, then sample once per request."""
    channel = WorkerChannel()
    _, engine, name, precision = sys.argv
    sample = ENGINES[engine](SAMPLING_WORKLOADS[name], precision)
    channel.ready(*PACKAGES[engine])
    while True:
        channel.wait()
        start = time.perf_counter()
        tokens = sample()
        channel.send(seconds=time.perf_counter() - start, tokens=tokens)


if __name__ == "__main__":
    main()
