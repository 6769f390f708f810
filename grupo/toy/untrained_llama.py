"""Untrained Llama models, saved for transformers."""

from pathlib import Path

from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from grupo.core.component import component
from grupo.toy.tokenizers import END_TOKEN
from grupo.util.rng import seed_torch


@component
class LlamaArchitecture:
    """The size of a Llama; the defaults have 0.1 million parameters.

    Args:
        hidden_size: Size of the hidden state.
        intermediate_size: Hidden size of the feed-forward layers.
        num_layers: Number of layers.
        num_heads: Number of attention heads.
        context_length: Longest sequence in tokens.
        initializer_range: Standard deviation of the initial weights; small models learn to copy
            digits with 0.08 in a tenth of the steps.
    """

    hidden_size: int = 64
    intermediate_size: int = 192
    num_layers: int = 2
    num_heads: int = 4
    context_length: int = 320
    initializer_range: float = 0.02

    def save_untrained(
        self, folder: Path, tokenizer: PreTrainedTokenizerFast, seed: int = 0
    ) -> None:
        """Save a model with random weights and its tokenizer to `folder`."""
        logging.disable_progress_bar()
        seed_torch(seed, "plant")
        end = tokenizer.get_vocab()[END_TOKEN]
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_hidden_layers=self.num_layers,
            num_attention_heads=self.num_heads,
            num_key_value_heads=self.num_heads,
            max_position_embeddings=self.context_length,
            initializer_range=self.initializer_range,
            tie_word_embeddings=True,
            eos_token_id=end,
            bos_token_id=None,
            pad_token_id=end,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
