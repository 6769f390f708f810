"""Causal language models that think softly before they answer: an action is a thought or a token.

SofT-GRPO, Zheng et al. (arXiv:2511.06411).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedTokenizerBase

from grupo.core.batch import Batch, Signals
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.types import Rollout
from grupo.core.validation import check, within
from grupo.inference import soft_tokens
from grupo.inference.base import Bounds, Engine
from grupo.inference.soft_thinking import Thinking
from grupo.inference.soft_tokens import Thoughts
from grupo.kernels import log_softmax
from grupo.kernels.lm_head import Head
from grupo.models import padding
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.context import context
from grupo.models.evaluator import Padded
from grupo.models.scorers import laid
from grupo.models.spec import OTHERS
from grupo.models.token_statistics import CHUNK, Spoken

SAID = {"logp", "entropy"}


@piece
class SoftLM:
    """A language model whose answers begin with soft thoughts; they count towards its limit."""

    base: CausalLM
    thoughts: Thoughts = Thoughts()

    @property
    def model(self) -> str:
        """The folder, or the name on a hub."""
        return self.base.model

    @property
    def signals(self) -> tuple[str, ...]:
        """What is said of an action."""
        return ("logp", "entropy")

    @property
    def others(self) -> tuple[str, ...]:
        """Who is always there to be compared with."""
        return OTHERS

    def check(self) -> None:
        """Refuse what a model that thinks softly cannot be."""
        self.base.check()
        check(within("thoughts.", self.thoughts.field_rules))
        for name in ("lora", "engine"):
            if value := getattr(self.base, name):
                why = "Allowed: None, soft thoughts go without."
                raise Refused(f"base.{name}: {value!r}. {why}")

    def build(self) -> "SoftPolicy":
        """Load the model and its tokenizer; raises `Refused` when they cannot be used."""
        self.check()
        return SoftPolicy(self)


@dataclass(frozen=True)
class Mixing(Padded):
    """Row by row, thoughts among the tokens."""

    thoughts: Thoughts

    def engine(self, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds) -> Engine:
        return Thinking(self.model, head, tokenizer, bounds, self.thoughts)

    @property
    def remark(self) -> str:
        return "Thoughts are soft: rows are read one by one, and slowly sampled."


class SoftPolicy(CausalPolicy):
    """A loaded model that thinks softly."""

    def __init__(self, soft: SoftLM) -> None:
        self.soft = soft
        super().__init__(soft.base)
        vocabulary = self.language.tokenizer.get_vocab()
        if soft.thoughts.end not in vocabulary:
            raise Refused(f"thoughts.end: {soft.thoughts.end!r} is no token of {soft.model!r}.")

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Rows as of any model, a thought by its likeliest token; what is mixed, (N, L, k)."""
        lines = [context(rollout) for rollout in rollouts]
        mixed, score = soft_tokens.lay(lines, self.soft.thoughts.kept)
        soft = torch.zeros(mixed.shape[:2], dtype=torch.bool)
        for number, row in enumerate(lines):
            soft[number, : len(row)] = torch.tensor([not isinstance(x, int) for x in row])
        return {
            **padding.extents(rollouts, [*map(len, lines)]),
            "token": mixed[..., 0],
            "mixed": mixed,
            "score": score,
            "soft": soft,
        }

    def spoken(self, batch: Batch) -> Spoken:
        raise Refused("others: a model that thinks softly can be compared with its reference only.")

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and `entropy` of every action, thoughts among them; what helpers say."""
        if lacking := set(names) - SAID - self.helpers.names:
            raise Refused(f"method: a model that thinks softly does not say {min(lacking)!r}.")
        row, column = batch.mask.nonzero(as_tuple=True)
        place = batch.inputs["start"][row] + column
        given = [batch.inputs[name][row, place] for name in ("token", "mixed", "score", "soft")]
        hidden = self._states(batch.inputs)[row, place - 1]
        logp, entropy = self._measured(hidden, *(x.to(hidden.device) for x in given))
        helping = self.helpers.names.intersection(names)
        helped = {name: self.helpers.say(name, hidden) for name in sorted(helping)}
        return laid(batch, {"logp": logp, "entropy": entropy} | helped)

    def copy(self) -> "SoftPolicy":
        """Another policy as training found this one, frozen."""
        start = SoftPolicy(self.soft)
        start.module.requires_grad_(False)
        return start

    def _reader(self) -> Mixing:
        return Mixing(self.plain, self.soft.thoughts)

    def _states(self, inputs: Mapping[str, Tensor]) -> Tensor:
        width, device = int(inputs["length"].max()), self.plain.device
        mixed, score = (inputs[name][:, :width].to(device) for name in ("mixed", "score"))
        embedding = self.plain.get_input_embeddings()
        self.plain.train(self.spec.checkpointing and torch.is_grad_enabled())
        with self.autocast():
            read = self.soft.thoughts.embedded(embedding, mixed, score)
            return self.plain.base_model(inputs_embeds=read, use_cache=False).last_hidden_state

    def _measured(
        self, hidden: Tensor, token: Tensor, mixed: Tensor, score: Tensor, soft: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy, a bounded chunk of logits at a time."""

        def said(hidden: Tensor, *of: Tensor) -> tuple[Tensor, Tensor]:
            token, mixed, score, soft = of
            logits, heat = self._logits(hidden).float(), self.spec.sampling.temperature
            words = log_softmax.likelihood(logits, token, heat)
            mixtures = soft_tokens.likelihood(logits, mixed, score)
            logp, entropy = (torch.where(soft, *x) for x in zip(mixtures, words, strict=True))
            return logp, entropy

        size = max(1, CHUNK // len(self.language.tokenizer))
        parts = list(
            zip(*(x.split(size) for x in (hidden, token, mixed, score, soft)), strict=True)
        )
        if len(parts) == 1:
            return said(*parts[0])
        pairs = [checkpoint(said, *part, use_reentrant=False) for part in parts]
        logp, entropy = (torch.cat(x) for x in zip(*pairs, strict=True))  # pyright: ignore
        return logp, entropy
