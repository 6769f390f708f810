"""A causal language model that replies to conversations and is not trained."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from threading import Lock

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.types import Rollout
from grupo.core.validation import check_context_room
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.sampling_params import Sampling
from grupo.kernels.lm_head import lm_head_of
from grupo.models import devices, loading
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.config_file import check_config_file
from grupo.models.evaluator import evaluator_for
from grupo.models.quiet_loading import quiet_transformers
from grupo.rewards.judges.base import ChatReply, Conversation, JudgeError, ReplyOrError
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

_EXAMPLE: Conversation = ({"role": "user", "content": "?"},)


class FrozenModel:
    """A loaded model; raises `ConfigError` if it does not load or has no chat template.

    Args:
        name: Folder or hub name.
        device: Where the model lives.
        dtype: Type of its weights and computations.
        sampling: The distribution that replies are sampled from.
        max_tokens: Token limit of a reply.
        allow_pickle: Also read weights from a pickle.
    """

    def __init__(
        self,
        name: str,
        device: torch.device,
        *,
        dtype: torch.dtype,
        sampling: Sampling,
        max_tokens: int,
        allow_pickle: bool,
    ) -> None:
        self.name = name
        self.sampling = sampling
        check_config_file(name)
        self.model, tokenizer = loading.load(name, dtype, device, allow_pickle=allow_pickle)
        self.model.requires_grad_(False)
        self.chat_tokenizer = _chat_tokenizer(name, self.model, tokenizer)
        context_length = loading.context_length_of(self.model.config)
        check_context_room(max_tokens, context_length)
        self.stop_conditions = StopConditions(
            max_tokens, self.chat_tokenizer.eos_token_ids, context_length=context_length
        )
        with quiet_transformers():
            self.lm_head = lm_head_of(self.model)
            self.evaluator = evaluator_for(self.model, dtype)

    @torch.no_grad()
    def replies(self, conversations: Sequence[Conversation]) -> Sequence[ReplyOrError]:
        """The reply to each conversation; all are one batch with a prefix cache of its own."""
        requests = [self._request(messages) for messages in conversations]
        tokenizer = self.chat_tokenizer.tokenizer
        engine = self.evaluator.engine(self.lm_head, tokenizer, self.stop_conditions)
        replies = generate_all(engine, requests)
        return [self._reply(*pair) for pair in zip(requests, replies, strict=True)]

    @torch.no_grad()
    def reply_logprobs(
        self, conversations: Sequence[Conversation], replies: Sequence[str]
    ) -> Sequence[Sequence[float] | JudgeError]:
        """The log-probability of each given reply to each conversation, at temperature 1.

        An error takes the place of a conversation whose context has no room for the replies.
        """
        given = [self.chat_tokenizer.encode_forced(reply) for reply in replies]
        contexts = [self._request(messages) for messages in conversations]
        longest = self.stop_conditions.context_length - max(map(len, given))
        fitting = [request for request in contexts if len(request.tokens) <= longest]
        requests = [
            Request((*request.tokens, *tokens), request.rng_key, Sampling(), num_scored=len(tokens))
            for request in fitting
            for tokens in given
        ]
        engine = self.evaluator.engine(
            self.lm_head, self.chat_tokenizer.tokenizer, self.stop_conditions
        )
        sums = iter([sum(reply.logp) for reply in generate_all(engine, requests)])
        return [
            [next(sums) for _ in given]
            if len(request.tokens) <= longest
            else self._too_long(request)
            for request in contexts
        ]

    def _request(self, messages: Conversation) -> Request:
        digest = hashlib.sha256(json.dumps([dict(m) for m in messages]).encode()).hexdigest()
        tokens = self.chat_tokenizer.encode_observation(Rollout(), messages)
        return Request(tokens, derive_key(0, "judge", digest), self.sampling)

    def _reply(self, request: Request, reply: Reply) -> ReplyOrError:
        room = self.stop_conditions.context_length - len(request.tokens)
        if room < 1:
            return self._too_long(request)
        text = self.chat_tokenizer.decode(reply.tokens)
        reason = "length" if reply.finish_reason == "length" else "stop"
        return ChatReply(text, reason, len(request.tokens), len(reply.tokens))

    def _too_long(self, request: Request) -> JudgeError:
        return JudgeError(
            f"the judge {self.name!r} has a context of {self.stop_conditions.context_length}"
            f" tokens; the conversation has {len(request.tokens)}"
        )


def _chat_tokenizer(
    name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> ChatTokenizer:
    """Raise `ConfigError` if replies would not end, or there is no chat template."""
    eos_token_ids = loading.eos_token_ids(model.generation_config, tokenizer)
    if not eos_token_ids:
        raise ConfigError(f"model: {name!r} has no end token, so that no reply ends.")
    chat_tokenizer = ChatTokenizer(tokenizer, eos_token_ids)
    chat_tokenizer.encode_observation(Rollout(), _EXAMPLE)
    return chat_tokenizer


_lock = Lock()


def load_frozen(
    name: str, dtype: str, device: str, *, temperature: float, max_tokens: int, allow_pickle: bool
) -> FrozenModel:
    """The model with these settings, loaded at the first call and then shared.

    Args:
        name: Folder or hub name.
        dtype: Type of weights and computations; float32 where the device would emulate it.
        device: Name of the device, or "auto".
        temperature: Sampling temperature; 0 is greedy.
        max_tokens: Token limit of a reply.
        allow_pickle: Also read weights from a pickle.
    """
    resolved = devices.resolve_device(device)
    sampling = Sampling(temperature) if temperature else Sampling(top_k=1)
    compute_dtype = devices.compute_dtype(dtype, resolved)
    with _lock:
        return _load_cached(name, resolved, compute_dtype, sampling, max_tokens, allow_pickle)


@cache
def _load_cached(
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    sampling: Sampling,
    max_tokens: int,
    allow_pickle: bool,
) -> FrozenModel:
    return FrozenModel(
        name,
        device,
        dtype=dtype,
        sampling=sampling,
        max_tokens=max_tokens,
        allow_pickle=allow_pickle,
    )
