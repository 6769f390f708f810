"""Sampling on a GPU: tokens/s of every implementation, relative to the memory-bandwidth bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
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
from benchmarks.gpu_sizes import ModelShape
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.memory_limits import MAX_CONTEXT_TOKENS, MemoryLimits
from grupo.inference.static_rows import StaticDecoding, capture_switch_for
from grupo.kernels.backend import HFBackend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.models.evaluator import PackedEvaluator

CONTEXT_TOKENS = 1 << 21  # tokens of context; enough to batch all rows


@dataclass(frozen=True)
class SamplingRequest:
    """A batch to generate; lengths in tokens."""

    shape: ModelShape
    prompts: int
    rows_per_prompt: int
    prompt_length: int
    new_tokens: int

    @property
    def requests(self) -> list[Request]:
        """Return one request per row, the rows of a prompt next to one another."""
        prompts = random_prompts(self.shape, self.prompts, self.prompt_length)
        row_prompts = [prompt for prompt in prompts for _ in range(self.rows_per_prompt)]
        return [Request(prompt, 1000 + i) for i, prompt in enumerate(row_prompts)]

    @property
    def batch_size(self) -> int:
        """Return the number of rows."""
        return self.prompts * self.rows_per_prompt


@dataclass(frozen=True)
class SamplingTime:
    """Seconds up to the first token of every row, and seconds of all later tokens."""

    prefill_seconds: float
    decode_seconds: float
    note: str = ""


SamplingFunction = Callable[[PreTrainedModel, SamplingRequest], SamplingTime]


def engine_replies(
    model: PreTrainedModel,
    request: SamplingRequest,
    context_tokens: int = CONTEXT_TOKENS,
    static_decoding: StaticDecoding | None = None,
) -> list[Reply]:
    """Generate with grupo's engine.

    Args:
        model: the model.
        request: the batch.
        context_tokens: the most tokens in its KV cache.
        static_decoding: decode steps of fixed shapes. Default: shapes follow the rows.
    """
    hf_attention.switch_to_packed_attention(model)
    tokenizer: Any = None  # needed for stop strings only
    head = LMHead(model.get_output_embeddings())
    stop = StopConditions(request.new_tokens, ())
    engine: Any = PackedEvaluator(HFBackend(model)).engine(head, tokenizer, stop)
    limits = MemoryLimits(context_tokens)
    local_engine = replace(engine.engine, limits=limits, static_decoding=static_decoding)
    return generate_all(replace(engine, engine=local_engine), request.requests)


def time_engine(
    model: PreTrainedModel, request: SamplingRequest, context_tokens: int = CONTEXT_TOKENS
) -> SamplingTime:
    """Time grupo's engine."""
    return _time_prefill_and_decode(
        lambda n: engine_replies(model, replace(request, new_tokens=n), context_tokens),
        request.new_tokens,
    )


def time_captured(model: PreTrainedModel, request: SamplingRequest) -> SamplingTime:
    """Time grupo's engine with captured decode steps; the time of the captures is included."""
    switch = capture_switch_for(HFBackend(model))

    def generate(new: int) -> list[Reply]:
        static = StaticDecoding(switch)
        return engine_replies(model, replace(request, new_tokens=new), static_decoding=static)

    duration = _time_prefill_and_decode(generate, request.new_tokens)
    return replace(duration, note=switch.failure if switch else "not captured")


def time_generate(model: PreTrainedModel, request: SamplingRequest, **options: Any) -> SamplingTime:
    """Time `generate` of transformers without compilation."""
    generate = _generate_function(model, request, {"disable_compile": True, **options})
    return _time_prefill_and_decode(generate, request.new_tokens)


def time_compiled_generate(model: PreTrainedModel, request: SamplingRequest) -> SamplingTime:
    """Time `generate` of transformers with a static cache, compiled."""
    static = {"cache_implementation": "static"}
    prefill_seconds = time_once(
        lambda: _generate_function(model, request, {**static, "disable_compile": True})(1)
    )
    generate = _generate_function(model, request, static)
    first_seconds = time_once(lambda: generate(request.new_tokens))
    decode_seconds = time_once(lambda: generate(request.new_tokens)) - prefill_seconds
    return SamplingTime(prefill_seconds, decode_seconds, f"first call {first_seconds:.1f} s")


def _generate_function(
    model: PreTrainedModel, sampling_request: SamplingRequest, options: Mapping[str, Any]
) -> Callable[[int], Any]:
    model.set_attn_implementation("sdpa")
    token = torch.tensor([request.tokens for request in sampling_request.requests], device=DEVICE)
    sampling = {"do_sample": True, "top_k": 0, "eos_token_id": None, "pad_token_id": 0}
    mask = torch.ones_like(token)

    def generate(new: int) -> None:
        config = GenerationConfig(**sampling, **options, max_new_tokens=new)
        sequences = model.generate(token, attention_mask=mask, generation_config=config)
        assert sequences.shape == (len(token), token.shape[1] + new), "an answer is incomplete"

    return generate


def _time_prefill_and_decode(generate: Callable[[int], Any], new: int) -> SamplingTime:
    generate(2)  # warm up
    prefill_seconds = time_once(lambda: generate(1))
    return SamplingTime(prefill_seconds, time_once(lambda: generate(new)) - prefill_seconds)


SAMPLING_FUNCTIONS: dict[str, SamplingFunction] = {
    "grupo": time_engine,
    "grupo, captured steps": time_captured,
    "generate, dynamic cache": time_generate,
    "generate, static cache": partial(time_generate, cache_implementation="static"),
    f"grupo, at most {MAX_CONTEXT_TOKENS:,} tokens of context": partial(
        time_engine, context_tokens=MAX_CONTEXT_TOKENS
    ),
    "generate, static cache, compiled": time_compiled_generate,
}


def measure_sampling(
    sampling_function: SamplingFunction, request: SamplingRequest, bandwidth: float
) -> dict[str, Any]:
    """Measure speed, its fraction of the bandwidth bound, and peak memory."""
    model = random_model(request.shape)
    reset_peak_memory()
    duration = sampling_function(model, request)
    prefill, decode = duration.prefill_seconds, duration.decode_seconds
    steps = request.new_tokens - 1
    shared_bound = decode_seconds_bound(model, request, request.prompts, bandwidth)
    separate_bound = decode_seconds_bound(model, request, request.batch_size, bandwidth)
    return {
        "tokens/s": request.batch_size * request.new_tokens / (prefill + decode),
        "decode, tokens/s": request.batch_size * steps / decode,
        "ms per step": 1000 * decode / steps,
        "first token, s": prefill,
        "of bound, shared prompts": shared_bound / decode,
        "of bound, a prompt per row": separate_bound / decode,
        "peak GiB": peak_memory_gib(),
        "note": duration.note,
    }


def decode_seconds_bound(
    model: PreTrainedModel, request: SamplingRequest, prompt_copies: int, bandwidth: float
) -> float:
    """Return the least decode seconds if `prompt_copies` prompts are read per step."""
    shape = request.shape
    steps = request.new_tokens - 1
    weights = 2 * sum(parameter_counts(model))
    cell_bytes = 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim  # key and value, bfloat16
    prompt_cells = prompt_copies * request.prompt_length * steps
    answer_cells = request.batch_size * steps * (steps + 1) // 2
    return (steps * weights + cell_bytes * (prompt_cells + answer_cells)) / bandwidth
