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
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.types import Rollout
from grupo.core.validation import check_constraints, prefix_constraints
from grupo.inference import soft_tokens
from grupo.inference.base import Engine, StopConditions
from grupo.inference.soft_thinking import SoftThinkingEngine
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.kernels import log_softmax
from grupo.kernels.lm_head import LMHead
from grupo.models import padding
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.context import context_tokens
from grupo.models.evaluator import PaddedEvaluator
from grupo.models.scorers import scatter_to_batch
from grupo.models.spec import BUILTIN_MODELS
from grupo.models.token_statistics import LOGITS_PER_CHUNK, TokenDistributions

SOFT_SIGNALS = {"logp", "entropy"}


@component
class SoftThinkingLM:
    """A language model whose answers begin with soft thoughts; they count towards its limit."""

    base: CausalLM
    soft_thinking: SoftThinkingConfig = SoftThinkingConfig()

    @property
    def model(self) -> str:
        """The folder, or the name on a hub."""
        return self.base.model

    @property
    def signals(self) -> tuple[str, ...]:
        """What is said of an action."""
        return ("logp", "entropy")

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there to be compared with."""
        return BUILTIN_MODELS

    def check(self) -> None:
        """Refuse what a model that thinks softly cannot be."""
        self.base.check()
        check_constraints(prefix_constraints("thoughts.", self.soft_thinking.constraints))
        for name in ("lora", "engine"):
            if value := getattr(self.base, name):
                why = "Allowed: None, soft thoughts go without."
                raise ConfigError(f"base.{name}: {value!r}. {why}")

    def build(self) -> "SoftThinkingPolicy":
        """Load the model and its tokenizer; raises `ConfigError` when they cannot be used."""
        self.check()
        return SoftThinkingPolicy(self)


@dataclass(frozen=True)
class SoftTokenEvaluator(PaddedEvaluator):
    """Row by row, thoughts among the tokens."""

    soft_thinking: SoftThinkingConfig

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        return SoftThinkingEngine(self.model, head, tokenizer, stop_conditions, self.soft_thinking)

    @property
    def warning(self) -> str:
        return "Thoughts are soft: rows are read one by one, and slowly sampled."


class SoftThinkingPolicy(CausalPolicy):
    """A loaded model that thinks softly."""

    def __init__(self, soft_spec: SoftThinkingLM) -> None:
        self.soft_spec = soft_spec
        super().__init__(soft_spec.base)
        vocabulary = self.chat_tokenizer.tokenizer.get_vocab()
        if soft_spec.soft_thinking.end_token not in vocabulary:
            raise ConfigError(
                f"thoughts.end: {soft_spec.soft_thinking.end_token!r} is no token of {soft_spec.model!r}."
            )

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Rows as of any model, a thought by its likeliest token; what is mixed, (N, L, k)."""
        lines = [context_tokens(rollout) for rollout in rollouts]
        mixed, score = soft_tokens.pad_soft_tokens(lines, self.soft_spec.soft_thinking.top_k)
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

    def distributions(self, batch: Batch) -> TokenDistributions:
        raise ConfigError(
            "others: a model that thinks softly can be compared with its reference only."
        )

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and `entropy` of every action, thoughts among them; what helpers say."""
        if lacking := set(names) - SOFT_SIGNALS - self.aux_heads.names:
            raise ConfigError(f"method: a model that thinks softly does not say {min(lacking)!r}.")
        row, column = batch.mask.nonzero(as_tuple=True)
        place = batch.inputs["start"][row] + column
        given = [batch.inputs[name][row, place] for name in ("token", "mixed", "score", "soft")]
        hidden = self._hidden_states(batch.inputs)[row, place - 1]
        logp, entropy = self._logp_and_entropy(hidden, *(x.to(hidden.device) for x in given))
        helping = self.aux_heads.names.intersection(names)
        helped = {name: self.aux_heads.predict(name, hidden) for name in sorted(helping)}
        return scatter_to_batch(batch, {"logp": logp, "entropy": entropy} | helped)

    def load_frozen_copy(self) -> "SoftThinkingPolicy":
        """Another policy as training found this one, frozen."""
        start = SoftThinkingPolicy(self.soft_spec)
        start.module.requires_grad_(False)
        return start

    def _make_evaluator(self) -> SoftTokenEvaluator:
        return SoftTokenEvaluator(self.hf_model, self.soft_spec.soft_thinking)

    def _hidden_states(self, inputs: Mapping[str, Tensor]) -> Tensor:
        width, device = int(inputs["length"].max()), self.hf_model.device
        mixed, score = (inputs[name][:, :width].to(device) for name in ("mixed", "score"))
        embedding = self.hf_model.get_input_embeddings()
        self.hf_model.train(self.spec.gradient_checkpointing and torch.is_grad_enabled())
        with self.autocast():
            read = self.soft_spec.soft_thinking.mix_embeddings(embedding, mixed, score)
            return self.hf_model.base_model(inputs_embeds=read, use_cache=False).last_hidden_state

    def _logp_and_entropy(
        self,
        hidden: Tensor,
        token: Tensor,
        mixture_token: Tensor,
        mixture_score: Tensor,
        is_soft: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy, a bounded chunk of logits at a time."""

        def said(hidden: Tensor, *of: Tensor) -> tuple[Tensor, Tensor]:
            token, mixed, score, soft = of
            logits, heat = self._logits(hidden).float(), self.spec.sampling.temperature
            words = log_softmax.logp_and_entropy(logits, token, heat)
            mixtures = soft_tokens.soft_logp_and_entropy(logits, mixed, score)
            logp, entropy = (torch.where(soft, *x) for x in zip(mixtures, words, strict=True))
            return logp, entropy

        size = max(1, LOGITS_PER_CHUNK // len(self.chat_tokenizer.tokenizer))
        parts = list(
            zip(
                *(x.split(size) for x in (hidden, token, mixture_token, mixture_score, is_soft)),
                strict=True,
            )
        )
        if len(parts) == 1:
            return said(*parts[0])
        pairs = [checkpoint(said, *part, use_reentrant=False) for part in parts]
        logp, entropy = (torch.cat(x) for x in zip(*pairs, strict=True))  # pyright: ignore
        return logp, entropy
