"""Padded rows of tokens and media tokens, evaluated by a multimodal model's own forward pass."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutputWithPooling

from grupo.inference.base import Engine, StopConditions
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.kernels.lm_head import LMHead
from grupo.models.evaluator import Evaluator, PaddedEvaluator
from grupo.models.multimodal.embedding import MediaEmbedding
from grupo.models.multimodal.features import Features, MediaFeatures
from grupo.models.multimodal.media_tokens import (
    LITERAL,
    is_media_token,
    keys_in_order,
    split_tokens,
)
from grupo.models.multimodal.processor import TOKEN_TYPES
from grupo.models.prompt_logprobs import PromptLogprobEngine
from grupo.util.device_copies import to_device


class FeaturesOutput(BaseModelOutputWithPooling):
    """The output of a tower, as forward passes of transformers take it."""

    deepstack_features: list[list[Tensor]] | None = None


@dataclass(frozen=True)
class ForwardInputs:
    """Arguments of a multimodal model's forward pass for rows that hold media tokens.

    Args:
        model: the model.
        features: of media, which several rows may share.
    """

    model: PreTrainedModel
    features: MediaFeatures

    def __call__(self, token: Tensor) -> dict[str, Any]:
        """The arguments for padded rows (N, L), `input_ids` among them."""
        token = self._with_literal_placeholders(token)
        is_media = is_media_token(token)
        if not bool(is_media.any()):
            return {"input_ids": to_device(token, self.model.device)}
        keys = [key for row in token for key in keys_in_order(row)]
        contents = [self.features.processor.encode(key) for key in keys]
        by_key = {content.key: content for content in contents}
        key, _ = split_tokens(token[is_media])
        token_ids = torch.tensor([by_key[k].token_id for k in key.tolist()])
        types = torch.tensor([TOKEN_TYPES[by_key[k].kind] for k in key.tolist()])
        values = {
            "input_ids": token.masked_scatter(is_media, token_ids),
            "mm_token_type_ids": torch.zeros_like(token).masked_scatter(is_media, types),
            "token_type_ids": is_media.long(),
        }
        names = inspect.signature(type(self.model.base_model).forward).parameters
        if "mm_encoder_outputs" not in names:
            return {"inputs_embeds": self.model.get_input_embeddings()(token)}
        for name in dict.fromkeys(n for x in contents for n in x.inputs):
            if name.endswith("_grid_thw"):  # sizes of pictures, from which positions follow
                values[name] = torch.cat([x.inputs[name] for x in contents if name in x.inputs])
        found = self.features(keys)
        outputs = {
            kind: _output([f for f, x in zip(found, contents, strict=True) if x.kind == kind])
            for kind in dict.fromkeys(x.kind for x in contents)
        }
        arguments = {
            name: to_device(x, self.model.device) for name, x in values.items() if name in names
        }
        return {**arguments, "mm_encoder_outputs": outputs}

    def _with_literal_placeholders(self, token: Tensor) -> Tensor:
        """The rows, in which generated placeholders differ from those of media."""
        if not isinstance(self.model.get_input_embeddings(), MediaEmbedding):
            return token
        ids = self.features.processor.placeholder_ids.values()
        is_literal = torch.isin(token, torch.tensor([*ids], device=token.device))
        return torch.where(is_literal, token | LITERAL, token)


def _output(features: Sequence[Features]) -> FeaturesOutput:
    values: Any = [x.values for x in features]
    is_stacked = all(x.is_stacked for x in features)
    output = FeaturesOutput(pooler_output=torch.stack(values) if is_stacked else values)
    layers = zip(*(x.deep for x in features), strict=True)
    output.deepstack_features = [list(layer) for layer in layers] or None
    return output


@dataclass(frozen=True)
class MultimodalPaddedEvaluator(PaddedEvaluator):
    """Evaluates right-padded rows with media by the model's own forward pass.

    Args:
        features: of media.
    """

    features: MediaFeatures

    def with_model(self, model: PreTrainedModel) -> Evaluator:
        return replace(self, model=model, features=self.features.with_model(model))

    @property
    def inputs(self) -> ForwardInputs:
        """Arguments of the model's forward pass."""
        return ForwardInputs(self.model, self.features)

    def model_arguments(self, token: Tensor) -> dict[str, Any]:
        return self.inputs(token)

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        engine = MultimodalGenerateEngine(
            self.model, tokenizer, stop_conditions, features=self.features
        )
        return PromptLogprobEngine(engine, self, head, stop_conditions)


@dataclass(frozen=True)
class MultimodalGenerateEngine(HFGenerateEngine):
    """Generation by transformers' own `generate`, from prompts with media."""

    features: MediaFeatures | None = None

    def model_arguments(self, token: Tensor) -> dict[str, Any]:
        assert self.features
        return ForwardInputs(self.model, self.features)(token)
