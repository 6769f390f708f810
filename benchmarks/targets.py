"""The targets of the workloads with a real model, set before they were measured."""

from collections.abc import Mapping

ByPrecision = Mapping[str, float]

PEAK_FRAC = 0.4  # of TRL's peak memory, at most

_FULL: ByPrecision = {"float32": 4.0, "bfloat16": 6.0}

# TRL's seconds divided by grupo's, at least
SPEEDUP: Mapping[str, ByPrecision] = {
    "real-short": _FULL,
    "real-long": {"float32": 8.0, "bfloat16": 8.0},
    "real-group-16": _FULL,
    "real-lora": {"float32": 3.0, "bfloat16": 3.0},
}

# the seconds of another engine divided by grupo's when sampling, at least
SAMPLING: Mapping[str, ByPrecision] = {
    "dynamic": {"float32": 4.0, "bfloat16": 4.0},
    "static": {"float32": 4.0, "bfloat16": 4.0},
    "vllm": {"float32": 1.3, "bfloat16": 1.3},
    "bound": {"float32": 0.5, "bfloat16": 0.3},
}
