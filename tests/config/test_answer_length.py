"""A method's length and the policy's answer limit are one number."""

import pytest

from grupo.config.answer_length import check_answer_length, method_length
from grupo.method import Method
from grupo.methods.dapo import dapo
from grupo.methods.dler import dler
from grupo.methods.dr_grpo import dr_grpo
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError


def test_a_penalty_at_another_length_than_the_limit_is_refused():
    recipe = RECIPE.replace(method=dapo(max_length=512, overlong_buffer=64))
    with pytest.raises(ConfigError, match="max_new_tokens: 64, but max_length of OverlongPenalty"):
        check_answer_length(recipe)


def test_a_penalty_at_the_limit_is_allowed():
    check_answer_length(RECIPE.replace(method=dapo(max_length=64, overlong_buffer=16)))


def test_a_constant_divisor_may_be_any_number():
    check_answer_length(RECIPE.replace(method=dr_grpo(max_length=512)))


@pytest.mark.parametrize(
    ("method", "length"), [(Method(), 0), (dr_grpo(max_length=96), 96), (dler(4000), 4000)]
)
def test_the_length_that_a_method_is_made_for(method, length):
    assert method_length(method) == length
