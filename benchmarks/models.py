"""Build models with random weights and a chosen probability of the end token.

python -m benchmarks.models short long
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from benchmarks.workloads import END_PROBABILITY, SAMPLING_WORKLOADS, WORKLOADS, Shape

END, PAD = 0, 1
MIN_LOGIT = -30.0  # low enough that the token is never sampled
ADAPTER_STD = 0.02  # of random adapters, as of the weights of transformers' models


def model_folder(shape: Shape) -> Path:
    """Return the folder of the model of that shape."""
    return Path(__file__).parent / ".models" / shape.name


def save_model(shape: Shape) -> None:
    """Save the model and its tokenizer, unless they exist."""
    if model_folder(shape).is_dir():
        return
    torch.manual_seed(0)
    model = LlamaForCausalLM(build_config(shape))
    probability = _set_end_probability(model, shape)
    print(f"{shape.name}: {model.num_parameters() / 1e6:.2f} M, P(end) = {probability:.4f}")
    temporary = model_folder(shape).with_suffix(".new")
    model.save_pretrained(temporary)
    _tokenizer(shape).save_pretrained(temporary)
    temporary.rename(model_folder(shape))


@torch.no_grad()
def randomize_adapters(module: nn.Module) -> None:
    """Give the adapters the same random values in every library; none of their gradients is 0."""
    generator = torch.Generator().manual_seed(0)
    for name, parameter in sorted(module.named_parameters()):
        if ".lora_" in name:
            parameter.normal_(std=ADAPTER_STD, generator=generator)


def build_config(shape: Shape) -> LlamaConfig:
    """Return the configuration of the model of that shape."""
    return LlamaConfig(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.query_heads,
        num_key_value_heads=shape.key_heads,
        intermediate_size=shape.intermediate_size,
        max_position_embeddings=shape.context_length,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=shape.tied,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=PAD,
    )


def _tokenizer(shape: Shape) -> PreTrainedTokenizerFast:
    words = {"</s>": END, "<pad>": PAD} | {f"w{i}": i for i in range(2, shape.vocab_size)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w2"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>")


@torch.no_grad()
def _set_end_probability(model: LlamaForCausalLM, shape: Shape) -> float:
    """Set the probability of the end token by a direction common to all last hidden states.

    A random model generates all tokens about equally often, whatever the context. A vector added to
    all embeddings is preserved up to the last layer; the end token's row of the head is parallel to
    it.
    """
    embedding = model.model.embed_tokens.weight
    head = model.lm_head.weight
    embedding += torch.randn(shape.hidden_size) * embedding.std()
    words = torch.randint(2, shape.vocab_size, (32, 46))
    hidden = model.model(words).last_hidden_state[:, 14:].flatten(0, 1)
    direction = hidden.mean(0) / hidden.mean(0).square().sum()
    head[PAD] = MIN_LOGIT * direction
    others = (hidden @ head[1:].T).logsumexp(1)
    logit = _bisect_logit(hidden @ direction, others) if shape.answers_end else MIN_LOGIT
    head[END] = logit * direction
    return _probability(hidden @ head[END], others)


def _bisect_logit(projection: Tensor, others: Tensor) -> float:
    """Return the factor for which the mean probability is `END_PROBABILITY`."""
    low, high = MIN_LOGIT, -MIN_LOGIT
    for _ in range(50):
        middle = (low + high) / 2
        below = _probability(middle * projection, others) < END_PROBABILITY
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def _probability(logit: Tensor, others: Tensor) -> float:
    return torch.sigmoid(logit - others).mean().item()


if __name__ == "__main__":
    disable_progress_bar()
    for name in sys.argv[1:]:
        save_model((WORKLOADS | SAMPLING_WORKLOADS)[name].shape)
