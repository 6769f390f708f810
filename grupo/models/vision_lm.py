"""Language models that also read images or audio: multimodal models of transformers as policies."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.core.types import Rollout
from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.config_file import check_config_file
from grupo.models.evaluator import Evaluator
from grupo.models.loaded import LoadedModel
from grupo.models.lora import Lora
from grupo.models.multimodal.evaluator import multimodal_evaluator_for
from grupo.models.multimodal.features import language_parameters
from grupo.models.multimodal.processor import MediaProcessor
from grupo.models.multimodal.processor_loading import ProcessorFiles, load_processor
from grupo.models.multimodal.tokenizer import MultimodalTokenizer
from grupo.models.trainable import Saveable
from grupo.util.errors import ConfigError

# a module whose name contains one of these is a projector
PROJECTOR_NAMES = "projector", "connector", "merger", "aligner"


@component
class VisionLM(CausalLM):
    """A vision-language or audio-language model of transformers.

    Its prompts are messages whose content holds images, videos or audio, such as
    {"type": "image", "image": …}.

    Args:
        train_tower: train the vision or audio tower, too. If it is frozen, the features of a
            picture are computed once.
        train_projector: train the layers between the tower and the language model, too.
        max_frames: frames of a video that the model reads, as images at equal distances.
    """

    train_tower: bool = False
    train_projector: bool = False
    max_frames: PositiveInt = 8

    def check(self) -> None:
        """Raise `ConfigError` for fields that a multimodal model cannot have."""
        super().check()
        if isinstance(self.model, LoadedModel):
            raise ConfigError("model: a LoadedModel. Allowed with images or audio: a folder.")
        for name in ("engine", "sharding", "quantization", "router_aux_loss", "router_replay"):
            if value := getattr(self, name):
                raise ConfigError(
                    f"{name}: {value!r}. Allowed with a model that reads images or audio: the"
                    " default."
                )

    def build(self) -> "VisionPolicy":
        """Load the model and its processor; raise `ConfigError` if they cannot be used."""
        self.check()
        return VisionPolicy(self)


class VisionPolicy(CausalPolicy):
    """A vision-language or audio-language model, loaded as its `VisionLM` describes."""

    spec: VisionLM  # pyrefly: ignore[bad-override-mutable-attribute]
    processor: MediaProcessor
    chat_tokenizer: MultimodalTokenizer  # pyrefly: ignore[bad-override-mutable-attribute]

    def _load(
        self, storage_dtype: torch.dtype, device: torch.device
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        name = str(self.spec.model)
        check_config_file(name)
        model, _ = loading.load(
            name,
            storage_dtype,
            device,
            loading.MULTIMODAL,
            allow_pickle=self.spec.allow_pickle,
        )
        self.processor = MediaProcessor(load_processor(name), model.config, name)
        for parameter in frozen_parameters(model, self.spec):
            parameter.requires_grad_(False)
        return model, self.processor.tokenizer

    def _make_chat_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> MultimodalTokenizer:
        plain = super()._make_chat_tokenizer(tokenizer)
        if self.spec.chat_template:  # both are exported
            for holder in (self.processor.processor, self.processor.tokenizer):
                holder.chat_template = plain.tokenizer.chat_template
        return MultimodalTokenizer.of(plain, self.processor, self.spec.max_frames)

    @property
    def saveable(self) -> Saveable:
        """The processor, which is exported with the model; the tokenizer is a part of it."""
        return ProcessorFiles(self.processor.processor, str(self.spec.model))

    @property
    def lora(self) -> Lora | None:
        """The adapters; "all-linear" stands for the linear layers that are not frozen."""
        lora = self.spec.lora
        if lora is None or lora.targets != "all-linear":
            return lora
        frozen = {id(p) for p in frozen_parameters(self.hf_model, self.spec)}
        head = self.hf_model.get_output_embeddings()
        names = [
            name
            for name, module in self.hf_model.named_modules()
            if isinstance(module, nn.Linear)
            and module is not head
            and id(module.weight) not in frozen
        ]
        return replace(lora, targets=tuple(names))

    def encode(self, rollouts: Sequence[Rollout]) -> Mapping[str, Tensor]:
        """Rows as `token` (N, L), with media tokens, and each row's `start` and `length`."""
        self.chat_tokenizer.register(rollouts)
        return super().encode(rollouts)

    def _find_routers(self) -> None:
        return None

    def _make_evaluator(self) -> Evaluator:
        return multimodal_evaluator_for(self.hf_model, self.processor, self.dtype)


def frozen_parameters(model: PreTrainedModel, spec: VisionLM) -> list[nn.Parameter]:
    """The parameters of the tower and of the projector that are not trained."""
    language = {id(p) for p in language_parameters(model)}
    frozen = list[nn.Parameter]()
    for name, parameter in model.named_parameters():
        is_projector = any(part in name for part in PROJECTOR_NAMES)
        is_trained = spec.train_projector if is_projector else spec.train_tower
        if id(parameter) not in language and not is_trained:
            frozen.append(parameter)
    return frozen
