"""Input embeddings of a multimodal model: those of tokens, and the features of media tokens."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.models.multimodal.features import MediaFeatures
from grupo.models.multimodal.media_tokens import LITERAL, is_media_token, split_tokens


class MediaEmbedding(nn.Embedding):
    """An embedding layer that also takes media tokens.

    It shares its weight with the layer that it replaces in the model.

    Args:
        layer: the layer, of the plain kind.
        features: computes what media tokens stand for.
    """

    def __init__(self, layer: nn.Embedding, features: MediaFeatures) -> None:
        nn.Module.__init__(self)
        vars(self).update({k: v for k, v in vars(layer).items() if not k.startswith("_")})
        self.weight = layer.weight
        self.training = layer.training
        self.features = [features]  # in a list: its model is no part of this module

    def forward(self, input: Tensor) -> Tensor:
        """Embeddings (*n, h) of tokens (*n)."""
        is_media = is_media_token(input)
        embedded = super().forward(input.masked_fill(is_media, 0) & ~LITERAL)
        if not bool(is_media.any()):
            return embedded
        key, index = split_tokens(input[is_media])
        keys, number = key.unique(return_inverse=True)
        values = [x.values for x in self.features[0](keys.tolist())]
        first = torch.tensor([0, *map(len, values)], device=input.device).cumsum(0)
        rows = torch.cat(values).index_select(0, first[number] + index)
        return embedded.masked_scatter(is_media[..., None], rows.to(embedded))


def install_media_embedding(model: PreTrainedModel, features: MediaFeatures) -> None:
    """Replaces the input embeddings of a model by those that take media tokens.

    Other embeddings than `nn.Embedding`, such as scaled ones, are not replaced: such models are
    evaluated by their own forward pass.
    """
    layer: Any = model.get_input_embeddings()
    if type(layer) is nn.Embedding:
        model.set_input_embeddings(MediaEmbedding(layer, features))
