"""The tiny multimodal models of tests: their folders load, and their logits depend on the media."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModelForMultimodalLM, AutoProcessor, AutoTokenizer

from grupo.models.quiet_loading import quiet_transformers
from tests.helpers import vision_families
from tests.helpers.vision_families import FAMILIES, SAMPLING_RATE, WITH_VIDEO


@pytest.mark.parametrize("name", FAMILIES)
def test_a_folder_has_all_weights_and_the_ids_of_its_placeholders(name: str, tmp_path: Path):
    folder = vision_families.save_model(tmp_path, name)
    with quiet_transformers():
        model, info = AutoModelForMultimodalLM.from_pretrained(folder, output_loading_info=True)
    ids = AutoTokenizer.from_pretrained(folder).get_vocab()
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    media = {"llava", "llava_onevision", "idefics3"}
    token = {"gemma3": "<image_soft_token>", "qwen2_audio": "<|AUDIO|>"}.get(name, "<|image_pad|>")
    kind = "audio" if name == "qwen2_audio" else "image"
    expected = ids["<image>" if name in media else token]
    assert getattr(model.config, f"{kind}_token_id") == expected


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in WITH_VIDEO])
def test_logits_of_the_last_token_depend_on_the_media(name: str, tmp_path: Path):
    folder = vision_families.save_model(tmp_path, name)
    with quiet_transformers():
        model = AutoModelForMultimodalLM.from_pretrained(folder).eval()
        processor: Any = AutoProcessor.from_pretrained(folder)
    kind = "audio" if name == "qwen2_audio" else "image"
    content = [{"type": kind}, {"type": "text", "text": "What is it?"}]
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    with torch.no_grad():
        first, again, other = (
            model(**_inputs(processor, kind, text, seed)).logits[0, -1] for seed in (0, 0, 1)
        )
    assert torch.equal(first, again)
    assert float((first - other).abs().max()) > 0.01


def _inputs(processor: Any, kind: str, text: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if kind == "audio":
        samples = rng.uniform(-1.0, 1.0, SAMPLING_RATE).astype(np.float32)
        media: dict[str, Any] = {"audio": [samples], "sampling_rate": SAMPLING_RATE}
    else:
        media = {"images": [Image.fromarray(rng.integers(0, 256, (48, 48, 3), dtype=np.uint8))]}
    return processor(text=[text], **media, return_tensors="pt", add_special_tokens=False)
