"""Masked diffusion language models; a response consists of tokens that were unmasked."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import check_field, component
from grupo.core.interfaces import SignalModel
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import (
    COMPARISONS,
    CURRENT,
    SAMPLER,
    is_comparison,
    split_name,
    temperature_of,
)
from grupo.core.types import Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.inference.sampling_params import Sampling
from grupo.models import devices, loading
from grupo.models.aux_heads import AuxHeads
from grupo.models.base import BUILTIN_MODELS, AuxModel, AuxModels
from grupo.models.config_file import check_config_file
from grupo.models.detokenize import TokenTexts
from grupo.models.language_limits import make_chat_tokenizer
from grupo.models.masked.actor import MaskedActor
from grupo.models.masked.canvas import CanvasSize, encode_row, pad_rows
from grupo.models.masked.denoiser import Denoiser, special_tokens
from grupo.models.masked.logp_estimators import CoupledEstimator, LogpEstimator, MaskedViews
from grupo.models.masked.sampler import UnmaskingSampler
from grupo.models.masked.unmask_order import LeftToRight, UnmaskingOrder
from grupo.models.signal_models import scatter_to_batch
from grupo.models.template_file import TemplateFile, template_warnings
from grupo.models.token_statistics import TOKEN_SIGNALS, TokenDistributions, token_signals
from grupo.models.trainable import TrainablePolicy
from grupo.models.weight_sync import CopiedWeights, LMWeightSync, SharedWeights
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors


@component
class MaskedDiffusion:
    """A bidirectional language model of transformers that generates by unmasking.

    Args:
        model: folder or hub name; the tokenizer needs a mask token.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        sampling: temperature and truncation of the token distribution.
        order: order in which tokens are unmasked.
        logp_estimator: estimator of log-probabilities; an exact one needs `LeftToRight()`.
        max_new_tokens: maximal length of an answer, in tokens.
        stop_strings: strings that end an answer, besides the end token.
        apply_chat_template: wrap plain prompts as a user message.
        chat_template: file of Jinja text in place of the model's own template; "" for the latter.
        chat_template_kwargs: variables of the template, as those of `CausalSpec`.
        system_prompt: content of a system message before prompts that have none; "" for none.
        tokens_per_microbatch: tokens evaluated at once, in all masked views of a text.
        allow_pickle: also read weights from a pickle, whose author may be able to execute code.
    """

    model: str
    device: str = "auto"
    sampling: Sampling = Sampling()
    order: UnmaskingOrder = LeftToRight()
    logp_estimator: LogpEstimator = CoupledEstimator()
    max_new_tokens: PositiveInt = 64
    stop_strings: tuple[NonEmptyString, ...] = ()
    apply_chat_template: bool = False
    tokens_per_microbatch: PositiveInt = 16384
    allow_pickle: bool = False
    chat_template: str | TemplateFile = ""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    system_prompt: str = ""

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of a token."""
        return (*TOKEN_SIGNALS, *COMPARISONS)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration."""
        return BUILTIN_MODELS

    def __post_init__(self) -> None:
        fits = not self.logp_estimator.is_exact or self.order == LeftToRight()
        check_field(self, "order", fits, f"LeftToRight() with {self.logp_estimator}")

    def check(self) -> None:
        """Raise `ConfigError` for a missing device."""
        devices.resolve_device(self.device)

    def build(self) -> "MaskedPolicy":
        """Load the model and its tokenizer; raise `ConfigError` if they cannot be used."""
        self.check()
        return MaskedPolicy(self)


def context_length_of(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of a prompt with its answer."""
    return min(config.max_position_embeddings, tokenizer.model_max_length)


class MaskedPolicy(TrainablePolicy):
    """A masked diffusion language model, loaded as its `MaskedDiffusion` describes."""

    def __init__(self, spec: MaskedDiffusion) -> None:
        self.spec = spec
        device = devices.resolve_device(spec.device)
        with loader_errors(f"model: {spec.model!r}"):
            check_config_file(spec.model)
            self.hf_model, tokenizer = loading.load(
                spec.model, torch.float32, device, loading.MASKED, allow_pickle=spec.allow_pickle
            )
        end, mask = special_tokens(tokenizer)
        context_length = context_length_of(self.hf_model.config, tokenizer)
        self.canvas_size = CanvasSize(spec.max_new_tokens, context_length)
        self.chat_tokenizer = make_chat_tokenizer(spec, tokenizer, (end,), context_length)
        super().__init__(
            spec.model,
            self.hf_model,
            self.chat_tokenizer.tokenizer,
            has_adapters=False,
            tokens_per_microbatch=spec.tokens_per_microbatch,
        )
        self.token_texts = TokenTexts(tokenizer)
        self.denoiser = Denoiser(self.hf_model, mask)
        self.weight_sync: LMWeightSync = SharedWeights(self.hf_model, self._make_engine)
        self.reference: MaskedPolicy = self
        self.aux_heads = self.attach_heads(())

    @property
    def warnings(self) -> Sequence[str]:
        """Lines about the files of the policy."""
        return template_warnings(self.spec.chat_template)

    def use_weight_copy_for_generation(self) -> None:
        """From now on, generate from a copy of the weights, so that training can run meanwhile."""
        self.weight_sync = CopiedWeights(self.hf_model, self._make_engine)

    def actor(self, key: int) -> MaskedActor:
        """Return a sampler's handle on the policy, with random streams derived from `key`."""
        return MaskedActor(
            self.chat_tokenizer,
            self.make_batcher(self.weight_sync.engine()),
            key,
            self.spec.sampling,
            self.policy_version,
            block_length=self.spec.order.block_length,
        )

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text that each token of each response adds."""
        return [self.token_texts(response) for _, response in rollout.turns]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a prompt that leaves no room for an answer."""
        self.prompt_limit.validate_tasks(tasks)

    @property
    def prompt_limit(self) -> PromptLimit:
        """The largest prompt."""
        encode = self.chat_tokenizer.encode_observation
        return PromptLimit(encode, self.canvas_size.context_length, self.spec.max_new_tokens)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Tokens of every row; of each answer its positions, its canvas, and its masks' key."""
        return pad_rows([encode_row(rollout, self.canvas_size) for rollout in rollouts])

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and the signals in `names` of every action, (N, T), 0 where masked."""
        return self.signals_with_sampling(batch, names, self.spec.sampling)

    def signals_with_sampling(
        self, batch: Batch, names: Collection[str], sampling: Sampling
    ) -> Signals:
        """Signals under other sampling parameters, e.g. another temperature."""
        views, token = self._masked_views(batch)
        own, states = self._distributions(views, token, sampling)
        per_token = (name for name in names if name in TOKEN_SIGNALS or is_comparison(name))
        compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
        with torch.no_grad():
            others = {
                name: self.reference._distributions(views, token, sampling)[0] for name in compared
            }
        per_view = token_signals(own, dict.fromkeys(("logp", *per_token)), others)
        values = {name: views.average_views(name, x) for name, x in per_view.items()}
        # an action's first view masks most of its answer
        first_states = states.unflatten(0, views.view.shape)[:, 0]
        for name in sorted(self.aux_heads.names.intersection(names)):
            values[name] = self.aux_heads.predict(name, first_states)
        return scatter_to_batch(batch, values)

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches whose masked views have `tokens_per_microbatch` tokens."""
        width = batch.inputs["canvas_end"].amax(1)
        num_views = self.spec.logp_estimator.count_views(batch)
        order = width.argsort(descending=True, stable=True)
        while len(order):
            tokens = num_views[order].cumsum(0) * width[order[0]]
            take = max(1, int((tokens <= self.tokens_per_microbatch).sum()))
            yield order[:take].sort().values
            order = order[take:]

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Load the models that `required_signals` names: a reference, and other temperatures."""
        return load_aux_models(self, required_signals, reference_update)

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Create auxiliary heads; they do not belong to `parameters`."""
        self.aux_heads = AuxHeads(aux_heads, self.hf_model.config.hidden_size, self.hf_model.device)
        return self.aux_heads

    def load_frozen_copy(self) -> "MaskedPolicy":
        """Load another policy from the same folder, frozen: the weights from before training."""
        policy = MaskedPolicy(self.spec)
        policy.module.requires_grad_(False)
        return policy

    def _make_engine(self, model: PreTrainedModel) -> UnmaskingSampler:
        return UnmaskingSampler(
            Denoiser(model, self.denoiser.mask_token),
            self.chat_tokenizer,
            self.spec.order,
            self.spec.logp_estimator,
            self.canvas_size,
            self.spec.tokens_per_microbatch,
        )

    def _masked_views(self, batch: Batch) -> tuple[MaskedViews, Tensor]:
        """Views and tokens of a batch's actions, in the order of its mask."""
        row, action = batch.mask.nonzero(as_tuple=True)
        position = batch.inputs["start"][row] + action
        mask_token = self.denoiser.mask_token
        views = self.spec.logp_estimator(batch.inputs, row, position, mask_token)
        return views, batch.inputs["token"][row, position]

    def _distributions(
        self, views: MaskedViews, token: Tensor, sampling: Sampling
    ) -> tuple[TokenDistributions, Tensor]:
        """Token distributions of every view, and the hidden states that they come from."""
        batch_size = self.denoiser.views_per_batch(views, self.tokens_per_microbatch)
        self.max_rows = min(len(views.token), batch_size)
        return self.denoiser.distributions(views, token, sampling, self.tokens_per_microbatch)


@dataclass(frozen=True)
class MaskedTemperatureScaled:
    """A masked diffusion policy at `factor` times its temperature."""

    policy: "MaskedPolicy"
    factor: float

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        sampling = self.policy.spec.sampling.adjust(self.factor)
        return self.policy.signals_with_sampling(batch, names, sampling)


def load_aux_models(
    policy: "MaskedPolicy", required_signals: Collection[str], reference_update: ReferenceUpdate
) -> AuxModels:
    """Load every auxiliary model that `required_signals` names; the reference is a copy."""
    owners = {owner for _, owner in map(split_name, required_signals)}
    required = owners - {"", SAMPLER, CURRENT}
    signal_models = dict[str, SignalModel]()
    for name in required:
        if factor := temperature_of(name):
            signal_models[name] = MaskedTemperatureScaled(policy, factor)
    unknown = sorted(required - set(signal_models) - {"ref"})
    if unknown:
        raise ConfigError(
            f"aux_models: {unknown[0]!r}. Allowed with a masked diffusion policy: 'ref', and the"
            " policy at another temperature, as 't=1.2'."
        )
    reference_weights: dict[str, Tensor] = {}
    if "ref" in required:
        policy.reference = policy.load_frozen_copy()
        signal_models["ref"] = policy.reference
        if reference_update.rate:
            reference_weights = dict(policy.reference.module.named_parameters())
    return AuxModels(signal_models, {}, reference_update, reference_weights)
