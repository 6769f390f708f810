"""Untrained models, as transformers saves them."""

from pathlib import Path

from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from grupo.core.component import piece
from grupo.core.rng import seed_torch
from grupo.toy.tokenizers import END


@piece
class Llama:
    """How large a Llama is; as it stands here it has 0.1 million parameters."""

    width: int = 64
    inner: int = 192
    layers: int = 2
    heads: int = 4
    context: int = 320

    def plant(self, folder: Path, tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> None:
        """Write a model with random weights into `folder`, and its tokenizer beside it."""
        logging.disable_progress_bar()
        seed_torch(seed, "plant")
        end = tokenizer.get_vocab()[END]
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.width,
            intermediate_size=self.inner,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            max_position_embeddings=self.context,
            tie_word_embeddings=True,
            eos_token_id=end,
            bos_token_id=None,
            pad_token_id=end,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
