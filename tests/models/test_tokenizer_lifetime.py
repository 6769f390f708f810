"""A tokenizer is freed with its policy: no cache of the process keeps it."""

import gc
import weakref

import pytest

from grupo.core.types import Response, Rollout
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.detokenize import TokenTexts
from tests.helpers.chat_templates import make_chat_tokenizer


@pytest.mark.slow
def test_a_tokenizer_that_was_used_is_freed_with_its_users():
    tokenizer = make_chat_tokenizer("chatml").tokenizer
    users = [ChatTokenizer(tokenizer, (0,)), TokenTexts(tokenizer)]
    assert users[0].encode_observation(Rollout(), "a")
    assert users[1](Response((1,), ()))
    alive = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert alive() is not None
    users.clear()
    gc.collect()
    assert alive() is None
