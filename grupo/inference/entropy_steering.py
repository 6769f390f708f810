"""Generation steered by entropy: gradient steps move values of the cache while a model answers.

V-Reason, Sridhar et al., 2025, arXiv:2510.17045.
"""

from dataclasses import dataclass, field
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from grupo.core.decoding import EntropySteering
from grupo.inference.base import Reply, Request
from grupo.inference.read_prompt import PromptReader, ReadPrompt
from grupo.kernels.log_softmax import at_least_float32
from grupo.kernels.shared_decode_state import SharedDecodeState
from grupo.util.rng import uniform


@dataclass
class EntropySwitch:
    """The direction in which the entropy is moved: up while its moving average has a new maximum.

    Args:
        decay: Decay of the moving average.
        mean: The moving average, in nats, which begins with the first entropy; None before it.
        peak: Its maximum so far.

    >>> direction = EntropySwitch(decay=0.5)
    >>> [direction(entropy) for entropy in (2.0, 4.0, 1.0, 3.0, 9.0)]  # means 2, 3, 2, 2.5, 5.75
    [1.0, 1.0, -1.0, -1.0, 1.0]
    """

    decay: float
    mean: float | None = None
    peak: float = -inf

    def __call__(self, entropy: float) -> float:
        """1 if the average reaches a new maximum with this entropy, otherwise -1."""
        before = entropy if self.mean is None else self.mean
        self.mean = self.decay * before + (1 - self.decay) * entropy
        rises = self.mean >= self.peak
        self.peak = max(self.peak, self.mean)
        return 1.0 if rises else -1.0


def entropy_of(logits: Float[Tensor, "1 V"]) -> Float[Tensor, ""]:
    """Entropy of the next token in nats, at temperature 1 and without truncation."""
    logp = at_least_float32(logits).log_softmax(-1)
    return -(logp.exp() * logp).sum()


@dataclass
class SteeredAnswer:
    """An answer whose cached values are moved while it is generated.

    Args:
        prompt: The prompt.
        steering: How often, how far and in which direction the values are moved.
        state: Keys and values of the prompt and the answer.
        tokens: The tokens generated so far.
        logp: Their log-probabilities, in nats.
        entropy: Entropies of the distributions that they are sampled from, in nats.
        num_steps: Number of gradient steps so far.
    """

    prompt: ReadPrompt
    steering: EntropySteering
    state: SharedDecodeState
    tokens: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    num_steps: int = 0

    def __post_init__(self) -> None:
        layer = self.prompt.last_layer
        values = at_least_float32(self.state.prompt_values(layer))
        self.offset = torch.zeros_like(values).requires_grad_()
        self.state.value_offsets[layer] = self.offset
        self.optimizer = torch.optim.Adam([self.offset], lr=self.steering.learning_rate)
        self.direction = EntropySwitch(self.steering.decay)

    def sample(self, logits: Float[Tensor, "1 V"]) -> None:
        """Samples the next token."""
        request = self.prompt.request
        key = torch.tensor([request.rng_key], device=logits.device)
        u = uniform(key, torch.tensor([len(request.tokens) + len(self.tokens)]).to(key))
        token, logp = request.sampling.sample(logits, u)
        self.tokens.append(int(token))
        self.logp.append(float(logp))
        self.entropy.append(entropy_of(logits).item())

    def next_logits(self) -> Float[Tensor, "1 V"]:
        """Logits behind the newest token; at every few tokens the offset is updated before."""
        position = len(self.prompt.request.tokens) + len(self.tokens) - 1
        self.state.append(torch.tensor([position], device=self.prompt.slots.device))
        updates = len(self.tokens) % self.steering.every == 0
        with torch.set_grad_enabled(updates):
            logits = self.prompt.evaluate(self.tokens[-1:], self.state)
            entropy = entropy_of(logits)
            direction = self.direction(entropy.item())
            for _ in range(self.steering.steps if updates else 0):
                (gradient,) = torch.autograd.grad(entropy, [self.offset])
                self.offset.grad = -direction * gradient
                self.optimizer.step()
                self.num_steps += 1
                logits = self.prompt.evaluate(self.tokens[-1:], self.state)
                entropy = entropy_of(logits)
        return logits.detach()


def decode_steered(reader: PromptReader, request: Request, steering: EntropySteering) -> Reply:
    """The answer to a request, of whose tokens all but the first one are steered."""
    limit = reader.stop_conditions.remaining_tokens(request)
    prompt = ReadPrompt.of(reader, request)
    checker = prompt.stop_checker
    answer = SteeredAnswer(prompt, steering, prompt.decode_state(limit))
    logits, reason = prompt.logits, ""
    while not reason:
        answer.sample(logits)
        (reason,) = checker.finish_reasons([answer.tokens])
        if not reason and len(answer.tokens) >= limit:
            reason = "length"
        if not reason:
            logits = answer.next_logits()
    return Reply(
        tuple(answer.tokens),
        tuple(answer.logp),
        reason,
        entropy=tuple(answer.entropy),
        num_cached=prompt.num_cached,
        gradient_steps=answer.num_steps,
    )
