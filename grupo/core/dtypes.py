"""Compute dtypes by the name that recipes give them."""

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
