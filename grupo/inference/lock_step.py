"""Lock-step generation: continuations of one prompt, each of which reads all of them.

Group Think, Hsu et al., 2025, arXiv:2505.11107.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.decoding import LockStep
from grupo.inference.base import Reply, Request
from grupo.inference.read_prompt import PromptReader, ReadPrompt
from grupo.kernels.packing.hf_attention import text_decoder
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key, uniform


@dataclass
class _Continuation:
    """A continuation so far.

    Args:
        start: Its given tokens.
        rng_key: Key of its random stream.
        first_position: Position of its first token.
        tokens: The tokens generated so far.
        logp: Their log-probabilities, in nats.
        finish_reason: Why it has ended; "" if it has not.
    """

    start: tuple[int, ...]
    rng_key: int
    first_position: int
    tokens: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    finish_reason: str = ""

    def newest_token(self, step: int) -> int:
        """The token of a step, from 0, which is given or generated."""
        return self.start[step] if step < len(self.start) else self.tokens[-1]


def decode_in_lock_step(reader: PromptReader, request: Request, decoding: LockStep) -> Reply:
    """The continuations of a request, one after the other; empty if the context has no room.

    Blocks are as long as the longest start and the most tokens that a continuation may generate, so
    that the first continuation has the positions of an ordinary answer. Alone it has its tokens,
    too: the first random stream is that of the request. The last token of a continuation that has
    ended is not evaluated, as in ordinary decoding, and the others do not read it.

    Raises:
        ConfigError: The positions of the model are not rotary: tokens of other blocks would have
            no distance.
    """
    model = reader.backend.model
    if not hasattr(text_decoder(model), "rotary_emb"):
        raise ConfigError(
            f"turn_strategy: its thinkers have blocks of positions, and those of"
            f" {type(model).__name__} are not rotary. Allowed: a model with rotary positions, such"
            " as Llama or Qwen."
        )
    starts = decoding.starts
    longest = max(map(len, starts))
    room = (reader.stop_conditions.context_length - len(request.tokens)) // len(starts) - longest
    limit = min(reader.stop_conditions.remaining_tokens(request), room)
    if limit <= 0:
        return Reply()
    block = longest + limit
    first = len(request.tokens)
    keys = (derive_key(request.rng_key, "continuation", i) for i in range(1, len(starts)))
    continuations = [
        _Continuation(start, key, first + i * block)
        for i, (start, key) in enumerate(zip(starts, (request.rng_key, *keys), strict=True))
    ]
    prompt = ReadPrompt.of(reader, request)
    _generate(prompt, continuations, limit)
    return Reply(
        tuple(token for c in continuations for token in c.tokens),
        tuple(logp for c in continuations for logp in c.logp),
        continuations[-1].finish_reason,
        num_cached=prompt.num_cached,
        continuations=tuple((len(c.tokens), c.finish_reason) for c in continuations),
    )


def _generate(prompt: ReadPrompt, continuations: list[_Continuation], limit: int) -> None:
    """Generates all continuations, of at most `limit` tokens each."""
    checker = prompt.stop_checker
    state = prompt.decode_state(sum(len(c.start) + limit for c in continuations))
    logits = prompt.logits.expand(len(continuations), -1)
    step, active = 0, continuations
    while True:
        rows = [i for i, continuation in enumerate(active) if step >= len(continuation.start)]
        if rows:
            writing = [active[i] for i in rows]
            _sample(prompt, writing, logits[rows])
            reasons = checker.finish_reasons([continuation.tokens for continuation in writing])
            for continuation, reason in zip(writing, reasons, strict=True):
                is_full = len(continuation.tokens) == limit
                continuation.finish_reason = reason or "length" * is_full
        active = [continuation for continuation in active if not continuation.finish_reason]
        if not active:
            return
        position = [continuation.first_position + step for continuation in active]
        state.append(torch.tensor(position, device=prompt.slots.device))
        logits = prompt.evaluate([c.newest_token(step) for c in active], state)
        step += 1


def _sample(
    prompt: ReadPrompt, continuations: Sequence[_Continuation], logits: Float[Tensor, "R V"]
) -> None:
    """Samples the next token of some continuations."""
    request = prompt.request
    key = torch.tensor([c.rng_key for c in continuations], device=logits.device)
    num_generated = torch.tensor([len(c.tokens) for c in continuations], device=logits.device)
    u = uniform(key, len(request.tokens) + num_generated)
    token, logp = request.sampling.sample(logits, u)
    rows = zip(continuations, token.tolist(), logp.tolist(), strict=True)
    for continuation, new_token, new_logp in rows:
        continuation.tokens.append(new_token)
        continuation.logp.append(new_logp)
