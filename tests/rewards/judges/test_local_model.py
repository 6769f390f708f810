"""A frozen model of transformers as a judge."""

import pytest

from grupo.core.usage import count_external_usage
from grupo.rewards import LocalModel
from grupo.rewards.judges import ChatReply, JudgeError
from grupo.rewards.judges.frozen_model import load_frozen
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import CONTEXT, TEMPLATE, save_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("judge")
    return str(save_model(path, tokenizer_options={"chat_template": TEMPLATE}))


def judge(folder, **fields):
    return LocalModel(folder, dtype="float32", device="cpu", **{"max_tokens": 8, **fields})


def conversation(text):
    return ({"role": "user", "content": text},)


def complete(model, *texts):
    with count_external_usage() as usage:
        replies = run_coroutine(model.complete([conversation(text) for text in texts]))
    return replies, usage


def test_a_reply_and_its_tokens_are_counted(folder):
    (reply,), usage = complete(judge(folder), "Good?")
    assert isinstance(reply, ChatReply)
    assert len(reply.text) <= reply.completion_tokens <= 8
    assert reply.prompt_tokens == len("Good?") + 2  # the two roles are a token each
    assert usage == {
        "judge_calls": 1.0,
        "judge_prompt_tokens": 7.0,
        "judge_completion_tokens": float(reply.completion_tokens),
    }


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_the_same_group_has_the_same_replies_in_every_call(folder, temperature):
    model = judge(folder, temperature=temperature)
    texts = ("Good?", "A much longer question?", "Bad?", "Good?")
    first, _ = complete(model, *texts)
    complete(model, "Another group, in between.")
    assert complete(model, *texts)[0] == first
    assert first[0] == first[3]


def test_samples_depend_on_the_conversation(folder):
    texts = [f"Question {i}?" for i in range(6)]
    replies, _ = complete(judge(folder, temperature=3.0), *texts)
    assert len({reply.text for reply in replies}) > 1


def test_a_reply_that_reaches_the_limit_is_marked_as_cut(folder):
    (reply,), _ = complete(judge(folder, max_tokens=1), "Good?")
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 1)


def test_a_conversation_longer_than_the_context_is_an_error_and_the_others_are_not(folder):
    (error, reply), usage = complete(judge(folder), "x" * CONTEXT, "Good?")
    assert isinstance(error, JudgeError)
    assert f"a context of {CONTEXT} tokens; the conversation has {CONTEXT + 2}" in str(error)
    assert isinstance(reply, ChatReply)
    assert usage["judge_failed"] == 1


def test_a_model_is_loaded_once_and_frozen(folder):
    arguments = {"temperature": 0.0, "max_tokens": 8, "allow_pickle": False}
    model = load_frozen(folder, "float32", "cpu", **arguments)
    assert load_frozen(folder, "float32", "cpu", **arguments) is model
    assert not any(parameter.requires_grad for parameter in model.model.parameters())


def test_a_model_without_a_chat_template_is_refused_before_the_run(tmp_path):
    save_model(tmp_path)
    with pytest.raises(ConfigError, match="no chat template"):
        judge(str(tmp_path)).prepare()


def test_a_folder_without_a_model_is_refused_before_the_run(tmp_path):
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        judge(str(tmp_path)).prepare()
