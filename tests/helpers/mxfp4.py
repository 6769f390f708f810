"""A tiny gpt-oss whose experts are stored in MXFP4: 4-bit numbers in blocks of 32 with a scale.

Source: OCP Microscaling Formats specification 1.0 (E2M1 values, E8M0 scales), and the names and
order of the tensors in openai/gpt-oss-20b.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.helpers.moe_models import save_moe

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # E2M1; the fourth bit is the sign
BLOCK = 32
BIAS = 127  # of the exponent of a scale


def save_mxfp4(folder: Path, **settings: bool) -> dict[str, Tensor]:
    """Save a gpt-oss with random experts in MXFP4; returns the experts in full precision, by name.

    Args:
        folder: Folder of the model.
        settings: Settings of config.json beside the name of the format.
    """
    save_moe(folder, "gpt_oss")
    file = folder / "model.safetensors"
    weights, whole = load_file(file), {}
    generator = torch.Generator().manual_seed(5)
    for name in [x for x in weights if x.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, inputs, outputs = weights.pop(name).shape
        shape = (experts, outputs, inputs // BLOCK)
        codes = torch.randint(16, (*shape, BLOCK), dtype=torch.uint8, generator=generator)
        exponents = torch.randint(-4, -1, shape, generator=generator)
        weights[f"{name}_blocks"] = codes[..., 0::2] | codes[..., 1::2] << 4
        weights[f"{name}_scales"] = (exponents + BIAS).to(torch.uint8)
        sign = 1 - 2 * (codes >> 3).float()
        values = sign * VALUES[(codes & 7).long()] * 2.0 ** exponents[..., None]
        whole[name] = values.reshape(experts, outputs, inputs).transpose(1, 2)
    save_file(weights, file, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", **settings}
    (folder / "config.json").write_text(json.dumps(config))
    return whole
