"""The evaluator of a multimodal model: packed rows where they give the same hidden states."""

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.core.media import Audio, Image, Media
from grupo.kernels.exactness import ExpectedStates
from grupo.kernels.float32_precision import full_float32
from grupo.kernels.packing.hf_attention import (
    MODEL_ERRORS,
    PackedAttentionError,
    describe_failure,
    text_decoder,
)
from grupo.kernels.packing.positions import has_three_axes
from grupo.models.evaluator import Evaluator, packed_evaluator_for
from grupo.models.multimodal.embedding import install_media_embedding
from grupo.models.multimodal.features import MediaFeatures
from grupo.models.multimodal.padded import MultimodalPaddedEvaluator
from grupo.models.multimodal.processor import MediaProcessor
from grupo.models.multimodal.rope_positions import MultimodalRowPositions

TRIAL_PIXELS = 64  # width and height of the pictures that evaluators are compared with
TRIAL_SECONDS = 0.5


def multimodal_evaluator_for(
    model: PreTrainedModel, processor: MediaProcessor, dtype: torch.dtype
) -> Evaluator:
    """The fastest evaluator for a multimodal model, which is compared on rows with media.

    Args:
        model: the model.
        processor: its processor.
        dtype: of its computations.
    """
    features = MediaFeatures(model, processor)
    install_media_embedding(model, features)
    try:
        return _packed_evaluator(model, features, dtype)
    except PackedAttentionError as error:
        return MultimodalPaddedEvaluator(model, features, reason=str(error))


def _packed_evaluator(
    model: PreTrainedModel, features: MediaFeatures, dtype: torch.dtype
) -> Evaluator:
    """An evaluator of packed rows, which must be as exact on media as the model itself.

    Raises:
        PackedAttentionError: the model keeps its own attention.
    """
    padded = MultimodalPaddedEvaluator(model, features)
    rows, length = trial_rows(features.processor)
    expected = ExpectedStates.of(lambda: _hidden_states(padded, rows, length))
    before = text_decoder(model).config._attn_implementation or "eager"
    positions = MultimodalRowPositions(model, features.processor) if has_three_axes(model) else None
    packed = packed_evaluator_for(model, dtype, positions)
    try:
        problem = expected.deviation(_hidden_states(packed, rows, length))
    except MODEL_ERRORS as error:
        problem = describe_failure(error)
    if problem:
        text_decoder(model).set_attn_implementation(before)
        raise PackedAttentionError(f"{problem} on rows with media")
    return packed


def trial_rows(processor: MediaProcessor) -> tuple[Tensor, Tensor]:
    """Two rows of tokens (2, L) that begin with different media, and their lengths (2,)."""
    rows = [torch.tensor(_trial_row(processor, seed)) for seed in range(2)]
    length = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), length


def _trial_row(processor: MediaProcessor, seed: int) -> tuple[int, ...]:
    media = [_noise(kind, seed) for kind in processor.placeholder_ids if kind != "video"]
    content = [*({"type": x.kind} for x in media), {"type": "text", "text": "a b" + " c" * seed}]
    message = {"role": "user", "content": content}
    return processor.tokens(processor.render(message), media)


def _noise(kind: str, seed: int) -> Media:
    rng = np.random.default_rng(seed)
    if kind == "image":
        pixels = rng.integers(0, 256, (TRIAL_PIXELS, TRIAL_PIXELS, 3), dtype=np.uint8)
        return Image.from_pixels(pixels)
    return Audio.from_samples(rng.uniform(-1.0, 1.0, int(16_000 * TRIAL_SECONDS)), 16_000)


@torch.no_grad()
@full_float32()
def _hidden_states(evaluator: Evaluator, token: Tensor, length: Tensor) -> Tensor:
    columns = torch.arange(token.shape[1]).expand_as(token)
    row, column = (columns < length[:, None]).nonzero(as_tuple=True)
    return evaluator.hidden_states(token, length, row, column).values
