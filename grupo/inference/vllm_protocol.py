"""What a vLLM server is asked, what it may answer, and how weights are handed to it."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from grupo.core.errors import Refused
from grupo.core.rng import derive
from grupo.inference.base import Bounds, Reply, Request
from grupo.inference.http_client import Body, Fault, Wire
from grupo.inference.sampling_params import Sampling
from grupo.storage import safetensors

MODE = "processed_logprobs"  # of what is sampled from: after temperature and cuts
COLDEST = 0.01  # vLLM raises lower temperatures to this one
LEAST = -9999.0  # how vLLM writes the log-probability of what cannot be
ROUNDING = 1e-3  # what a log-probability may lie above 0


def check_sampling(sampling: Sampling) -> None:
    """Refuse what vLLM would sample otherwise than we do."""
    if sampling.top_p < 1 and sampling.min_p > 0:
        raise Refused(
            f"sampling: {sampling!r}. vLLM cuts by min_p before top_p, we after."
            " Allowed with Vllm: one of them."
        )
    if sampling.temperature < COLDEST:
        raise Refused(f"temperature: {sampling.temperature}. Allowed with Vllm: {COLDEST} or more.")


def check_facts(facts: Mapping[str, str], dtype: str, url: str) -> None:
    """Refuse a server that computes otherwise than it is to, as one of its workers tells."""
    wanted = {"dtype": dtype, "logprobs": MODE, "trouble": ""}
    for name, value in wanted.items():
        if facts.get(name) != value:
            said = f"{name} {facts.get(name)!r}. Wanted: {value!r}"
            raise Refused(f"vllm at {url} has {said}; docs/vllm.md says how to start it.")


def asked(request: Request, bounds: Bounds, version: str) -> dict[str, Any]:
    """A request as the server reads it.

    The seed is that of the key and the place, so that two turns of one rollout draw other numbers.
    What was read with other weights is salted otherwise: no prefix is taken over from them.
    """
    sampling = request.sampling
    return {
        "request_id": uuid4().hex,
        "prompt": list(request.tokens),
        "max_tokens": bounds.room(request),
        "seed": derive(request.key, len(request.tokens)),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": 0.0,  # said, lest a generation config of the model say something else
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,  # what ends an answer are these tokens alone
        "stop_token_ids": list(bounds.ends),
        "stop": list(bounds.of(request).stop),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "add_special_tokens": False,
        "logprobs": 0,  # of what was drawn, and of no other token
        "return_tokens_as_token_ids": True,
        "cache_salt": version or "none",
    }


def complete(wire: Wire, body: Body) -> Reply:
    """The reply to a body; a `Fault` where what is said cannot be one."""
    said = wire("/v1/completions", body)
    try:
        (choice,) = said["choices"]
        tokens = tuple(int(t.removeprefix("token_id:")) for t in choice["logprobs"]["tokens"])
        logp = tuple(float(p) for p in choice["logprobs"]["token_logprobs"])
        ended = tokens[-1] in body["stop_token_ids"]
        reply = Reply(tokens, logp, "end" if ended else str(choice["finish_reason"]))
        number = said["id"].removeprefix("cmpl-")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise Fault(f"{wire.name} says what is no answer ({why})") from error
    if number != body["request_id"]:
        other = f"it answers request {number} to {body['request_id']}"
        raise Fault(f"{wire.name} says what cannot be ({other})")
    for wrong in _wrong(reply, body):
        raise Fault(f"{wire.name} says what cannot be ({wrong})")
    return reply


def _wrong(reply: Reply, body: Body) -> list[str]:
    """What cannot be of a reply to this body."""
    said, room, why = len(reply.tokens), body["max_tokens"], reply.stopped
    ends, impossible = body["stop_token_ids"], why not in _reasons(body, reply.tokens)
    rules = {
        f"{said} tokens have {len(reply.logp)} log-probabilities": said != len(reply.logp),
        f"{said} tokens where there is room for {room}": said > room,
        "tokens after one that ends an answer": any(t in ends for t in reply.tokens[:-1]),
        f"it ended for {why!r} after {said} of {room} tokens": impossible,
        "a log-probability that is none": not all(LEAST < p <= ROUNDING for p in reply.logp),
    }
    return [what for what, true in rules.items() if true]


def _reasons(body: Body, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """Why an answer may have ended."""
    full = ("length",) if len(tokens) == body["max_tokens"] else ()
    return ("end", *(("stop",) if body["stop"] else ()), *full)


def call(wire: Wire, method: str, *args: str) -> Sequence[Mapping[str, Any]]:
    """What every worker of the server answers to a call of `vllm_worker`."""
    said = wire("/collective_rpc", {"method": method, "args": args})
    results = said.get("results") if isinstance(said, dict) else None
    if not results or not all(isinstance(result, dict) for result in results):
        raise Fault(f"{wire.name} says nothing of its workers ({said!r:.80})")
    return results


def write(weights: Mapping[str, Tensor], dtype: torch.dtype, file: Path) -> str:
    """Write weights where the server reads them; the checksum it must find."""
    tensors = {name: _plain(tensor, dtype) for name, tensor in weights.items()}
    safetensors.check(tensors, "weights")
    file.unlink(missing_ok=True)  # before there are two of them
    with file.open("wb") as opened:
        opened.writelines(safetensors.chunks(tensors))
    return checksum(tensors)


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """Of names, dtypes, shapes and bytes, in alphabetical order."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        kind = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name} {kind} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    kept = dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to("cpu", kept).contiguous()
