"""A worker that only samples: python -m benchmarks.speak WAY WORKLOAD PRECISION.

Each way lives in an environment of its own, so that each imports what it needs when it is chosen.
"""

import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel
from benchmarks.workloads import SAMPLING_WORKLOADS, Workload, random_prompts

SampleOnce = Callable[[], int]  # samples once; how many tokens


def grupo(workload: Workload, precision: str) -> SampleOnce:
    """grupo's engine, through a policy; it gives the log-probability of every token."""
    import asyncio

    from grupo.core.types import Rollout
    from grupo.models.causal_lm import CausalLM

    spec = CausalLM(
        str(model_folder(workload.shape)), max_new_tokens=workload.max_new_tokens, dtype=precision
    )
    policy, texts, rounds = spec.build(), random_prompts(workload, workload.prompts), count()

    async def everyone() -> int:
        act = policy.actor(next(rounds))
        forks = (
            (act.fork(p, i), q) for p, q in enumerate(texts) for i in range(workload.group_size)
        )
        said = await asyncio.gather(*(fork(Rollout(), text) for fork, text in forks))
        return sum(len(action.items) for action in said)

    return lambda: asyncio.run(everyone())


def dynamic(workload: Workload, precision: str) -> SampleOnce:
    """`generate` of transformers, as it is."""
    return _hf_generate(workload, precision, {})


def static(workload: Workload, precision: str) -> SampleOnce:
    """`generate` of transformers with a cache of fixed size."""
    return _hf_generate(workload, precision, {"cache_implementation": "static"})


def _hf_generate(workload: Workload, precision: str, more: dict[str, Any]) -> SampleOnce:
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
    read = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    drawn = {"do_sample": True, "top_k": 0, "max_new_tokens": workload.max_new_tokens}
    config = GenerationConfig(**drawn, **more, pad_token_id=1, eos_token_id=0, disable_compile=True)

    @torch.no_grad()
    def speak() -> int:
        said = model.generate(**read, generation_config=config)
        return said[:, read["input_ids"].shape[1] :].numel()

    return speak


def vllm(workload: Workload, precision: str) -> SampleOnce:
    """vLLM's build for processors; it gives the log-probability of every token."""
    import os

    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "2"}  # GB: ample
    from vllm import LLM, SamplingParams

    model = LLM(str(model_folder(workload.shape)), dtype=precision, max_model_len=512)
    chosen = SamplingParams(
        n=workload.group_size,
        max_tokens=workload.max_new_tokens,
        ignore_eos=True,
        logprobs=0,
        temperature=1.0,
    )
    texts = random_prompts(workload, workload.prompts)

    def speak() -> int:
        said = model.generate(texts, chosen, use_tqdm=False)
        return sum(len(answer.token_ids) for one in said for answer in one.outputs)

    return speak


PACKAGES = {"grupo": "grupo", "dynamic": "transformers", "static": "transformers", "vllm": "vllm"}


def main() -> None:
    """Load, then sample once for each line that is read."""
    turns = WorkerChannel()
    _, way, name, precision = sys.argv
    speak = globals()[way](SAMPLING_WORKLOADS[name], precision)
    turns.ready(PACKAGES[way], "torch")
    while True:
        turns.wait()
        began = time.perf_counter()
        tokens = speak()
        turns.send(seconds=time.perf_counter() - began, tokens=tokens)


if __name__ == "__main__":
    main()
