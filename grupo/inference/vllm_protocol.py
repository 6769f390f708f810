"""What a vLLM server is asked, what it may answer, and how weights are handed to it."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor

from grupo.core.errors import ConfigError
from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.http_client import HTTPClient, JsonBody, TransientServerError
from grupo.inference.sampling_params import Sampling
from grupo.storage import safetensors

LOGPROBS_MODE = "processed_logprobs"  # of what is sampled from: after temperature and cuts
MIN_TEMPERATURE = 0.01  # vLLM raises lower temperatures to this one
MIN_LOGP = -9999.0  # how vLLM writes the log-probability of what cannot be
LOGP_TOLERANCE = 1e-3  # what a log-probability may lie above 0


def check_sampling(sampling: Sampling) -> None:
    """Refuse what vLLM would sample otherwise than we do."""
    if sampling.top_p < 1 and sampling.min_p > 0:
        raise ConfigError(
            f"sampling: {sampling!r}. vLLM cuts by min_p before top_p, we after."
            " Allowed with Vllm: one of them."
        )
    if sampling.temperature < MIN_TEMPERATURE:
        raise ConfigError(
            f"temperature: {sampling.temperature}. Allowed with Vllm: {MIN_TEMPERATURE} or more."
        )


def check_facts(facts: Mapping[str, str], dtype: str, url: str) -> None:
    """Refuse a server that computes otherwise than it is to, as one of its workers tells."""
    wanted = {"dtype": dtype, "logprobs": LOGPROBS_MODE, "trouble": ""}
    for name, value in wanted.items():
        if facts.get(name) != value:
            said = f"{name} {facts.get(name)!r}. Wanted: {value!r}"
            raise ConfigError(f"vllm at {url} has {said}; docs/vllm.md says how to start it.")


def request_body(request: Request, stop_conditions: StopConditions, version: str) -> dict[str, Any]:
    """A request as the server reads it.

    The seed is that of the key and the place, so that two turns of one rollout draw other numbers.
    What was read with other weights is salted otherwise: no prefix is taken over from them.
    """
    sampling = request.sampling
    return {
        "request_id": uuid4().hex,
        "prompt": list(request.tokens),
        "max_tokens": stop_conditions.remaining_tokens(request),
        "seed": derive_key(request.rng_key, len(request.tokens)),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": 0.0,  # said, lest a generation config of the model say something else
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,  # what ends an answer are these tokens alone
        "stop_token_ids": list(stop_conditions.eos_token_ids),
        "stop": list(stop_conditions.for_request(request).stop_strings),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "add_special_tokens": False,
        "logprobs": 0,  # of what was drawn, and of no other token
        "return_tokens_as_token_ids": True,
        "cache_salt": version or "none",
    }


def request_completion(client: HTTPClient, body: JsonBody) -> Reply:
    """The reply to a body; a `TransientServerError` where what is said cannot be one."""
    said = client("/v1/completions", body)
    try:
        (choice,) = said["choices"]
        tokens = tuple(int(t.removeprefix("token_id:")) for t in choice["logprobs"]["tokens"])
        logp = tuple(float(p) for p in choice["logprobs"]["token_logprobs"])
        ended = tokens[-1] in body["stop_token_ids"]
        reply = Reply(tokens, logp, "end" if ended else str(choice["finish_reason"]))
        number = said["id"].removeprefix("cmpl-")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise TransientServerError(f"{client.name} says what is no answer ({why})") from error
    if number != body["request_id"]:
        other = f"it answers request {number} to {body['request_id']}"
        raise TransientServerError(f"{client.name} says what cannot be ({other})")
    for wrong in _reply_errors(reply, body):
        raise TransientServerError(f"{client.name} says what cannot be ({wrong})")
    return reply


def _reply_errors(reply: Reply, body: JsonBody) -> list[str]:
    """What cannot be of a reply to this body."""
    said, room, why = len(reply.tokens), body["max_tokens"], reply.finish_reason
    ends, impossible = (
        body["stop_token_ids"],
        why not in _allowed_finish_reasons(body, reply.tokens),
    )
    rules = {
        f"{said} tokens have {len(reply.logp)} log-probabilities": said != len(reply.logp),
        f"{said} tokens where there is room for {room}": said > room,
        "tokens after one that ends an answer": any(t in ends for t in reply.tokens[:-1]),
        f"it ended for {why!r} after {said} of {room} tokens": impossible,
        "a log-probability that is none": not all(
            MIN_LOGP < p <= LOGP_TOLERANCE for p in reply.logp
        ),
    }
    return [what for what, true in rules.items() if true]


def _allowed_finish_reasons(body: JsonBody, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """Why an answer may have ended."""
    full = ("length",) if len(tokens) == body["max_tokens"] else ()
    return ("end", *(("stop",) if body["stop"] else ()), *full)


def call_workers(client: HTTPClient, method: str, *args: str) -> Sequence[Mapping[str, Any]]:
    """What every worker of the server answers to a call of `vllm_worker`."""
    said = client("/collective_rpc", {"method": method, "args": args})
    results = said.get("results") if isinstance(said, dict) else None
    if not results or not all(isinstance(result, dict) for result in results):
        raise TransientServerError(f"{client.name} says nothing of its workers ({said!r:.80})")
    return results


def write_weights(weights: Mapping[str, Tensor], dtype: torch.dtype, file: Path) -> str:
    """Write weights where the server reads them; the checksum it must find."""
    tensors = {name: _to_cpu(tensor, dtype) for name, tensor in weights.items()}
    safetensors.check_tensors(tensors, "weights")
    file.unlink(missing_ok=True)  # before there are two of them
    with file.open("wb") as opened:
        opened.writelines(safetensors.file_chunks(tensors))
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


def _to_cpu(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    kept = dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to("cpu", kept).contiguous()
