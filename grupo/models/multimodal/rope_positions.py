"""Positions of tokens in models with multimodal rotary embeddings."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.packing.positions import join_axes
from grupo.models.multimodal.media_tokens import is_media_token, split_tokens
from grupo.models.multimodal.processor import TOKEN_TYPES, EncodedMedia, MediaProcessor


class MultimodalRowPositions:
    """The model's own positions of each token of a row, and of the token after it.

    Args:
        model: whose `get_rope_index` computes them.
        processor: finds the media of media tokens.
    """

    def __init__(self, model: PreTrainedModel, processor: MediaProcessor) -> None:
        self.base_model: Any = model.base_model
        self.processor = processor
        # rows of a group share all tokens up to the end of their last picture
        self.beginning = lru_cache(maxsize=1 << 10)(self._beginning)

    def __call__(self, tokens: Sequence[int]) -> Int[Tensor, "L+1"]:
        row = torch.tensor(tokens)
        media = is_media_token(row).nonzero()[:, 0]
        if not len(media):
            return torch.arange(len(tokens) + 1)
        end = int(media[-1]) + 1
        positions = self.beginning(tuple(tokens[:end]))
        after = int(positions.max()) + 1
        text = torch.arange(after, after + len(tokens) - end + 1).expand(3, -1)
        return join_axes(torch.cat([positions, text], 1))

    def _beginning(self, tokens: tuple[int, ...]) -> Int[Tensor, "3 L"]:
        """Positions of tokens of which the last is a media token."""
        row = torch.tensor(tokens)
        is_media = is_media_token(row)
        key, index = split_tokens(row[is_media])
        contents = {k: self.processor.encode(k) for k in key.tolist()}
        missing = contents[int(key[-1])].num_tokens - int(index[-1]) - 1
        starts = [contents[k] for k, i in zip(key.tolist(), index.tolist(), strict=True) if i == 0]
        token_ids = torch.tensor([contents[k].token_id for k in key.tolist()])
        types = torch.tensor([TOKEN_TYPES[contents[k].kind] for k in key.tolist()])
        token = _repeat_last(row.masked_scatter(is_media, token_ids), missing)
        token_types = _repeat_last(torch.zeros_like(row).masked_scatter(is_media, types), missing)
        positions, _ = self.base_model.get_rope_index(
            token[None], mm_token_type_ids=token_types[None].int(), **_grids(starts)
        )
        return positions[:, 0, : len(tokens)]


def _repeat_last(row: Tensor, count: int) -> Tensor:
    return torch.cat([row, row[-1:].expand(count)])


def _grids(contents: Sequence[EncodedMedia]) -> dict[str, Tensor]:
    """Sizes of the pictures, by their names among the processor's outputs."""
    names = dict.fromkeys(n for x in contents for n in x.inputs if n.endswith("_grid_thw"))
    return {n: torch.cat([x.inputs[n] for x in contents if n in x.inputs]) for n in names}
