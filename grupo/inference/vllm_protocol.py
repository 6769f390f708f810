"""The protocol with a vLLM server: request bodies, checks of replies, calls of workers."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.engine_errors import TransientServerError
from grupo.inference.http_client import HTTPClient, JsonBody
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm_command import LOGPROBS_MODE
from grupo.inference.vllm_worker.extension import EXTENSION_VERSION
from grupo.inference.weight_transfer import PublishedWeights
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

MIN_TEMPERATURE = 0.01  # vLLM raises lower temperatures to this value
MIN_LOGP = -9999.0  # vLLM's log-probability of impossible tokens
MAX_LIKELIEST = 20  # default of a server's --max-logprobs
LOGP_TOLERANCE = 1e-3  # rounding may raise a log-probability above 0 by this much


def check_sampling(sampling: Sampling) -> None:
    """Raises ConfigError for parameters with which vLLM samples from another distribution."""
    if sampling.top_p < 1 and sampling.min_p > 0:
        raise ConfigError(
            f"sampling: {sampling!r}. vLLM truncates by min_p before top_p, grupo after."
            " Allowed with Vllm: one of them."
        )
    if sampling.temperature < MIN_TEMPERATURE:
        raise ConfigError(
            f"temperature: {sampling.temperature}. Allowed with Vllm: {MIN_TEMPERATURE} or more."
        )


def check_num_likeliest(requests: Sequence[Request]) -> None:
    """Raises ConfigError if a server may refuse the number of likeliest tokens of a request."""
    most = max((request.num_likeliest for request in requests), default=0)
    if most > MAX_LIKELIEST:
        raise ConfigError(
            f"turn_strategy: it reads the {most} likeliest next tokens. Allowed with Vllm: at most"
            f" {MAX_LIKELIEST}, the default of the server's --max-logprobs."
        )


def check_facts(facts: Mapping[str, str], dtype: str, url: str) -> None:
    """Raises ConfigError if a worker's facts show that the server computes differently."""
    expected = {
        "extension": EXTENSION_VERSION,
        "dtype": dtype,
        "logprobs": LOGPROBS_MODE,
        "unsupported": "",
    }
    for name, value in expected.items():
        if facts.get(name) != value:
            problem = f"{name} is {facts.get(name)!r}, expected {value!r}"
            raise ConfigError(f"vllm at {url}: {problem}; docs/vllm.md explains how to start it.")


def check_place(facts: Mapping[str, str], place: str, url: str) -> None:
    """Raises ConfigError for a worker that cannot open the memory of this process."""
    if facts["place"] != place:
        raise ConfigError(
            f"weight_transfer: 'ipc'. A worker of vllm at {url} is on {facts['place']}, and the"
            f" policy on {place}. Allowed on different devices: file or gloo or nccl."
        )


def request_body(
    request: Request, stop_conditions: StopConditions, weights: PublishedWeights
) -> dict[str, Any]:
    """The body of a completion request, which names the adapter if the weights are one.

    The seed depends on the rollout's key and the length of the prompt, so that two turns of one
    rollout get different random numbers. The version of the weights salts vLLM's prefix cache, so
    that prefixes computed with other weights are not reused.
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
        # explicit, because the model's generation config may set other defaults
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "ignore_eos": True,  # only stop_token_ids end an answer
        "stop_token_ids": list(stop_conditions.eos_token_ids),
        "stop": list(stop_conditions.for_request(request).stop_strings),
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "add_special_tokens": False,
        "logprobs": request.num_likeliest,  # 0: of the sampled token alone
        "return_tokens_as_token_ids": True,
        "cache_salt": weights.version or "none",
        **({"model": weights.adapter} if weights.adapter else {}),
    }


async def request_completion(client: HTTPClient, body: JsonBody) -> Reply:
    """Sends a body and returns the reply; raises TransientServerError if it is invalid."""
    content = await client("/v1/completions", body)
    try:
        (choice,) = content["choices"]
        tokens = tuple(int(t.removeprefix("token_id:")) for t in choice["logprobs"]["tokens"])
        logp = tuple(float(p) for p in choice["logprobs"]["token_logprobs"])
        ended = tokens[-1] in body["stop_token_ids"]
        reply = Reply(tokens, logp, "end" if ended else str(choice["finish_reason"]))
        request_id = content["id"].removeprefix("cmpl-")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise TransientServerError(f"{client.name} returned no completion ({cause})") from error
    errors = _reply_errors(reply, body)
    if request_id != body["request_id"]:
        errors.insert(0, f"it belongs to request {request_id}, not {body['request_id']}")
    if errors:
        raise TransientServerError(f"{client.name} returned an invalid completion ({errors[0]})")
    return _likeliest(client, choice, body["logprobs"]) if body["logprobs"] else reply


def _likeliest(client: HTTPClient, choice: JsonBody, count: int) -> Reply:
    """The likeliest first tokens of a completion; the server adds the one that it sampled."""
    tops = choice["logprobs"].get("top_logprobs")
    if not tops:
        raise ConfigError(
            f"turn_strategy: {client.name} returned no log-probabilities of the likeliest tokens."
            " Allowed: a server whose completions have top_logprobs, as vLLM's do."
        )
    pairs = [(int(name.removeprefix("token_id:")), float(p)) for name, p in tops[0].items()]
    possible = sorted((-p, token) for token, p in pairs if p > MIN_LOGP)[:count]
    return Reply(
        logp=tuple(-p for p, _ in possible), next_tokens=tuple(token for _, token in possible)
    )


def _reply_errors(reply: Reply, body: JsonBody) -> list[str]:
    """The violations of the protocol in a reply to this body."""
    count = len(reply.tokens)
    limit = body["max_tokens"]
    reason = reply.finish_reason
    eos = body["stop_token_ids"]
    bad_reason = reason not in _allowed_finish_reasons(body, reply.tokens)
    bad_logp = not all(MIN_LOGP < p <= LOGP_TOLERANCE for p in reply.logp)
    rules = {
        f"{count} tokens have {len(reply.logp)} log-probabilities": count != len(reply.logp),
        f"{count} tokens, more than the limit of {limit}": count > limit,
        "tokens follow a stop token": any(token in eos for token in reply.tokens[:-1]),
        f"it ended with {reason!r} after {count} of {limit} tokens": bad_reason,
        "a log-probability is out of range": bad_logp,
    }
    return [message for message, violated in rules.items() if violated]


def _allowed_finish_reasons(body: JsonBody, tokens: tuple[int, ...]) -> tuple[str, ...]:
    """The finish reasons that are possible for an answer."""
    full = ("length",) if len(tokens) == body["max_tokens"] else ()
    return ("end", *(("stop",) if body["stop"] else ()), *full)


async def call_workers(client: HTTPClient, call: JsonBody) -> Sequence[Mapping[str, Any]]:
    """Calls a method of `vllm_worker` on every worker; returns the workers' results.

    Args:
        client: a connection to the server.
        call: the name of the method under "method", its arguments under "args".
    """
    content = await client("/collective_rpc", call)
    results = content.get("results") if isinstance(content, dict) else None
    if not results or not all(isinstance(result, dict) for result in results):
        raise TransientServerError(f"{client.name} returned no worker results ({content!r:.80})")
    return results


async def post_empty(client: HTTPClient, body: JsonBody) -> None:
    """Posts an empty body to the path under "path"."""
    await client(body["path"], {})


async def loaded_adapters(client: HTTPClient, _: JsonBody) -> list[str]:
    """Names of the adapters that requests can name."""
    content = await client("/v1/models")
    models = content.get("data") if isinstance(content, dict) else None
    if not isinstance(models, list):
        raise TransientServerError(f"{client.name} returned no models ({content!r:.80})")
    return [model["id"] for model in models if model.get("parent")]


async def load_adapter(client: HTTPClient, body: JsonBody) -> None:
    """Lets requests name the adapter of the version under "version", and no other one.

    The workers have it in memory already, and take it from there by its name.
    """
    for name in await loaded_adapters(client, body):
        await client.post_text("/v1/unload_lora_adapter", {"lora_name": name})
    version = body["version"]
    await client.post_text("/v1/load_lora_adapter", {"lora_name": version, "lora_path": version})
