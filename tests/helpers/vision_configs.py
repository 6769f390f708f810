"""Configurations of the tiny multimodal models.

Each function receives the number of each token of the vocabulary, and the options of the text part.
"""

from typing import Any

import transformers as hf
from transformers import PreTrainedConfig

CONTEXT = 512
PATCH = 8  # pixels along a patch
TILE = 32  # pixels along the pictures that towers of a fixed size read
SAMPLING_RATE = 16_000
SECONDS = 2  # of the longest sound
TEXT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
}
TOWER: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": TILE,
    "patch_size": PATCH,
}
QWEN_TOWER: dict[str, Any] = {"depth": 2, "num_heads": 2, "patch_size": PATCH}
SECTIONS: dict[str, Any] = {"rope_type": "default", "mrope_section": [2, 3, 3]}
PINPOINTS = [[TILE, TILE], [TILE, 2 * TILE], [2 * TILE, TILE], [2 * TILE, 2 * TILE]]


def llava_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    return hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**TOWER, projection_dim=32),
        text_config=hf.LlamaConfig(**text),
        image_token_index=ids["<image>"],
        image_seq_length=(TILE // PATCH) ** 2,
    )


def llava_onevision_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    return hf.LlavaOnevisionConfig(
        vision_config=hf.SiglipVisionConfig(**TOWER, vision_use_head=False),
        text_config=hf.Qwen2Config(**text),
        image_token_index=ids["<image>"],
        video_token_index=ids["<video>"],
        image_grid_pinpoints=PINPOINTS,
    )


def idefics3_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    return hf.Idefics3Config(
        vision_config=TOWER,
        text_config=hf.LlamaConfig(**text),
        image_token_id=ids["<image>"],
        scale_factor=2,
        pad_token_id=1,
    )


def gemma3_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    window = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 32}
    layers = ["sliding_attention", "full_attention"]
    return hf.Gemma3Config(
        vision_config=hf.SiglipVisionConfig(**TOWER),
        text_config=hf.Gemma3TextConfig(**{**window, "layer_types": layers, **text}),
        mm_tokens_per_image=4,
        boi_token_index=ids["<start_of_image>"],
        eoi_token_index=ids["<end_of_image>"],
        image_token_index=ids["<image_soft_token>"],
    )


def _qwen_tokens(ids: dict[str, int]) -> dict[str, Any]:
    return {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }


def qwen2_vl_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    tower = {**QWEN_TOWER, "embed_dim": 32, "hidden_size": text["hidden_size"], "mlp_ratio": 2}
    text = {**text, "rope_parameters": {**SECTIONS, "rope_theta": 1e4}}
    return hf.Qwen2VLConfig(vision_config=tower, text_config=text, **_qwen_tokens(ids))


def qwen2_5_vl_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    tower = {
        **QWEN_TOWER,
        "hidden_size": 32,
        "intermediate_size": 64,
        "out_hidden_size": text["hidden_size"],
        "window_size": 2 * 2 * PATCH,
        "fullatt_block_indexes": [1],
    }
    text = {**text, "rope_parameters": {**SECTIONS, "rope_theta": 1e4}}
    return hf.Qwen2_5_VLConfig(vision_config=tower, text_config=text, **_qwen_tokens(ids))


def qwen3_vl_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    tower = {
        **QWEN_TOWER,
        "hidden_size": 32,
        "intermediate_size": 64,
        "out_hidden_size": text["hidden_size"],
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
    }
    rope = {**SECTIONS, "mrope_interleaved": True, "rope_theta": 1e4}
    text = {"head_dim": 16, **text, "rope_parameters": rope}
    return hf.Qwen3VLConfig(vision_config=tower, text_config=text, **_qwen_tokens(ids))


def qwen2_audio_config(ids: dict[str, int], text: dict[str, Any]) -> PreTrainedConfig:
    tower = hf.Qwen2AudioEncoderConfig(
        num_mel_bins=32,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=64,
        d_model=32,
        max_source_positions=SECONDS * 50,
    )
    return hf.Qwen2AudioConfig(
        audio_config=tower,
        text_config=hf.Qwen2Config(**text),
        audio_token_index=ids["<|AUDIO|>"],
    )
