"""Causal language models whose answers begin with soft thinking steps.

A response consists of soft tokens (mixtures of token embeddings) and then tokens. SofT-GRPO, Zheng
et al., arXiv:2511.06411.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedTokenizerBase

from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.types import Rollout
from grupo.inference import soft_tokens
from grupo.inference.base import Engine, StopConditions
from grupo.inference.soft_thinking import SoftThinkingEngine
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.kernels import log_softmax
from grupo.kernels.lm_head import LMHead
from grupo.models import padding
from grupo.models.aux_heads import no_own_model
from grupo.models.base import BUILTIN_MODELS
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.context import context_tokens
from grupo.models.evaluator import PaddedEvaluator
from grupo.models.row_routing import RowRouting
from grupo.models.signal_models import scatter_to_batch
from grupo.models.token_statistics import TokenDistributions, logits_per_chunk_of
from grupo.util.errors import ConfigError

SOFT_SIGNALS = ("logp", "entropy")


@component
class SoftThinkingLM:
    """A causal language model that generates soft tokens before each answer.

    Args:
        base: the language model, without `lora` and `engine`; soft tokens count towards its
            `max_new_tokens`.
        soft_thinking: number and sampling of the soft tokens.
    """

    base: CausalLM
    soft_thinking: SoftThinkingConfig = SoftThinkingConfig()

    @property
    def model(self) -> object:
        """The model of `base`."""
        return self.base.model

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of a response."""
        return SOFT_SIGNALS

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration."""
        return BUILTIN_MODELS

    def check(self) -> None:
        """Raise `ConfigError` for a missing device, and for `lora` and `engine`."""
        self.base.check()
        defaults = {"lora": None, "engine": None, "router_aux_loss": 0.0, "router_replay": False}
        for name, default in defaults.items():
            if value := getattr(self.base, name):
                allowed = f"Allowed: {default}, soft thinking does not support it."
                raise ConfigError(f"base.{name}: {value!r}. {allowed}")

    def build(self) -> "SoftThinkingPolicy":
        """Load the model and its tokenizer; raise `ConfigError` if they cannot be used."""
        self.check()
        return SoftThinkingPolicy(self)


@dataclass(frozen=True)
class SoftTokenEvaluator(PaddedEvaluator):
    """Evaluates right-padded rows of tokens and soft tokens."""

    soft_thinking: SoftThinkingConfig

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        return SoftThinkingEngine(self.model, head, tokenizer, stop_conditions, self.soft_thinking)

    @property
    def warning(self) -> str:
        return "Soft thinking: rows are padded, and generation is slow."


class SoftThinkingPolicy(CausalPolicy):
    """A causal language model with soft thinking, loaded as its `SoftThinkingLM` describes."""

    def __init__(self, soft_spec: SoftThinkingLM) -> None:
        self.soft_spec = soft_spec
        super().__init__(soft_spec.base)
        end_token = soft_spec.soft_thinking.end_token
        if end_token not in self.chat_tokenizer.tokenizer.get_vocab():
            raise ConfigError(
                f"soft_thinking.end_token: {end_token!r} is no token of {soft_spec.model!r}."
            )

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Rows with a soft token as its likeliest token, and the mixtures (N, L, k)."""
        rows = [context_tokens(rollout) for rollout in rollouts]
        top_k = self.soft_spec.soft_thinking.top_k
        mixture_token, mixture_score = soft_tokens.pad_soft_tokens(rows, top_k)
        is_soft = torch.zeros(mixture_token.shape[:2], dtype=torch.bool)
        for number, row in enumerate(rows):
            is_soft[number, : len(row)] = torch.tensor([not isinstance(x, int) for x in row])
        return {
            **padding.extents(rollouts, [len(row) for row in rows]),
            "token": mixture_token[..., 0],
            "mixture_token": mixture_token,
            "mixture_score": mixture_score,
            "is_soft": is_soft,
        }

    def distributions(self, batch: Batch, routing: RowRouting | None = None) -> TokenDistributions:
        raise ConfigError(
            "aux_models: a soft-thinking policy can be compared with its reference only."
        )

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and `entropy` of every token and soft token, and predictions of its heads."""
        if missing := set(names) - set(SOFT_SIGNALS) - self.aux_heads.names:
            raise ConfigError(
                f"method: a soft-thinking policy has no signal {min(missing)!r}."
                f" Allowed: {', '.join(SOFT_SIGNALS)}."
            )
        row, action = batch.mask.nonzero(as_tuple=True)
        column = batch.inputs["start"][row] + action
        hidden = self._hidden_states(batch.inputs)[row, column - 1]
        keys = ("token", "mixture_token", "mixture_score", "is_soft")
        actions = (batch.inputs[key][row, column].to(hidden.device) for key in keys)
        logp, entropy = self._logp_and_entropy(hidden, *actions)
        values = {"logp": logp, "entropy": entropy}
        for name in sorted(self.aux_heads.names.intersection(names)):
            values[name] = self.aux_heads.predict(name, hidden)
        return scatter_to_batch(batch, values)

    def _load_head_model(self, folder: str) -> "SoftThinkingPolicy":
        return no_own_model(folder)

    def load_frozen_copy(self) -> "SoftThinkingPolicy":
        """Load another policy from the same folder, frozen: the weights from before training."""
        policy = SoftThinkingPolicy(self.soft_spec)
        policy.module.requires_grad_(False)
        return policy

    def _find_routers(self) -> None:
        return None

    def _make_evaluator(self) -> SoftTokenEvaluator:
        return SoftTokenEvaluator(self.hf_model, self.soft_spec.soft_thinking)

    def _hidden_states(self, inputs: Mapping[str, Tensor]) -> Tensor:
        width = int(inputs["length"].max())
        device = self.hf_model.device
        keys = ("mixture_token", "mixture_score")
        token, score = (inputs[key][:, :width].to(device) for key in keys)
        embedding = self.hf_model.get_input_embeddings()
        self.hf_model.train(self.spec.gradient_checkpointing and torch.is_grad_enabled())
        with self.autocast():
            embedded = self.soft_spec.soft_thinking.mix_embeddings(embedding, token, score)
            output = self.hf_model.base_model(inputs_embeds=embedded, use_cache=False)
            return output.last_hidden_state

    def _logp_and_entropy(
        self,
        hidden: Tensor,
        token: Tensor,
        mixture_token: Tensor,
        mixture_score: Tensor,
        is_soft: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Log-probability and entropy, with a bounded chunk of logits at a time."""
        inputs = (hidden, token, mixture_token, mixture_score, is_soft)
        limit = logits_per_chunk_of(hidden.device)
        size = max(1, limit // len(self.chat_tokenizer.tokenizer))
        chunks = list(zip(*(x.split(size) for x in inputs), strict=True))
        if len(chunks) == 1:
            return self._chunk_logp_and_entropy(*chunks[0])
        pairs = [
            checkpoint(self._chunk_logp_and_entropy, *chunk, use_reentrant=False)
            for chunk in chunks
        ]
        logp, entropy = (torch.cat(x) for x in zip(*pairs, strict=True))
        return logp, entropy

    def _chunk_logp_and_entropy(
        self,
        hidden: Tensor,
        token: Tensor,
        mixture_token: Tensor,
        mixture_score: Tensor,
        is_soft: Tensor,
    ) -> tuple[Tensor, Tensor]:
        logits = self.logits_head(hidden).float()
        hard = log_softmax.logp_and_entropy(logits, token, self.spec.sampling.temperature)
        soft = soft_tokens.soft_logp_and_entropy(logits, mixture_token, mixture_score)
        logp, entropy = (torch.where(is_soft, *x) for x in zip(soft, hard, strict=True))
        return logp, entropy
