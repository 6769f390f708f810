"""flex_attention with all scores in memory, for any device and with gradients."""

from math import inf
from typing import Any

import torch
from torch import Tensor


def plain_flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, block_mask: Any, score_mod: Any, **_: Any
) -> Tensor:
    """Attention with all scores, and the mask and softcap of flex_attention."""
    queries, keys = (torch.arange(x.shape[2], device=x.device) for x in (q, k))
    zero = torch.zeros((), dtype=torch.long, device=q.device)
    allowed = block_mask.mask_mod(zero, zero, queries[:, None], keys)
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * scale
    scores = score_mod(scores, zero, zero, queries[:, None], keys) if score_mod else scores
    return scores.masked_fill(~allowed, -inf).softmax(-1).to(v) @ v
