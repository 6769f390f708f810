"""Compute dtypes by the name that recipes give them."""

from typing import Literal

import torch

from grupo.core.component import walk

DtypeName = Literal["float32", "bfloat16", "float64"]
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,  # to check formulas: several times slower
}
FULL_PRECISION = (torch.float32, torch.float64)  # weights have the type of the computations
# mean difference, in nats, between log-probabilities that are computed in two ways. Measured with
# SmolLM2-135M at temperature 1: 3e-6 to 6e-6 in float32; in bfloat16 0.033 with all weights and
# 0.041 with adapters, mostly from the rounding of the logits
FLOAT32_LOGP_ERROR = 1e-3
BFLOAT16_LOGP_ERROR = 0.05  # a quarter of PPO's clip range


def logp_rounding(policy: object) -> float:
    """The mean difference of log-probabilities of sampler and trainer that rounding explains.

    Args:
        policy: Specification of the policy, as a component or as the data of its recipe. It is
            coarse if any part of it, such as its engine, computes in bfloat16.

    >>> logp_rounding({"dtype": "float32", "engine": {"dtype": "bfloat16"}})
    0.05
    """
    is_coarse = any(isinstance(part, str) and part == "bfloat16" for part in walk(policy))
    return BFLOAT16_LOGP_ERROR if is_coarse else FLOAT32_LOGP_ERROR
