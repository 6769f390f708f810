"""A judge by the log-probabilities of two replies."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM

from grupo.core.types import Response, Rollout, Task
from grupo.core.usage import count_external_usage
from grupo.rewards import LikelierReply, LocalModel
from grupo.rewards.judges import JudgeError
from grupo.rewards.judges.frozen_model import load_frozen
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import CONTEXT, TEMPLATE, save_model

TASK = Task("k", "Q")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("judge")
    folder = save_model(path, tokenizer_options={"chat_template": TEMPLATE})
    return LocalModel(str(folder), dtype="float32", device="cpu", max_tokens=8)


def answer(text):
    return Rollout((("Q", Response((), (), text=text)),))


def scored(judge, *texts):
    return run_coroutine(judge(TASK, [answer(text) for text in texts]))


def test_the_log_probability_of_a_reply_is_the_sum_over_its_tokens(model):
    frozen = load_frozen(
        model.model, "float32", "cpu", temperature=0.0, max_tokens=8, allow_pickle=False
    )
    messages = ({"role": "user", "content": "Good?"},)
    context = frozen.chat_tokenizer.encode_observation(Rollout(), messages)
    reply = frozen.chat_tokenizer.encode_forced("YES")
    plain = AutoModelForCausalLM.from_pretrained(model.model, dtype=torch.float32)
    with torch.no_grad():
        logits = plain(torch.tensor([[*context, *reply]])).logits[0]
    logp = logits.log_softmax(-1)
    rows = range(len(context) - 1, len(context) + len(reply) - 1)
    expected = sum(logp[row, token].item() for row, token in zip(rows, reply, strict=True))
    ((yes, no),) = run_coroutine(model.reply_logprobs([messages], ("YES", "NO")))
    assert yes == pytest.approx(expected, abs=1e-4)
    assert no != pytest.approx(yes, abs=1e-4)


def test_the_score_is_1_where_yes_is_likelier_and_exchanged_replies_exchange_it(model):
    judge = LikelierReply(model, "{completion} Good?")
    exchanged = LikelierReply(model, "{completion} Good?", yes="NO", no="YES")
    for value, other in zip(scored(judge, "a", "bb"), scored(exchanged, "a", "bb"), strict=True):
        assert value["margin"] == pytest.approx(-other["margin"], abs=1e-4)
        assert math.copysign(1, value["margin"]) == 2 * value["score"] - 1
        assert value["score"] + other["score"] == 1


def test_an_answer_that_fills_the_context_fails_alone(model):
    with count_external_usage() as usage:
        too_long, fits = scored(LikelierReply(model, "{completion}"), "x" * CONTEXT, "a")
    assert usage == {"judge_failed": 1.0, "judge_calls": 1.0}
    assert isinstance(too_long, JudgeError)
    assert f"a context of {CONTEXT} tokens" in str(too_long)
    assert set(fits) == {"score", "margin"}


def test_a_prompt_without_the_answer_is_refused(model):
    with pytest.raises(ConfigError, match=r"prompt.*\{completion\}"):
        LikelierReply(model, "Good?")
