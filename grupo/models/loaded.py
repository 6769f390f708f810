"""A model of transformers that is in memory already, with its tokenizer, as the policy."""

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.models.config_file import check_config_file
from grupo.models.loading import check_vocabulary, disable_dropout, load
from grupo.models.quantization import Nf4
from grupo.util.errors import ConfigError
from grupo.util.in_memory import InMemory

# fields of peft's configuration that make adapters other than plain LoRA
UNSUPPORTED_LORA_FIELDS = (
    *("use_dora", "use_rslora", "use_qalora", "use_bdlora", "rank_pattern", "alpha_pattern"),
    *("modules_to_save", "layers_to_transform", "exclude_modules", "layer_replication"),
    *("lora_bias", "trainable_token_indices", "target_parameters", "alora_invocation_tokens"),
)


@dataclass(frozen=True, eq=False)
class LoadedModel(InMemory):
    """A causal language model and its tokenizer, which are in memory already.

    The model is trained in place: afterwards the same object has the trained weights. Dropout is
    switched off. A run with such a model cannot be resumed, because no file holds it.

    Args:
        model: A model of `AutoModelForCausalLM`, of which the parameters that require a gradient
            are trained; or a `PeftModel` with LoRA adapters, which are trained further.
        tokenizer: Its tokenizer.

    Raises:
        ConfigError: Policies cannot be made of this model, or the tokenizer is missing.
    """

    model: Any
    tokenizer: Any = None
    attention: str = field(init=False, default="eager")  # the model's own implementation

    def __post_init__(self) -> None:
        adapted = _as_peft_model(self.model)
        base = adapted.get_base_model() if adapted else self.model
        _check_causal_model(base)
        if not isinstance(self.tokenizer, PreTrainedTokenizerBase):
            kind = "None" if self.tokenizer is None else f"a {type(self.tokenizer).__name__}"
            raise ConfigError(
                f"LoadedModel.tokenizer: {kind}. Allowed: the model's tokenizer, such as"
                " AutoTokenizer.from_pretrained(…)."
            )
        if adapted:
            _check_adapters(adapted)
        else:
            _check_no_adapters(base)
        check_vocabulary(self.description, base, self.tokenizer)
        object.__setattr__(self, "attention", base.config._attn_implementation or "eager")

    __repr__ = InMemory.__repr__

    @property
    def base(self) -> PreTrainedModel:
        """The model of transformers; with adapters, the model that their layers are part of."""
        return self.adapters.get_base_model() if self.adapters else self.model

    @property
    def adapters(self) -> Any:
        """The `PeftModel`, or None without adapters."""
        return _as_peft_model(self.model)

    @property
    def description(self) -> str:
        """Class and number of parameters."""
        parameters = self.base.named_parameters()
        count = sum(p.numel() for name, p in parameters if "lora_" not in name)
        adapters = " with LoRA adapters" if self.adapters else ""
        return f"{type(self.base).__name__} of {count:,} parameters{adapters}"

    @property
    def remedy(self) -> str:
        """How to write the model to a folder."""
        if self.adapters:
            return (
                "save the adapters with model.save_pretrained('adapters') and start from them with"
                " with_model(recipe, 'adapters')"
            )
        return (
            "save both with model.save_pretrained('model') and tokenizer.save_pretrained('model')"
            " and name the folder, CausalLM('model')"
        )

    def prepare(self, storage_dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
        """Move the model to the device, with dropout off, and return the model of transformers.

        Args:
            storage_dtype: Type of the parameters; adapters are stored in float32.
            device: Where the model is trained.
        """
        self.release()
        adapters = self.adapters is not None
        if not adapters:
            _check_no_adapters(self.model)  # again: a run may have added them since
        for parameter in self.model.parameters():
            dtype = torch.float32 if adapters and parameter.requires_grad else storage_dtype
            parameter.data = parameter.data.to(dtype)
        self.model.to(device)
        disable_dropout(self.model)
        return self.base

    def release(self) -> None:
        """Make the model usable outside of grupo again: its own attention, evaluation mode."""
        self.base.set_attn_implementation(self.attention)
        self.model.eval()

    def copy(self) -> "LoadedModel":
        """An independent copy with the current weights."""
        model: Any = copy.deepcopy(self.model)
        base = model.get_base_model() if self.adapters else model
        base.set_attn_implementation(self.attention)
        return LoadedModel(model, self.tokenizer)


def _as_peft_model(model: object) -> Any:
    """The model if it is a `PeftModel`, otherwise None; without the import of peft, it is none."""
    if not isinstance(model, nn.Module) or isinstance(model, PreTrainedModel):
        return None
    from peft import PeftModel

    return model if isinstance(model, PeftModel) else None


def _check_causal_model(model: object) -> None:
    allowed = "a model of AutoModelForCausalLM, or a PeftModel on one"
    if not isinstance(model, PreTrainedModel):
        raise ConfigError(f"LoadedModel.model: a {type(model).__name__}. Allowed: {allowed}.")
    name = type(model).__name__
    config = model.config.get_text_config()
    if config.is_encoder_decoder or not model.can_generate():
        raise ConfigError(f"LoadedModel.model: {name} is no causal model. Allowed: {allowed}.")
    if getattr(model, "is_quantized", False):
        raise ConfigError(
            f"LoadedModel.model: a quantized {name}. Allowed: a model that is not quantized; or"
            " CausalLM(path, lora=Lora(16), quantization=Nf4())."
        )
    devices = {str(parameter.device) for parameter in model.parameters()}
    if len(devices) > 1 or "meta" in devices:
        raise ConfigError(
            f"LoadedModel.model: {name} on the devices {', '.join(sorted(devices))}. Allowed: one"
            " device, from_pretrained without device_map."
        )


def _check_adapters(model: Any) -> None:
    """Raise `ConfigError` for adapters other than plain LoRA ones that are trained."""
    name = model.active_adapter
    config = model.peft_config[name]
    unsupported = [field for field in UNSUPPORTED_LORA_FIELDS if getattr(config, field, None)]
    kind = getattr(config.peft_type, "value", config.peft_type)
    if kind != "LORA" or config.bias != "none" or unsupported or len(model.peft_config) > 1:
        details = ", ".join(unsupported) or f"{len(model.peft_config)} adapters of type {kind}"
        raise ConfigError(
            f"LoadedModel.model: a PeftModel with {details}. Allowed: one plain LoRA adapter."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            "LoadedModel.model: no parameter of the PeftModel requires a gradient. Load it with"
            " PeftModel.from_pretrained(…, is_trainable=True)."
        )


def _check_no_adapters(model: nn.Module) -> None:
    if any(hasattr(module, "lora_A") for module in model.modules()):
        raise ConfigError(
            "LoadedModel.model: it has LoRA layers, of an earlier training with lora or of"
            " get_peft_model. Allowed: the PeftModel itself, such as run.policy.module, or the"
            " model loaded again."
        )


def take_or_load(
    model: str | LoadedModel,
    storage_dtype: torch.dtype,
    device: torch.device,
    *,
    allow_pickle: bool,
    quantization: Nf4 | None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal model and its tokenizer, in memory already or loaded from a folder or a hub.

    Args:
        model: The model in memory, or folder or hub name.
        storage_dtype: Type of the stored weights.
        device: Where the model lives.
        allow_pickle: As for `loading.load`.
        quantization: As for `loading.load`.
    """
    if isinstance(model, LoadedModel):
        return model.prepare(storage_dtype, device), model.tokenizer
    check_config_file(model)
    return load(model, storage_dtype, device, allow_pickle=allow_pickle, quantization=quantization)
