"""Fields of a causal language model in a recipe, and their checks."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from grupo.core.component import component
from grupo.core.dtypes import DtypeName
from grupo.core.ranges import NonEmptyString, NonNegativeFloat, PositiveInt
from grupo.core.signal_names import COMPARISONS, GROUP_SIGNALS, ROW_SIGNALS
from grupo.inference.sampling_params import Sampling
from grupo.inference.vllm import Vllm
from grupo.models import devices
from grupo.models.base import BUILTIN_MODELS
from grupo.models.config_file import check_rank
from grupo.models.loaded import LoadedModel
from grupo.models.lora import Lora
from grupo.models.quantization import Nf4
from grupo.models.sharding import FSDP2, check_sharding
from grupo.models.start_weights import StartWeights
from grupo.models.template_file import TemplateFile
from grupo.models.token_statistics import TOKEN_SIGNALS
from grupo.util.errors import ConfigError
from grupo.util.in_memory import MissingObject


@component
class CausalSpec:
    """A causal language model: its weights, how they are trained, and the limits of its answers.

    Args:
        model: folder, .gguf file or hub name; or a `LoadedModel`, which is in memory already.
        lora: low-rank adapters to train instead of all weights. Default: all weights.
        sharding: `FSDP2()` divides the trained weights, their gradients and the optimizer's state
            among the ranks. Default: every rank has all of them.
        quantization: `Nf4()` holds the weights below the adapters in 4 bits (QLoRA). Default: none.
        dtype: compute type, "float32" or "bfloat16"; float32 where the device would emulate it.
            "float64" is for checks of numbers.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        sampling: temperature and truncation of the token distribution.
        max_new_tokens: maximal length of an answer, in tokens.
        stop_strings: strings that end an answer, besides the end token.
        apply_chat_template: wrap plain prompts as a user message.
        chat_template: file of Jinja text in place of the model's own template; "" for the latter.
        chat_template_kwargs: variables of the template, such as {"enable_thinking": False}. A
            task's column of the same name replaces single ones.
        system_prompt: content of a system message before prompts that have none; "" for none.
        tokens_per_microbatch: tokens evaluated at once; prefixes that rows share count once.
        gradient_checkpointing: recompute activations in the backward pass to save memory.
        engine: server that generates. Default: this process generates.
        allow_pickle: also read weights from a pickle, whose author may be able to execute code.
        router_aux_loss: coefficient of the load-balancing loss of a mixture of experts, which is
            added to the method's loss.
        router_replay: the update uses the experts that were chosen while an answer was sampled.
            Ma et al., 2025, arXiv:2510.11370.
        start: trained weights to start from: `--model RUN` sets it. Default: those of `model`.
    """

    model: str | LoadedModel
    lora: Lora | None = None
    dtype: DtypeName = "float32"
    device: str = "auto"
    sampling: Sampling = Sampling()
    max_new_tokens: PositiveInt = 256
    stop_strings: tuple[NonEmptyString, ...] = ()
    apply_chat_template: bool = False
    tokens_per_microbatch: PositiveInt = 16384
    gradient_checkpointing: bool = False
    engine: Vllm | None = None
    allow_pickle: bool = False
    start: StartWeights | None = None
    quantization: Nf4 | None = None
    sharding: FSDP2 | None = None
    chat_template: str | TemplateFile = ""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    system_prompt: str = ""
    router_aux_loss: NonNegativeFloat = 0.0
    router_replay: bool = False

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals of a token."""
        return (*TOKEN_SIGNALS, *COMPARISONS, *ROW_SIGNALS, *GROUP_SIGNALS)

    @property
    def builtin_models(self) -> tuple[str, ...]:
        """Models that need no configuration."""
        return BUILTIN_MODELS

    def check(self) -> None:
        """Raise `ConfigError` for a missing device, or adapters that no memory holds."""
        if isinstance(self.model, MissingObject):
            raise self.model.error()
        if isinstance(self.model, LoadedModel):
            self._check_loaded()
        devices.resolve_device(self.device)
        check_rank(self.lora.rank if self.lora else 0)
        if self.start:
            self.start.check_lora(self.lora)
        if self.quantization:
            self._check_quantization(self.quantization)
        if self.sharding:
            check_sharding(self.sharding, self.dtype, self.quantization)
        if self.router_replay and self.engine:
            raise ConfigError(
                "router_replay: True, and the server of `engine` does not return the experts that"
                " it chooses. Allowed with an engine: False."
            )

    @property
    def adapters(self) -> Any:
        """The `PeftModel` in memory whose adapters are trained further, or None."""
        return self.model.adapters if isinstance(self.model, LoadedModel) else None

    @property
    def trains_adapters(self) -> bool:
        """Whether adapters are trained instead of all weights."""
        return bool(self.lora or self.adapters)

    def _check_loaded(self) -> None:
        """Raise `ConfigError` for fields that a model in memory cannot have."""
        for name in ("quantization", "engine", "sharding"):
            if value := getattr(self, name):
                raise ConfigError(
                    f"{name}: {value!r}. Allowed with a model in memory: None. In place of the"
                    " LoadedModel, name the model's folder."
                )
        if self.adapters and (self.lora or self.start):
            raise ConfigError(
                f"lora: {self.lora!r}. Allowed with a PeftModel, whose adapters are trained: None,"
                " without start."
            )

    def _check_quantization(self, quantization: Nf4) -> None:
        """Raise `ConfigError` if the library is missing, or the weights could not be trained."""
        quantization.check()
        if not self.lora:
            raise ConfigError(
                f"quantization: {quantization!r}, and quantized weights cannot be trained."
                " Allowed: with adapters, such as lora=Lora(16)."
            )
        if self.engine:
            raise ConfigError(
                f"quantization: {quantization!r}, and the server of `engine` would generate with"
                " other weights than those that are trained. Allowed: without engine."
            )
