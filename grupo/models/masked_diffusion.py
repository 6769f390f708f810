"""Masked diffusion language models: an action is a token that was unmasked."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import COMPARISONS, is_comparison, split_name
from grupo.core.types import Rollout, Task
from grupo.core.validation import (
    Constraint,
    check_constraints,
    check_context_room,
    check_prompt_lengths,
    generation_constraints,
)
from grupo.inference.sampling_params import Sampling
from grupo.models import loading
from grupo.models.aux_heads import AuxHeads
from grupo.models.aux_models import AuxModel, AuxModels
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.detokenize import token_texts
from grupo.models.masked.actor import MaskedActor
from grupo.models.masked.aux_models import load_aux_models
from grupo.models.masked.canvas import CanvasSize, encode_row, pad_rows
from grupo.models.masked.denoiser import Denoiser, special_tokens
from grupo.models.masked.logp_estimators import CoupledEstimator, LogpEstimator, MaskedViews
from grupo.models.masked.sampler import UnmaskingSampler
from grupo.models.masked.unmask_order import LeftToRight, UnmaskingOrder
from grupo.models.scorers import scatter_to_batch
from grupo.models.spec import BUILTIN_MODELS
from grupo.models.token_statistics import TOKEN_SIGNALS, TokenDistributions, token_signals
from grupo.models.trainable import TrainablePolicy
from grupo.models.weight_sync import CopiedWeights, LMWeightSync, SharedWeights


@component
class MaskedDiffusion:
    """A bidirectional language model of transformers with a mask token, by folder or hub name.

    It writes answers over `limit` masks, in an `order`; `estimate` is how likely it says that they
    are. `stop` are the texts that end an answer early; `apply_chat_template` wraps plain prompts as a user's
    message; `budget` is how many tokens are read at once, every masked copy of a text counted.
    """

    model: str
    device: str = "auto"
    sampling: Sampling = Sampling()
    order: UnmaskingOrder = LeftToRight()
    logp_estimator: LogpEstimator = CoupledEstimator()
    max_new_tokens: int = 64
    stop_strings: tuple[str, ...] = ()
    apply_chat_template: bool = False
    tokens_per_microbatch: int = 16384

    @property
    def signals(self) -> tuple[str, ...]:
        """What is said of an action."""
        return (*TOKEN_SIGNALS, *COMPARISONS)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Who is always there to be compared with."""
        return BUILTIN_MODELS

    @property
    def constraints(self) -> Sequence[Constraint]:
        """What its fields may be; an estimate has to fit the order."""
        fits = not self.logp_estimator.is_exact or self.order == LeftToRight()
        order = ("order", self.order, fits, f"LeftToRight() with {self.logp_estimator}")
        return [
            *generation_constraints(
                self.max_new_tokens, self.tokens_per_microbatch, self.stop_strings
            ),
            order,
        ]

    def check(self) -> None:
        """Refuse fields that cannot be, and a device that is not here."""
        check_constraints(self.constraints)
        loading.resolve_device(self.device)

    def build(self) -> "MaskedPolicy":
        """Load the model and its tokenizer; raises `ConfigError` when they cannot be used."""
        self.check()
        return MaskedPolicy(self)


class MaskedPolicy(TrainablePolicy):
    """A loaded masked diffusion language model."""

    warnings: Sequence[str] = ()

    def __init__(self, spec: MaskedDiffusion) -> None:
        self.spec = spec
        device = loading.resolve_device(spec.device)
        self.hf_model, tokenizer = loading.load(spec.model, torch.float32, device, loading.MASKED)
        super().__init__(
            spec.model,
            self.hf_model,
            tokenizer,
            has_adapters=False,
            tokens_per_microbatch=spec.tokens_per_microbatch,
        )
        end, mask = special_tokens(tokenizer)
        context = min(self.hf_model.config.max_position_embeddings, tokenizer.model_max_length)
        check_context_room(spec.max_new_tokens, context)
        self.canvas_size = CanvasSize(spec.max_new_tokens, context)
        self.chat_tokenizer = ChatTokenizer(
            tokenizer, (end,), spec.stop_strings, spec.apply_chat_template
        )
        self.denoiser = Denoiser(self.hf_model, mask)
        self.weight_sync: LMWeightSync = SharedWeights(self.hf_model, self._make_engine)
        self.reference: MaskedPolicy = self
        self.aux_heads = self.attach_heads(())

    def detach_sampler(self) -> None:
        """Have weights of its own to speak with, so that it can learn meanwhile."""
        self.weight_sync = CopiedWeights(self.hf_model, self._make_engine)

    def actor(self, key: int) -> MaskedActor:
        """How samplers use the policy."""
        queue, block = self.make_batcher(self.weight_sync.engine()), self.spec.order.block_length
        return MaskedActor(
            self.chat_tokenizer,
            queue,
            key,
            self.spec.sampling,
            self.policy_version,
            block_length=block,
        )

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """The text that each token adds."""
        return [token_texts(self.chat_tokenizer.tokenizer, action) for _, action in rollout.turns]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Refuse prompts that leave no room for an answer."""
        check_prompt_lengths(
            tasks,
            self.chat_tokenizer.encode_observation,
            self.canvas_size.context_length,
            self.spec.max_new_tokens,
        )

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """The tokens of every row, and of each answer its place, its canvas, its masks' stream."""
        return pad_rows([encode_row(rollout, self.canvas_size) for rollout in rollouts])

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and what else is asked for of every action, (N, T), 0 where masked."""
        return self.signals_with_sampling(batch, names, self.spec.sampling)

    def signals_with_sampling(
        self, batch: Batch, names: Collection[str], sampling: Sampling
    ) -> Signals:
        """The signals of tokens that are drawn by `sampling`."""
        looks, token = self._masked_views(batch)
        own, states = self._distributions(looks, token, sampling)
        known = dict.fromkeys(
            ("logp", *(n for n in names if n in TOKEN_SIGNALS or is_comparison(n)))
        )
        compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
        with torch.no_grad():
            others = {
                who: self.reference._distributions(looks, token, sampling)[0] for who in compared
            }
        said = {n: looks.average_views(n, x) for n, x in token_signals(own, known, others).items()}
        first = states.unflatten(0, looks.view.shape)[:, 0]  # with the most of the answer masked
        helping = self.aux_heads.names.intersection(names)
        said |= {name: self.aux_heads.predict(name, first) for name in sorted(helping)}
        return scatter_to_batch(batch, said)

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices whose masked copies fit the budget."""
        width = batch.inputs["canvas"].amax(1)
        count = self.spec.logp_estimator.count_views(batch)
        order = width.argsort(descending=True, stable=True)
        while len(order):
            tokens = count[order].cumsum(0) * width[order[0]]
            take = max(1, int((tokens <= self.tokens_per_microbatch).sum()))
            yield order[:take].sort().values
            order = order[take:]

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Everybody whom `required_signals` names: a reference, and the policy at other temperatures."""
        return load_aux_models(self, required_signals, reference_update)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Take on helpers, new ones: they are the policy's, and not among its parameters."""
        self.aux_heads = AuxHeads(aux_heads, self.hf_model.config.hidden_size, self.hf_model.device)
        return self.aux_heads

    def load_frozen_copy(self) -> "MaskedPolicy":
        """Another policy as training found this one, frozen."""
        start = MaskedPolicy(self.spec)
        start.module.requires_grad_(False)
        return start

    def _make_engine(self, model: PreTrainedModel) -> UnmaskingSampler:
        spec, denoiser = self.spec, Denoiser(model, self.denoiser.mask_token)
        how = (self.chat_tokenizer, spec.order, spec.logp_estimator)
        return UnmaskingSampler(denoiser, *how, self.canvas_size, spec.tokens_per_microbatch)

    def _masked_views(self, batch: Batch) -> tuple[MaskedViews, Tensor]:
        """Where the actions of a batch are looked at, in the order of its mask; which they are."""
        row, column = batch.mask.nonzero(as_tuple=True)
        place = batch.inputs["start"][row] + column
        looks = self.spec.logp_estimator(batch.inputs, row, place, self.denoiser.mask_token)
        return looks, batch.inputs["token"][row, place]

    def _distributions(
        self, views: MaskedViews, token: Tensor, sampling: Sampling
    ) -> tuple[TokenDistributions, Tensor]:
        """What every look says, and the states it says so from."""
        self.max_rows = min(
            len(views.token), self.denoiser.views_per_batch(views, self.tokens_per_microbatch)
        )
        return self.denoiser.distributions(views, token, sampling, self.tokens_per_microbatch)
