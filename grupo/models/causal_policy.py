"""Policy of a causal language model: generates, evaluates and trains on tokens."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.algo.load_balancing import RouterSums
from grupo.core.aux_heads import AuxHead
from grupo.core.batch import Batch, Signals
from grupo.core.dtypes import FULL_PRECISION
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import ROUTER_LOSS
from grupo.core.types import Observation, Rollout, Task
from grupo.core.validation import PromptLimit
from grupo.inference.base import Engine, StopConditions
from grupo.kernels.lm_head import AutocastHead, LMHead, LogitsHead, lm_head_of
from grupo.models import devices, loading, padding
from grupo.models.aux_head_engine import AuxHeadEngine
from grupo.models.aux_heads import AuxHeads
from grupo.models.aux_models import load_aux_models
from grupo.models.base import AuxModel, AuxModels
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_spec import CausalSpec
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.context import replace_prompt
from grupo.models.detokenize import TokenTexts
from grupo.models.evaluator import Evaluator, evaluator_for
from grupo.models.language_limits import language_model_limit, make_chat_tokenizer
from grupo.models.loaded import LoadedModel, take_or_load
from grupo.models.lora import Lora
from grupo.models.policy_routers import (
    ROUTES,
    PolicyRouters,
    check_records_routes,
    policy_routers,
)
from grupo.models.quantization import merge_dequantized
from grupo.models.quiet_loading import quiet_transformers
from grupo.models.route_rows import encode_routes_of_rows
from grupo.models.row_routing import RowRouting
from grupo.models.sharding import FSDP2, ShardedModel
from grupo.models.signal_models import DistributionModel, scatter_to_batch
from grupo.models.start_weights import trainable_module
from grupo.models.template_file import template_warnings
from grupo.models.token_statistics import TokenDistributions
from grupo.models.token_values import token_values
from grupo.models.trainable import Saveable, TrainablePolicy
from grupo.models.vllm_weights import vllm_weights
from grupo.models.weight_sync import CopiedWeights, LMWeightSync, SharedWeights
from grupo.util.device_copies import to_device
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class CausalPolicy(TrainablePolicy):
    """A causal language model, loaded as its `CausalSpec` describes.

    Raises `ConfigError` if an answer could not end, or would leave no room for a prompt.
    """

    def __init__(self, spec: CausalSpec) -> None:
        self.spec = spec
        device = devices.resolve_device(spec.device)
        dtype = devices.compute_dtype(spec.dtype, device)
        # trained weights are stored in float32 or float64; `dtype` is the type of computations
        is_stored = spec.trains_adapters or dtype in FULL_PRECISION
        storage_dtype = dtype if is_stored else torch.float32
        with loader_errors(f"model: {spec.model!r}"):
            self.hf_model, tokenizer = self._load(storage_dtype, device)
        self.chat_tokenizer = self._make_chat_tokenizer(tokenizer)
        self.token_texts = TokenTexts(tokenizer)
        with loader_errors(f"lora: {spec.lora!r}"):
            module = spec.adapters or trainable_module(self.hf_model, self.lora, spec.start)
        super().__init__(
            str(spec.model),
            module,
            self.saveable,
            has_adapters=spec.trains_adapters,
            tokens_per_microbatch=spec.tokens_per_microbatch,
            dtype=dtype,
        )
        is_started = bool(spec.lora and spec.start and spec.start.lora)
        self.continues_adapters = is_started or spec.adapters is not None
        with quiet_transformers():  # some models warn of the token sequences of the checks
            self.routers: PolicyRouters | None = self._find_routers()
            self.lm_head = lm_head_of(self.hf_model)
            self.evaluator = self._make_evaluator()
        if spec.router_replay:
            check_records_routes(self.evaluator)
        self.weight_sync: LMWeightSync = self._make_weight_sync()
        self.sharded: ShardedModel | None = None
        if spec.gradient_checkpointing:
            loading.enable_gradient_checkpointing(self.hf_model)
        # models that it can be compared with, by name
        self.signal_models: Mapping[str, DistributionModel[TokenDistributions]] = {}
        self.aux_heads = self.attach_heads(())

    def _load(
        self, storage_dtype: torch.dtype, device: torch.device
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Load the model and its tokenizer."""
        return take_or_load(
            self.spec.model,
            storage_dtype,
            device,
            allow_pickle=self.spec.allow_pickle,
            quantization=self.spec.quantization,
        )

    def _make_chat_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> ChatTokenizer:
        eos_token_ids = loading.eos_token_ids(self.hf_model.generation_config, tokenizer)
        return make_chat_tokenizer(self.spec, tokenizer, eos_token_ids, self.context_length)

    @property
    def saveable(self) -> Saveable:
        """The tokenizer, which is exported with the model."""
        return self.chat_tokenizer.tokenizer

    @property
    def lora(self) -> Lora | None:
        """Adapters to train instead of all weights."""
        return self.spec.lora

    @property
    def context_length(self) -> int:
        """Maximal number of tokens in the model's context."""
        return loading.context_length_of(self.hf_model.config)

    @property
    def stop_conditions(self) -> StopConditions:
        """Conditions that end an answer."""
        return StopConditions(
            self.spec.max_new_tokens,
            self.chat_tokenizer.eos_token_ids,
            self.spec.stop_strings,
            self.context_length,
        )

    def merged_model(self) -> Any:
        """The model; with adapters, a copy in full precision into which they are merged."""
        return merge_dequantized(self.module) if self.spec.quantization else super().merged_model()

    def use_weight_copy_for_generation(self) -> None:
        """From now on, generate from a copy of the weights, so that training can run meanwhile."""
        if self.spec.engine and self.spec.engine.sleep:
            raise ConfigError(
                "sleep: True. Allowed with max_staleness above 0: False, because the server"
                " generates while the policy is updated."
            )
        if not self.spec.engine:
            self.weight_sync = CopiedWeights(self.hf_model, self.make_engine)

    def make_engine(self, model: PreTrainedModel) -> Engine:
        """Return an inference engine for the model, or for a copy of it."""
        head = self.lm_head.of_model(model)
        evaluator = self.evaluator.with_model(model)
        with self.autocast():  # caches are for the type in which the engine generates
            return evaluator.engine(head, self.chat_tokenizer.tokenizer, self.stop_conditions)

    def actor(self, key: int) -> CausalActor:
        """Return a sampler's handle on the policy, with random streams derived from `key`."""
        engine = AuxHeadEngine(
            self.weight_sync.engine(), self.evaluator, self.aux_heads, self.tokens_per_microbatch
        )
        batcher = self.make_batcher(engine)
        return CausalActor(
            self.chat_tokenizer,
            batcher,
            key,
            self.spec.sampling,
            self.policy_version,
            stop_conditions=self.stop_conditions,
        )

    @property
    def warnings(self) -> Sequence[str]:
        """Reasons why this policy is slower than expected, and a template file that has changed."""
        emulated = devices.dtype_warning(self.spec.dtype, self.hf_model.device)
        lines = [line for line in (self.evaluator.warning, emulated) if line]
        return [*lines, *template_warnings(self.spec.chat_template)]

    def encode_observation(self, rollout: Rollout, observation: Observation) -> tuple[int, ...]:
        """Tokens of the next observation of a rollout."""
        return self.chat_tokenizer.encode_observation(rollout, observation)

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Rows as `token` (N, L), right-padded, the `start` of their actions and their `length`."""
        rows = padding.encode(rollouts)
        if not self.spec.router_replay or not self.routers:
            return rows
        sizes = self.routers.sizes
        width = rows["token"].shape[1]
        return {**rows, ROUTES: encode_routes_of_rows(rollouts, width, sizes.layers * sizes.top_k)}

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        """`logp` and the signals in `names` of every action, (N, T), 0 where masked."""
        with self.reused_casts():
            routing = self.routers.row_routing(batch.inputs) if self.routers else None
            own = self.distributions(batch, routing)
            values = token_values(batch, names, own, self.signal_models, self.aux_heads)
            signals = scatter_to_batch(batch, values)
        if self.routers and routing:
            self.routers.last_sums = routing.sums()
            if ROUTER_LOSS in names:
                signals[ROUTER_LOSS] = self.routers.row_losses(routing, batch.inputs, batch.mask)
        return signals

    @torch.no_grad()
    def router_sums(self, batch: Batch) -> RouterSums:
        """Sums over the tokens of a batch of what the routers compute, without a gradient."""
        assert self.routers
        routing = self.routers.row_routing(batch.inputs)
        self.distributions(batch, routing)
        return routing.sums()

    def distributions(self, batch: Batch, routing: RowRouting | None = None) -> TokenDistributions:
        """Token distributions of a batch's actions, in the order of its mask."""
        token, start, length = (batch.inputs[name] for name in ("token", "start", "length"))
        row, action = batch.mask.nonzero(as_tuple=True)
        column = start[row] + action
        source = self.sharded if self.sharded and torch.is_grad_enabled() else self
        # transformers checkpoints gradients in training mode only; dropout is off
        source.hf_model.train(self.spec.gradient_checkpointing and torch.is_grad_enabled())
        with self.autocast():
            hidden = source.evaluator.hidden_states(token, length, row, column - 1, routing)
        actions = to_device(token[row, column], hidden.values.device)
        head = self._logits_head(source.lm_head)
        return TokenDistributions(hidden, actions, head, self.spec.sampling)

    def shard(self, mesh: "DeviceMesh") -> None:
        """Divide the trained weights among ranks, as `sharding` describes, before training.

        This policy then generates and scores with a whole copy of them, and computes gradients
        without compiled kernels.
        """
        options = self.spec.sharding or FSDP2()
        param_dtype = self.dtype if options.param_dtype else None
        self.sharded = ShardedModel(
            self.module,
            self.hf_model,
            self.evaluator,
            self.lm_head,
            mesh=mesh,
            options=options,
            param_dtype=param_dtype,
        )
        self.trained_module = self.sharded.module
        if param_dtype:
            self._convert_weights(param_dtype)

    def _convert_weights(self, dtype: torch.dtype) -> None:
        for parameter in self.module.parameters():
            parameter.data = parameter.data.to(dtype)
        self.evaluator = self.evaluator.with_module_calls(self.hf_model)

    def update_unsharded_copy(self) -> None:
        """Bring the unsharded copy of sharded weights up to date; every rank calls this."""
        if self.sharded:
            self.sharded.copy_to(self.module)

    def attach_aux_models(
        self,
        required_signals: Collection[str],
        reference_update: ReferenceUpdate,
        aux_models: Sequence[AuxModel],
    ) -> AuxModels:
        """Load every auxiliary model that `required_signals` names."""
        loaded, self.signal_models = load_aux_models(
            self, required_signals, reference_update, aux_models
        )
        return loaded

    def tokens_as_text(self, rollout: Rollout) -> Sequence[Sequence[str]]:
        """Text that each token of each response adds."""
        return [self.token_texts(response) for _, response in rollout.turns]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a prompt that leaves no room for an answer."""
        self.prompt_limit.validate_tasks(tasks)

    @property
    def prompt_limit(self) -> PromptLimit:
        """The largest prompt."""
        return language_model_limit(
            self.chat_tokenizer, self.context_length, self.spec.max_new_tokens
        )

    def attach_heads(self, aux_heads: Collection[AuxHead]) -> AuxHeads:
        """Create auxiliary heads; they do not belong to `parameters`."""
        hidden_size = self.hf_model.config.get_text_config().hidden_size
        self.aux_heads = AuxHeads(
            aux_heads,
            hidden_size,
            self.hf_model.device,
            make_model=self._load_head_model,
            dtype=torch.promote_types(self.dtype, torch.float32),
        )
        return self.aux_heads

    def microbatches(self, batch: Batch) -> Iterator[Tensor]:
        """Row indices of micro-batches of `tokens_per_microbatch`; shared prefixes count once."""
        token = batch.inputs["token"]
        length = batch.inputs["length"]
        self.max_rows = 0
        limit = self.tokens_per_microbatch
        with self.autocast():  # rows that were generated in this type have cached activations
            microbatches = list(self.evaluator.microbatches(token, length, limit))
        for rows in microbatches:
            self.max_rows = max(self.max_rows, len(rows))
            yield rows

    def load_frozen_copy(self) -> "CausalPolicy":
        """Load another policy from the same folder, frozen: the weights from before training.

        A model in memory is copied, which must be done before training.
        """
        policy = self._load_copy(replace(self.spec, router_replay=False))
        policy.module.requires_grad_(False)
        if self.sharded and self.sharded.param_dtype:
            policy._convert_weights(self.sharded.param_dtype)  # it computes as this one does
        return policy

    def _load_head_model(self, folder: str) -> "CausalPolicy":
        """Load the model of a head from a folder, or as this policy is before training."""
        spec = replace(self.spec, engine=None, sharding=None, router_replay=False)
        if folder:
            return type(self)(replace(spec, model=folder, start=None))
        policy = self._load_copy(spec)
        if self.has_adapters and not self.spec.quantization:  # both keep the same frozen weights
            own = dict(self.module.named_parameters())
            for name, parameter in policy.module.named_parameters():
                if not parameter.requires_grad:
                    parameter.data = own[name].data
        return policy

    def _load_copy(self, spec: CausalSpec) -> "CausalPolicy":
        if isinstance(spec.model, LoadedModel):
            spec = replace(spec, model=spec.model.copy())
        return type(self)(spec)

    def replace_prompt(self, rollout: Rollout, observation: Observation) -> Rollout:
        """The rollout with `observation` in place of its prompt."""
        return replace_prompt(self.chat_tokenizer, rollout, observation)

    def check_teacher(self, name: str, teacher: Any) -> None:
        """Raise `ConfigError` for a teacher with another vocabulary."""
        chat_tokenizer = getattr(teacher, "chat_tokenizer", None)
        teacher_vocab = chat_tokenizer.tokenizer.get_vocab() if chat_tokenizer else {}
        own_vocab = self.chat_tokenizer.tokenizer.get_vocab()
        if own_vocab != teacher_vocab:
            raise ConfigError(
                f"aux_models: {name!r} has {len(teacher_vocab)} tokens, which differ from the"
                f" policy's {len(own_vocab)}."
                f" Allowed: a model with the vocabulary of {self.spec.model!r}."
            )

    def _make_evaluator(self) -> Evaluator:
        return evaluator_for(self.hf_model, self.dtype, records_routes=self.spec.router_replay)

    def _find_routers(self) -> PolicyRouters | None:
        return policy_routers(self.spec, self.hf_model)

    def _make_weight_sync(self) -> LMWeightSync:
        if self.spec.engine:
            return vllm_weights(self, self.spec.engine, self.spec, self.stop_conditions)
        return SharedWeights(self.hf_model, self.make_engine)

    @property
    def logits_head(self) -> LogitsHead:
        """The LM head, computed in the policy's dtype."""
        return self._logits_head(self.lm_head)

    def _logits_head(self, lm_head: LMHead) -> LogitsHead:
        if self.dtype in FULL_PRECISION:
            return lm_head
        return AutocastHead(lm_head, self.device.type, self.dtype)
