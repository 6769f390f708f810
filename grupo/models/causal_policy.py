"""A causal language model, loaded: it speaks, is measured, and learns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import is_comparison, split_name
from grupo.core.types import Observation, Rollout, Task
from grupo.core.validation import check_context_room, check_prompt_lengths
from grupo.inference.base import Engine, StopConditions
from grupo.kernels.lm_head import lm_head_of
from grupo.models import loading, padding
from grupo.models.aux_head_engine import AuxHeadEngine
from grupo.models.aux_heads import AuxHeads
from grupo.models.aux_models import AuxModel, AuxModels
from grupo.models.aux_models_load import load_aux_models
from grupo.models.causal_actor import CausalActor, replace_prompt
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.detokenize import token_texts
from grupo.models.evaluator import Evaluator, evaluator_for
from grupo.models.scorers import DistributionScorer, scatter_to_batch
from grupo.models.token_statistics import (
    TOKEN_SIGNALS,
    TokenDistributions,
    disagreement,
    token_signals,
)
from grupo.models.trainable import TrainablePolicy
from grupo.models.weight_sync import CopiedWeights, LMWeightSync, ServerWeights, SharedWeights

if TYPE_CHECKING:
    from grupo.models.causal_lm import CausalLM


class CausalPolicy(TrainablePolicy):
    """A loaded causal language model."""

    def __init__(self, spec: "CausalLM") -> None:
        self.spec, device = spec, loading.resolve_device(spec.device)
        # masters are float32 where they are trained; `dtype` is what is computed in
        dtype = loading.compute_dtype(spec.dtype, device)
        kept = dtype if spec.lora else torch.float32
        self.hf_model, tokenizer = loading.load(spec.model, kept, device)
        self.chat_tokenizer = self._make_chat_tokenizer(tokenizer)
        module = loading.add_adapters(self.hf_model, spec.lora) if spec.lora else self.hf_model
        adapted, budget = spec.lora is not None, spec.tokens_per_microbatch
        super().__init__(
            spec.model,
            module,
            tokenizer,
            has_adapters=adapted,
            tokens_per_microbatch=budget,
            dtype=dtype,
        )
        self.lm_head = lm_head_of(self.hf_model)
        self.evaluator = self._make_evaluator()
        self.weight_sync: LMWeightSync = self._make_weight_sync()
        if spec.gradient_checkpointing:
            loading.enable_gradient_checkpointing(self.hf_model)
        self.scorers: Mapping[
            str, DistributionScorer[TokenDistributions]
        ] = {}  # whom it can be compared with, by name
        self.aux_heads = self.attach_heads(())

    @property
    def context_length(self) -> int:
        """How many tokens the model can read."""
        return int(
            getattr(self.hf_model.config.get_text_config(), "max_position_embeddings", 1 << 30)
        )

    @property
    def stop_conditions(self) -> StopConditions:
        """When an answer ends."""
        return StopConditions(
            self.spec.max_new_tokens,
            self.chat_tokenizer.eos_token_ids,
            self.spec.stop_strings,
            self.context_length,
        )

    def detach_sampler(self) -> None:
        """Have weights of its own to speak with, so that it can learn meanwhile."""
        if not self.spec.engine:
            self.weight_sync = CopiedWeights(self.hf_model, self.make_engine)

    def make_engine(self, model: PreTrainedModel) -> Engine:
        """How to sample from the model, or from a copy of it."""
        head = replace(self.lm_head, output=model.get_output_embeddings())
        return self.evaluator.with_model(model).engine(
            head, self.chat_tokenizer.tokenizer, self.stop_conditions
        )

    def actor(self, key: int) -> CausalActor:
        """How samplers use the policy."""
        queue = self.make_batcher(
            AuxHeadEngine(
                self.weight_sync.engine(),
                self.evaluator,
                self.aux_heads,
                self.tokens_per_microbatch,
            )
        )
        return CausalActor(self.chat_tokenizer, queue, key, self.spec.sampling, self.policy_version)

    @property
    def warnings(self) -> Sequence[str]:
        """What is slower here than one might expect, a line each."""
        imitates = loading.dtype_warning(self.spec.dtype, self.hf_model.device)
        return [line for line in (self.evaluator.warning, imitates) if line]

    def encode_observation(self, rollout: Rollout, observation: Observation) -> tuple[int, ...]:
        """What the world says next, as tokens."""
        return self.chat_tokenizer.encode_observation(rollout, observation)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """The tokens of every row (N, L), right-padded; where its first action is; its length."""
        return padding.encode(rollouts)

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every action, (N, T), 0 where masked."""
        own = self.distributions(batch)
        known = (n for n in names if n in TOKEN_SIGNALS or is_comparison(n))
        compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
        with torch.no_grad():
            others = {who: self.scorers[who].distributions(batch) for who in compared}
        said = token_signals(own, dict.fromkeys(("logp", *known)), others)
        helping = self.aux_heads.names.intersection(names)
        said |= {name: self.aux_heads.predict(name, own.hidden) for name in sorted(helping)}
        if "disagreement" in names:
            column = batch.mask.nonzero()[:, 1].to(own.hidden.device)
            said["disagreement"] = disagreement(own, column, len(batch.mask))
        return scatter_to_batch(batch, said)

    def distributions(self, batch: Batch) -> TokenDistributions:
        """What the actions of a batch are drawn from, in the order of its mask."""
        token, start, length = (batch.inputs[name] for name in ("token", "start", "length"))
        row, column = batch.mask.nonzero(as_tuple=True)
        place = start[row] + column
        # transformers checkpoints in training mode only; dropout is off
        self.hf_model.train(self.spec.gradient_checkpointing and torch.is_grad_enabled())
        with self.autocast():
            hidden, record = self.evaluator.hidden_states(token, length, row, place - 1)
            chosen = self.evaluator.token_scorer(self.lm_head, record)
        said = token[row, place].to(hidden.device)
        return TokenDistributions(hidden, said, self._logits, self.spec.sampling, chosen)

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Everybody whom `required_signals` names, loaded."""
        company, self.scorers = load_aux_models(
            self, required_signals, reference_update, aux_models
        )
        return company

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The text that each token adds."""
        return [token_texts(self.chat_tokenizer.tokenizer, action) for _, action in rollout.turns]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that leave no room for an answer."""
        check_prompt_lengths(
            tasks, self.encode_observation, self.context_length, self.spec.max_new_tokens
        )

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Take on helpers, new ones: they are the policy's, and not among its parameters."""
        features = self.hf_model.config.get_text_config().hidden_size
        self.aux_heads = AuxHeads(aux_heads, features, self.hf_model.device)
        return self.aux_heads

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices whose tokens fit the budget, those that they share counted once."""
        token, length = batch.inputs["token"], batch.inputs["length"]
        self.max_rows = 0
        for several in self.evaluator.microbatches(token, length, self.tokens_per_microbatch):
            self.max_rows = max(self.max_rows, len(several))
            yield several

    def load_frozen_copy(self) -> "CausalPolicy":
        """Another policy as training found this one, frozen."""
        start = CausalPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout as if `seen` had been its prompt."""
        return replace_prompt(self.chat_tokenizer, rollout, observation)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Refuse a model of another vocabulary."""
        language = getattr(teacher, "chat_tokenizer", None)
        theirs = language.tokenizer.get_vocab() if language else {}
        mine = self.chat_tokenizer.tokenizer.get_vocab()
        if mine != theirs:
            raise ConfigError(
                f"others: {name!r} has {len(theirs)} tokens, and they are not the policy's"
                f" {len(mine)}. Allowed: a model with the vocabulary of {self.spec.model!r}."
            )

    def _make_chat_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> ChatTokenizer:
        """Refuses answers that would have no end, or no room."""
        spec, ends = self.spec, loading.eos_token_ids(self.hf_model, tokenizer)
        if not ends and not spec.stop_strings:
            raise ConfigError(f"stop: empty, and {spec.model!r} has no end token. Allowed: a text.")
        check_context_room(spec.max_new_tokens, self.context_length)
        return ChatTokenizer(tokenizer, ends, spec.stop_strings, spec.apply_chat_template)

    def _make_evaluator(self) -> Evaluator:
        return evaluator_for(self.hf_model)

    def _make_weight_sync(self) -> LMWeightSync:
        if not self.spec.engine:
            return SharedWeights(self.hf_model, self.make_engine)
        server = self.spec.engine.build(self.spec.model, self.stop_conditions)
        return ServerWeights(self, server)

    def _logits(self, hidden: Tensor) -> Tensor:
        with self.autocast():
            return self.lm_head(hidden)
