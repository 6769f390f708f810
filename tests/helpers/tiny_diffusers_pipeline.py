"""A tiny Stable Diffusion 3 pipeline with random weights, saved by diffusers."""

from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    FlowMatchEulerDiscreteScheduler,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
)
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, CLIPTokenizer

CHARACTERS = [*map(chr, range(97, 123)), *(f"{chr(c)}</w>" for c in range(97, 123))]
SPECIAL = ["<|startoftext|>", "<|endoftext|>"]


def save_model(folder: Path) -> str:
    torch.manual_seed(0)
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *CHARACTERS])}
    config = CLIPTextConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=37,
        num_hidden_layers=2,
        num_attention_heads=4,
        projection_dim=32,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        max_position_embeddings=77,
    )
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)
    pipeline = StableDiffusion3Pipeline(
        transformer=SD3Transformer2DModel(
            sample_size=8,
            patch_size=1,
            in_channels=4,
            num_layers=1,
            attention_head_dim=8,
            num_attention_heads=4,
            caption_projection_dim=32,
            joint_attention_dim=64,
            pooled_projection_dim=64,
            out_channels=4,
        ),
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=AutoencoderKL(
            latent_channels=4,
            sample_size=16,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            block_out_channels=(8, 8),
            norm_num_groups=4,
            use_quant_conv=False,
            use_post_quant_conv=False,
            shift_factor=0.06,
            scaling_factor=1.5,
        ),
        text_encoder=CLIPTextModelWithProjection(config),
        text_encoder_2=CLIPTextModelWithProjection(config),
        text_encoder_3=None,
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        tokenizer_3=None,
    )
    pipeline.save_pretrained(folder)
    return str(folder)
