"""Sampling on a GPU: tokens a second of every way, against what reading memory allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from benchmarks.gpu_machine import (
    DEVICE,
    drawn_prompts,
    forget_peak,
    model_of,
    once,
    parameters,
    peak,
)
from benchmarks.gpu_replay import Replayed
from benchmarks.gpu_sizes import Shape
from grupo.inference.base import Bounds, Reply, Request, answers
from grupo.inference.local import CELLS
from grupo.kernels.backend import Modules
from grupo.kernels.lm_head import Head
from grupo.kernels.packing import hf_attention
from grupo.models.evaluator import Packed

ROOM = 1 << 21  # tokens of context: everybody together


@dataclass(frozen=True)
class Asked:
    """Prompts, each answered by so many rows of so many tokens."""

    shape: Shape
    prompts: int
    rows: int  # for each prompt
    length: int  # of a prompt
    new: int
    stride: int

    @property
    def requests(self) -> list[Request]:
        """Those of one prompt beside each other."""
        prompts = drawn_prompts(self.shape, self.prompts, self.length)
        each = [p for p in prompts for _ in range(self.rows)]
        return [Request(prompt, 1000 + i) for i, prompt in enumerate(each)]

    @property
    def batch(self) -> int:
        """Rows."""
        return self.prompts * self.rows


@dataclass(frozen=True)
class Spent:
    """Seconds until the first token of every row, and of all that follow."""

    reading: float
    saying: float
    note: str = ""


Way = Callable[[PreTrainedModel, Asked], Spent]


def said_by_engine(model: PreTrainedModel, asked: Asked, cells: int = ROOM) -> list[Reply]:
    """Every reply of grupo's engine, which holds so many tokens of context at once."""
    model.set_attn_implementation(hf_attention.NAME)
    nothing: Any = None  # a tokenizer is asked for texts that end an answer only
    head, bounds = Head(model.get_output_embeddings()), Bounds(asked.new, ())
    engine: Any = Packed(Modules(model)).engine(head, nothing, bounds)
    return answers(replace(engine, cells=cells), asked.requests)


def by_engine(model: PreTrainedModel, asked: Asked, cells: int = ROOM) -> Spent:
    """grupo's engine."""
    return _difference(lambda n: said_by_engine(model, replace(asked, new=n), cells), asked.new)


def by_graphs(model: PreTrainedModel, asked: Asked) -> Spent:
    """An experiment: the same with steps of fixed shapes, captured and replayed."""
    return _replayed(model, asked, lambda read: read)


def by_compiled_graphs(model: PreTrainedModel, asked: Asked) -> Spent:
    """An experiment: the same, the model compiled; one graph, for compiling takes long."""
    return _replayed(model, replace(asked, stride=asked.new), torch.compile)


def _replayed(model: PreTrainedModel, asked: Asked, made: Callable[..., Any]) -> Spent:
    model.set_attn_implementation(hf_attention.NAME)
    rows = Replayed(model, asked.requests, asked.new)
    rows.start()  # the first time takes longer
    reading = once(rows.start)
    ready = once(lambda: rows.prepare(asked.stride, made))
    return Spent(reading, once(rows.say), f"ready after {ready:.1f} s")


def by_generate(model: PreTrainedModel, asked: Asked, **more: Any) -> Spent:
    """`generate` of transformers, not compiled."""
    speak = _generating(model, asked, {"disable_compile": True, **more})
    return _difference(speak, asked.new)


def by_compiled_generate(model: PreTrainedModel, asked: Asked) -> Spent:
    """`generate` with a cache of fixed size, which it compiles for."""
    static = {"cache_implementation": "static"}
    reading = once(lambda: _generating(model, asked, {**static, "disable_compile": True})(1))
    speak = _generating(model, asked, static)
    first = once(lambda: speak(asked.new))
    return Spent(reading, once(lambda: speak(asked.new)) - reading, f"first time {first:.1f} s")


def _generating(
    model: PreTrainedModel, asked: Asked, more: Mapping[str, Any]
) -> Callable[[int], Any]:
    model.set_attn_implementation("sdpa")
    token = torch.tensor([request.tokens for request in asked.requests], device=DEVICE)
    drawn = {"do_sample": True, "top_k": 0, "eos_token_id": None, "pad_token_id": 0}
    everywhere = torch.ones_like(token)

    def speak(new: int) -> Any:
        config = GenerationConfig(**drawn, **more, max_new_tokens=new)
        said = model.generate(token, attention_mask=everywhere, generation_config=config)
        assert said.shape == (len(token), token.shape[1] + new), "everybody says all"

    return speak


def _difference(speak: Callable[[int], Any], new: int) -> Spent:
    speak(2)  # warm up
    reading = once(lambda: speak(1))
    return Spent(reading, once(lambda: speak(new)) - reading)


WAYS: dict[str, Way] = {
    "grupo": by_engine,
    "grupo, graphs (experiment)": by_graphs,
    "generate, dynamic cache": by_generate,
    "generate, static cache": lambda m, a: by_generate(m, a, cache_implementation="static"),
    f"grupo, at most {CELLS:,} tokens of context": lambda m, a: by_engine(m, a, CELLS),
    "grupo, compiled, a graph (experiment)": by_compiled_graphs,
    "generate, static cache, compiled": by_compiled_generate,
}


def measured(way: Way, asked: Asked, bandwidth: float) -> dict[str, Any]:
    """A row: how fast, and how far from reading every weight, key and value once a step."""
    model = model_of(asked.shape)
    forget_peak()
    spent = way(model, asked)
    steps = asked.new - 1
    return {
        "tokens/s": asked.batch * asked.new / (spent.reading + spent.saying),
        "saying, tokens/s": asked.batch * steps / spent.saying,
        "ms a step": 1000 * spent.saying / steps,
        "first token, s": spent.reading,
        "of bound, prompts shared": bound(model, asked, asked.prompts, bandwidth) / spent.saying,
        "of bound, each its own": bound(model, asked, asked.batch, bandwidth) / spent.saying,
        "peak GiB": peak(),
        "note": spent.note,
    }


def bound(model: PreTrainedModel, asked: Asked, trunks: int, bandwidth: float) -> float:
    """The seconds that saying takes at least, if so many prompts' keys and values are read."""
    shape, steps = asked.shape, asked.new - 1
    weights = 2 * sum(parameters(model))
    cell = 2 * 2 * shape.layers * shape.groups * shape.width  # keys, values, of two bytes each
    seen = trunks * asked.length * steps + asked.batch * steps * (steps + 1) // 2
    return (steps * weights + cell * seen) / bandwidth
