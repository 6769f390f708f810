"""flex_attention with all scores in memory, for any device and with gradients."""

from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import AuxOutput, AuxRequest


def plain_flex_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    block_mask: Any,
    score_mod: Any,
    return_aux: AuxRequest | None = None,
    **_: Any,
) -> Any:
    """Attention with all scores, and the mask and softcap of flex_attention."""
    queries, keys = (torch.arange(x.shape[2], device=x.device) for x in (q, k))
    zero = torch.zeros((), dtype=torch.long, device=q.device)
    allowed = block_mask.mask_mod(zero, zero, queries[:, None], keys)
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, 1) for x in (k, v))
    scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * scale
    scores = score_mod(scores, zero, zero, queries[:, None], keys) if score_mod else scores
    scores = scores.masked_fill(~allowed, -inf)
    out = scores.softmax(-1).to(v) @ v
    return (out, AuxOutput(lse=scores.logsumexp(-1))) if return_aux else out
