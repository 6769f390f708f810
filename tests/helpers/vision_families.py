"""Tiny multimodal models with random weights, with their real processors and chat templates.

`save_model(folder, "qwen2_vl")` writes a folder as model hubs have it, without downloads. Image
processors are those on Pillow, which transformers takes where torchvision is missing. Its video
processors need torchvision, and so does `AutoProcessor` for the families in `WITH_VIDEO`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedConfig, PreTrainedTokenizerFast

from grupo.models.quiet_loading import quiet_transformers
from tests.helpers import media_chat_templates, vision_configs
from tests.helpers.vision_configs import PATCH, PINPOINTS, SAMPLING_RATE, SECONDS, TEXT, TILE


@dataclass(frozen=True)
class Family:
    """How the tiny model of a family is made.

    Args:
        special_tokens: its special tokens; the first one ends answers, the second one pads.
        chat_template: its chat template.
        config: its configuration, given the numbers of tokens and the options of the text part.
        processor: class of its processor.
        parts: makes the image processor or the feature extractor, by its name.
        options: further arguments of the processor.
        named_tokens: tokens that its processor reads as attributes of the tokenizer.
    """

    special_tokens: tuple[str, ...]
    chat_template: str
    config: Callable[[dict[str, int], dict[str, Any]], PreTrainedConfig]
    processor: str
    parts: Callable[[], dict[str, Any]]
    options: dict[str, Any]
    named_tokens: dict[str, str]


def tokenizer_of(family: Family) -> PreTrainedTokenizerFast:
    """A token for each byte, behind the special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*family.special_tokens, *alphabet]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(x, special=True) for x in family.special_tokens])
    end, pad = family.special_tokens[:2]
    named = {"extra_special_tokens": family.named_tokens} if family.named_tokens else {}
    bos = {"bos_token": "<bos>"} if "<bos>" in family.special_tokens else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=end, pad_token=pad, **bos, **named
    )


def save_model(folder: Path, name: str, **text: Any) -> Path:
    """Save a random model with peaked distributions, and its processor.

    Args:
        folder: where it is written.
        name: one of `FAMILIES`.
        text: changes of the configuration of its text part.
    """
    family = FAMILIES[name]
    tokenizer = tokenizer_of(family)
    ends = {"eos_token_id": 0, "pad_token_id": 1, "bos_token_id": None}
    with quiet_transformers():
        config = family.config(
            tokenizer.get_vocab(), {**TEXT, **ends, "vocab_size": len(tokenizer), **text}
        )
        torch.manual_seed(1)
        model = hf.AutoModelForMultimodalLM.from_config(config)
        with torch.no_grad():
            for parameter in (p for p in model.parameters() if p.ndim > 1):
                parameter.normal_(0, 0.2)
        model.generation_config.eos_token_id, model.generation_config.pad_token_id = 0, 1
        model.save_pretrained(folder)
        _save_processor(folder, family, tokenizer)
    return folder


def _save_processor(folder: Path, family: Family, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write the files of the processor; its class cannot be built without a video processor."""
    tokenizer.chat_template = family.chat_template
    tokenizer.save_pretrained(folder)
    parts = {name: json.loads(part.to_json_string()) for name, part in family.parts().items()}
    settings = {**family.options, **parts, "processor_class": family.processor}
    (folder / "processor_config.json").write_text(json.dumps(settings, indent=2))


def _qwen_images() -> dict[str, Any]:
    size = {"shortest_edge": (2 * PATCH) ** 2, "longest_edge": (8 * PATCH) ** 2}
    return {"image_processor": hf.Qwen2VLImageProcessorPil(size=size, patch_size=PATCH)}


def _squares() -> dict[str, int]:
    return {"height": TILE, "width": TILE}


QWEN_TOKENS = (
    *("<|im_end|>", "<|endoftext|>", "<|im_start|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
)
TILE_TOKENS = tuple(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2))
FAMILIES = {
    "llava": Family(
        ("</s>", "<pad>", "<image>"),
        media_chat_templates.LLAVA,
        vision_configs.llava_config,
        "LlavaProcessor",
        lambda: {
            "image_processor": hf.CLIPImageProcessorPil(
                size={"shortest_edge": TILE}, crop_size=_squares()
            )
        },
        {
            "patch_size": PATCH,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
        {},
    ),
    "llava_onevision": Family(
        ("<|im_end|>", "<|endoftext|>", "<|im_start|>", "<image>", "<video>"),
        media_chat_templates.LLAVA_ONEVISION,
        vision_configs.llava_onevision_config,
        "LlavaOnevisionProcessor",
        lambda: {
            "image_processor": hf.LlavaOnevisionImageProcessorPil(
                size=_squares(), image_grid_pinpoints=PINPOINTS
            )
        },
        {"num_image_tokens": (TILE // PATCH) ** 2, "vision_feature_select_strategy": "full"},
        {},
    ),
    "qwen2_vl": Family(
        QWEN_TOKENS,
        media_chat_templates.QWEN2_VL,
        vision_configs.qwen2_vl_config,
        "Qwen2VLProcessor",
        _qwen_images,
        {},
        {},
    ),
    "qwen2_5_vl": Family(
        QWEN_TOKENS,
        media_chat_templates.QWEN2_VL,
        vision_configs.qwen2_5_vl_config,
        "Qwen2_5_VLProcessor",
        _qwen_images,
        {},
        {},
    ),
    "qwen3_vl": Family(
        QWEN_TOKENS,
        media_chat_templates.QWEN3_VL,
        vision_configs.qwen3_vl_config,
        "Qwen3VLProcessor",
        _qwen_images,
        {},
        {},
    ),
    "idefics3": Family(  # the first SmolVLM is of this family
        (
            *("<end_of_utterance>", "<pad>", "<|im_start|>", "<image>"),
            *("<fake_token_around_image>", "<global-img>", *TILE_TOKENS),
        ),
        media_chat_templates.IDEFICS3,
        vision_configs.idefics3_config,
        "Idefics3Processor",
        lambda: {
            "image_processor": hf.Idefics3ImageProcessorPil(
                size={"longest_edge": 2 * TILE}, max_image_size={"longest_edge": TILE}
            )
        },
        {"image_seq_len": 4},
        {},
    ),
    "gemma3": Family(
        (
            *("<end_of_turn>", "<pad>", "<bos>", "<start_of_turn>"),
            *("<start_of_image>", "<end_of_image>", "<image_soft_token>"),
        ),
        media_chat_templates.GEMMA3,
        vision_configs.gemma3_config,
        "Gemma3Processor",
        lambda: {"image_processor": hf.Gemma3ImageProcessorPil(size=_squares())},
        {"image_seq_length": 4},
        {
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>",
        },
    ),
    "qwen2_audio": Family(
        (
            *("<|im_end|>", "<|endoftext|>", "<|im_start|>"),
            *("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"),
        ),
        media_chat_templates.QWEN2_AUDIO,
        vision_configs.qwen2_audio_config,
        "Qwen2AudioProcessor",
        lambda: {
            "feature_extractor": hf.WhisperFeatureExtractor(
                feature_size=32, sampling_rate=SAMPLING_RATE, chunk_length=SECONDS
            )
        },
        {},
        {},
    ),
}
WITH_VIDEO = ("llava_onevision", "qwen2_vl", "qwen2_5_vl", "qwen3_vl")
"""Families whose processors have a part for videos."""
WITH_IMAGES = tuple(name for name in FAMILIES if name != "qwen2_audio")
