"""A small character-level model on disk."""

from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<end>"


def make_small_model(
    folder: Path, characters: Sequence[str], peaked: float = 0.0, *, context: int = 64
) -> str:
    """Save a one-layer character-level Llama and return its folder.

    Args:
        folder: where to save it.
        characters: the vocabulary.
        peaked: standard deviation of the weight matrices; 0: the default initialization.
        context: the tokens that the model reads.
    """
    vocabulary = {char: token for token, char in enumerate([END, *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END).save_pretrained(folder)
    widths = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "max_position_embeddings": context}
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **widths, **heads, **ends))
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if peaked and p.ndim > 1):
            parameter.normal_(0, peaked)
    model.save_pretrained(folder)
    return str(folder)
