"""Sampling on a GPU: tokens a second of every way, against what reading memory allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from benchmarks.gpu_machine import (
    DEVICE,
    parameter_counts,
    peak_memory_gib,
    random_model,
    random_prompts,
    reset_peak_memory,
    time_once,
)
from benchmarks.gpu_replay import GraphSampler
from benchmarks.gpu_sizes import ModelShape
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.local import MAX_CONTEXT_TOKENS
from grupo.kernels.backend import HFBackend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.models.evaluator import PackedEvaluator

CONTEXT_TOKENS = 1 << 21  # tokens of context: everybody together


@dataclass(frozen=True)
class SamplingRequest:
    """Prompts, each answered by so many rows of so many tokens."""

    shape: ModelShape
    prompts: int
    rows_per_prompt: int  # for each prompt
    prompt_length: int  # of a prompt
    new_tokens: int
    stride: int

    @property
    def requests(self) -> list[Request]:
        """Those of one prompt beside each other."""
        prompts = random_prompts(self.shape, self.prompts, self.prompt_length)
        each = [p for p in prompts for _ in range(self.rows_per_prompt)]
        return [Request(prompt, 1000 + i) for i, prompt in enumerate(each)]

    @property
    def batch_size(self) -> int:
        """Rows."""
        return self.prompts * self.rows_per_prompt


@dataclass(frozen=True)
class SamplingTime:
    """Seconds until the first token of every row, and of all that follow."""

    prefill_seconds: float
    decode_seconds: float
    note: str = ""


SamplingFunction = Callable[[PreTrainedModel, SamplingRequest], SamplingTime]


def engine_replies(
    model: PreTrainedModel, request: SamplingRequest, context_tokens: int = CONTEXT_TOKENS
) -> list[Reply]:
    """Every reply of grupo's engine, which holds so many tokens of context at once."""
    model.set_attn_implementation(hf_attention.ATTENTION_NAME)
    nothing: Any = None  # a tokenizer is asked for texts that end an answer only
    head, bounds = LMHead(model.get_output_embeddings()), StopConditions(request.new_tokens, ())
    engine: Any = PackedEvaluator(HFBackend(model)).engine(head, nothing, bounds)
    return generate_all(replace(engine, cells=context_tokens), request.requests)


def time_engine(
    model: PreTrainedModel, request: SamplingRequest, context_tokens: int = CONTEXT_TOKENS
) -> SamplingTime:
    """grupo's engine."""
    return _time_prefill_and_decode(
        lambda n: engine_replies(model, replace(request, new_tokens=n), context_tokens),
        request.new_tokens,
    )


def time_graphs(model: PreTrainedModel, request: SamplingRequest) -> SamplingTime:
    """An experiment: the same with steps of fixed shapes, captured and replayed."""
    return _time_replayed(model, request, lambda read: read)


def time_compiled_graphs(model: PreTrainedModel, request: SamplingRequest) -> SamplingTime:
    """An experiment: the same, the model compiled; one graph, for compiling takes long."""
    return _time_replayed(model, replace(request, stride=request.new_tokens), torch.compile)


def _time_replayed(
    model: PreTrainedModel, request: SamplingRequest, transform: Callable[..., Any]
) -> SamplingTime:
    model.set_attn_implementation(hf_attention.ATTENTION_NAME)
    rows = GraphSampler(model, request.requests, request.new_tokens)
    rows.start()  # the first time takes longer
    reading = time_once(rows.start)
    ready = time_once(lambda: rows.capture_steps(request.stride, transform))
    return SamplingTime(reading, time_once(rows.generate), f"ready after {ready:.1f} s")


def time_generate(model: PreTrainedModel, request: SamplingRequest, **more: Any) -> SamplingTime:
    """`generate` of transformers, not compiled."""
    speak = _generate_function(model, request, {"disable_compile": True, **more})
    return _time_prefill_and_decode(speak, request.new_tokens)


def time_compiled_generate(model: PreTrainedModel, request: SamplingRequest) -> SamplingTime:
    """`generate` with a cache of fixed size, which it compiles for."""
    static = {"cache_implementation": "static"}
    reading = time_once(
        lambda: _generate_function(model, request, {**static, "disable_compile": True})(1)
    )
    speak = _generate_function(model, request, static)
    first = time_once(lambda: speak(request.new_tokens))
    return SamplingTime(
        reading, time_once(lambda: speak(request.new_tokens)) - reading, f"first time {first:.1f} s"
    )


def _generate_function(
    model: PreTrainedModel, sampling_request: SamplingRequest, more: Mapping[str, Any]
) -> Callable[[int], Any]:
    model.set_attn_implementation("sdpa")
    token = torch.tensor([request.tokens for request in sampling_request.requests], device=DEVICE)
    drawn = {"do_sample": True, "top_k": 0, "eos_token_id": None, "pad_token_id": 0}
    everywhere = torch.ones_like(token)

    def speak(new: int) -> Any:
        config = GenerationConfig(**drawn, **more, max_new_tokens=new)
        said = model.generate(token, attention_mask=everywhere, generation_config=config)
        assert said.shape == (len(token), token.shape[1] + new), "everybody says all"

    return speak


def _time_prefill_and_decode(speak: Callable[[int], Any], new: int) -> SamplingTime:
    speak(2)  # warm up
    reading = time_once(lambda: speak(1))
    return SamplingTime(reading, time_once(lambda: speak(new)) - reading)


WAYS: dict[str, SamplingFunction] = {
    "grupo": time_engine,
    "grupo, graphs (experiment)": time_graphs,
    "generate, dynamic cache": time_generate,
    "generate, static cache": lambda m, a: time_generate(m, a, cache_implementation="static"),
    f"grupo, at most {MAX_CONTEXT_TOKENS:,} tokens of context": lambda m, a: time_engine(
        m, a, MAX_CONTEXT_TOKENS
    ),
    "grupo, compiled, a graph (experiment)": time_compiled_graphs,
    "generate, static cache, compiled": time_compiled_generate,
}


def measure_sampling(
    sampling_function: SamplingFunction, request: SamplingRequest, bandwidth: float
) -> dict[str, Any]:
    """A row: how fast, and how far from reading every weight, key and value once a step."""
    model = random_model(request.shape)
    reset_peak_memory()
    spent = sampling_function(model, request)
    steps = request.new_tokens - 1
    return {
        "tokens/s": request.batch_size
        * request.new_tokens
        / (spent.prefill_seconds + spent.decode_seconds),
        "saying, tokens/s": request.batch_size * steps / spent.decode_seconds,
        "ms a step": 1000 * spent.decode_seconds / steps,
        "first token, s": spent.prefill_seconds,
        "of bound, prompts shared": decode_seconds_bound(model, request, request.prompts, bandwidth)
        / spent.decode_seconds,
        "of bound, each its own": decode_seconds_bound(
            model, request, request.batch_size, bandwidth
        )
        / spent.decode_seconds,
        "peak GiB": peak_memory_gib(),
        "note": spent.note,
    }


def decode_seconds_bound(
    model: PreTrainedModel, request: SamplingRequest, prompt_copies: int, bandwidth: float
) -> float:
    """The seconds that saying takes at least, if so many prompts' keys and values are read."""
    shape, steps = request.shape, request.new_tokens - 1
    weights = 2 * sum(parameter_counts(model))
    cell = 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim  # keys, values, of two bytes each
    seen = (
        prompt_copies * request.prompt_length * steps
        + request.batch_size * steps * (steps + 1) // 2
    )
    return (steps * weights + cell * seen) / bandwidth
