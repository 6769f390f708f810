"""Rows that implementations are compared on: ordinary tokens, also in small vocabularies."""

from itertools import pairwise

import pytest
from transformers import AutoConfig, LlamaConfig

from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.trial_rows import TREES, ordinary_tokens, trial_rows
from tests.helpers import vision_families
from tests.helpers.attention_models import SUPPORTED
from tests.helpers.recurrent_model import random_model


def config(size: int, **tokens: int | list[int]) -> LlamaConfig:
    """A configuration whose special tokens are only those that it names."""
    unnamed = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    return LlamaConfig(vocab_size=size, **{**unnamed, **tokens})


def test_tokens_are_spread_over_the_middle_half_of_a_vocabulary():
    # tokens 12,288 to 36,863 in steps of 24,576 / 8
    expected = [12288 + 3072 * number for number in range(8)]
    assert ordinary_tokens(config(49152)) == expected


def test_special_tokens_that_the_configuration_names_are_left_out():
    plain = ordinary_tokens(config(49152))
    named = ordinary_tokens(
        config(49152, eos_token_id=plain[:3], bos_token_id=plain[4], image_token_index=plain[7])
    )
    assert not set(named) & {*plain[:3], plain[4], plain[7]}
    assert all(12000 < token < 37000 for token in named)


def test_a_vocabulary_of_four_tokens_gives_all_of_them():
    assert ordinary_tokens(config(4)) == [0, 1, 2, 3, 0, 1, 2, 3]
    assert ordinary_tokens(config(4, eos_token_id=2)) == [0, 1, 3, 0, 1, 3, 0, 1]
    assert ordinary_tokens(config(4, eos_token_id=[0, 1, 2])) == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("name", vision_families.FAMILIES)
def test_no_token_of_a_multimodal_model_stands_for_media(name, tmp_path):
    folder = vision_families.save_model(tmp_path, name)
    special = range(len(vision_families.FAMILIES[name].special_tokens))
    assert not set(ordinary_tokens(AutoConfig.from_pretrained(folder))) & set(special)


def test_rows_are_two_trees_of_three_rows():
    rows = trial_rows(random_model(SUPPORTED["llama"]()))
    first, second = rows[:3], rows[3:]
    assert not set(first.flatten().tolist()) & set(second.flatten().tolist())
    for tree in (first, second):
        common = [(a == b).int().cumprod(0).sum().item() for a, b in pairwise(tree)]
        assert common == [3, 2]
    assert len(pack(rows, TREES.new_full((6,), 5), min_saved=1).token) == 2 * (5 + 2 + 3)
