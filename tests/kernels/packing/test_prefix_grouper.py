"""A group's prompt is read once: tokens, log-probabilities and gradients of Prefix Grouper."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.prefix_trie import PackedTokens, pack
from grupo.kernels.packing.tree_attention import TreeAttention
from tests.helpers.packed_rows import padded
from tests.helpers.recurrent_model import random_model
from tests.helpers.tiny_lm import FAMILIES

PROMPT = [11, 7, 23, 5, 42]
ANSWERS = [[31, 8], [19, 27, 4, 16], [50, 12, 33]]
TOKEN, LENGTH = padded([[*PROMPT, *answer] for answer in ANSWERS])
ANSWER_TOKENS = [(row, len(PROMPT) + i) for row, x in enumerate(ANSWERS) for i in range(len(x))]


def packed_rows() -> PackedTokens:
    """The prompt with its three answers as one sequence."""
    return pack(TOKEN, LENGTH, min_saved=1)


def repeated(model: Any) -> Tensor:
    """Hidden states of three rows, each with the prompt, by the model's own attention."""
    return model.base_model(input_ids=TOKEN, use_cache=False).last_hidden_state


def grouped(model: Any) -> Tensor:
    """Hidden states of the same rows, read from the packed sequence."""
    packed = packed_rows()
    attention = TreeAttention(packed)
    return hf_attention.forward_packed(model, packed.token, packed.position, attention)[
        packed.token_index
    ]


def answer_logits(model: Any, hidden: Tensor) -> Tensor:
    """Logits of the 9 answer tokens: each is predicted by the token before it.

    The first token of every answer is predicted by the last token of the prompt.
    """
    return torch.stack([model.lm_head(hidden[row, column - 1]) for row, column in ANSWER_TOKENS])


def gradients(model: nn.Module, logits: Tensor) -> list[Tensor]:
    """Gradients of all parameters for the log-probabilities of the answers, weighted by row."""
    token = torch.tensor([TOKEN[place] for place in ANSWER_TOKENS])
    logp = logits.log_softmax(-1).gather(1, token[:, None])[:, 0]
    advantage = torch.tensor([(1.0, -0.5, 2.0)[row] for row, _ in ANSWER_TOKENS])
    (advantage * logp).mean().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


def test_a_group_has_14_tokens_instead_of_24():
    packed = packed_rows()
    assert LENGTH.sum() == 3 * 5 + 2 + 4 + 3 == 24
    assert len(packed.token) == 5 + 2 + 4 + 3 == 14
    assert sorted(packed.token.tolist()) == sorted(chain(PROMPT, *ANSWERS))
    # the positions of every answer begin at the length of the prompt
    assert sorted(packed.position.tolist()) == sorted([*range(5), 5, 6, 5, 6, 7, 8, 5, 6, 7])


def test_the_tokens_of_the_prompt_are_read_once_whatever_the_group_size():
    for group_size in (1, 2, 8):
        rows = [[*PROMPT, 60 + i, i] for i in range(group_size)]
        assert len(pack(*padded(rows), min_saved=1).token) == 5 + 2 * group_size


def test_logits_and_gradients_equal_those_of_repeated_prompts():
    one, other = (random_model(FAMILIES["llama"]()) for _ in range(2))
    hf_attention.use_packed_attention(one)
    actual, expected = answer_logits(one, grouped(one)), answer_logits(other, repeated(other))
    assert actual.shape[0] == 9
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
    pairs = list(zip(gradients(one, actual), gradients(other, expected), strict=True))
    assert len(pairs) == len(list(one.parameters()))
    for x, y in pairs:
        assert (x - y).abs().max() < 1e-5 * y.abs().max()


def test_an_answer_does_not_depend_on_the_answers_beside_it():
    model = random_model(FAMILIES["llama"]())
    hf_attention.use_packed_attention(model)
    logits = answer_logits(model, grouped(model))
    alone = pack(TOKEN[:1, :7], LENGTH[:1], min_saved=1)
    hidden = hf_attention.forward_packed(model, alone.token, alone.position, TreeAttention(alone))
    torch.testing.assert_close(model.lm_head(hidden[4:6]), logits[:2], atol=1e-5, rtol=1e-5)
