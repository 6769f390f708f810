"""Between text and tokens."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.errors import ConfigError
from grupo.core.types import Action, Rollout
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_tokenizer import ChatTokenizer
from tests.helpers.tiny_lm import TEMPLATE, batch_of, plant, spoken, tokenizer

PLAIN = ChatTokenizer(tokenizer(), eos_token_ids=(0, 5), stop_strings=("END",))
CHAT = ChatTokenizer(
    tokenizer(chat_template=TEMPLATE), eos_token_ids=(0,), apply_chat_template=True
)
LATER = Rollout().append_turn("Hi", Action((3,), (-1.0,)))


def test_a_text_comes_back_from_its_tokens():
    text = "".join(map(chr, range(32, 127))) + "\n  two  spaces ."
    assert PLAIN.decode(PLAIN.encode_observation(Rollout(), text)) == text


def test_text_of_an_action_leaves_special_tokens_out():
    assert PLAIN.decode((*PLAIN.encode_observation(Rollout(), "four"), 0)) == "four"


def test_a_recited_answer_ends_as_the_policy_would_have_ended_it():
    assert PLAIN.encode_answer("4") == (*PLAIN.encode_observation(Rollout(), "4"), 0)
    assert PLAIN.encode_answer("4END") == PLAIN.encode_observation(Rollout(), "4END")


def test_the_usual_end_is_the_tokenizers_own(tmp_path):
    folder = plant(tmp_path, says={"eos_token": "!"}, eos_token_id=[0, 2])
    assert CausalLM(str(folder), max_new_tokens=8).build().chat_tokenizer.eos_token_ids == (2, 0)


def test_a_chat_begins_with_its_template():
    said = "<|user|>Hi<|model|>"
    assert CHAT.tokenizer.decode(CHAT.encode_observation(Rollout(), "Hi")) == said
    assert CHAT.encode_observation(Rollout(), "Hi") == CHAT.encode_observation(
        Rollout(), ({"role": "user", "content": "Hi"},)
    )
    assert (
        replace(CHAT, apply_chat_template=False).tokenizer.decode(
            CHAT.encode_observation(Rollout(), "Hi")
        )
        == said
    )


def test_what_the_world_says_later_is_plain_text():
    assert CHAT.encode_observation(LATER, "Hi") == PLAIN.encode_observation(Rollout(), "Hi")
    assert CHAT.encode_observation(LATER, "") == ()


@pytest.mark.parametrize(
    ("language", "rollout", "seen", "message"),
    [
        (PLAIN, Rollout(), ({"role": "user", "content": "Hi"},), "has no chat template"),
        (replace(PLAIN, apply_chat_template=True), Rollout(), "Hi", "has no chat template"),
        (PLAIN, LATER, ({"role": "user", "content": "Hi"},), "has no chat template"),
        (PLAIN, Rollout(), "", "it has no tokens. Allowed: at least one."),
    ],
)
def test_prompts_that_cannot_be_read_are_refused(language, rollout, seen, message):
    with pytest.raises(ConfigError, match=rf"^prompt: .*{message}"):
        language.encode_observation(rollout, seen)


def test_a_policy_of_chats_answers_behind_the_template(tmp_path):
    folder = plant(tmp_path, says={"chat_template": TEMPLATE})
    policy = CausalLM(str(folder), max_new_tokens=8, apply_chat_template=True).build()
    action = spoken(policy, ["Hi"], attempts=1)[0][0]
    assert policy.chat_tokenizer.tokenizer.decode(action.observation) == "<|user|>Hi<|model|>"
    batch = batch_of(policy, [Rollout((("Hi", action),))])
    assert batch.inputs["start"].tolist() == [len("?Hi?")]
    assert policy.signals(batch).logp[0].tolist() == pytest.approx(action.logp, abs=2e-5)


def test_a_refused_prompt_reaches_whoever_asked(llama):
    policy = llama.build()
    with pytest.raises(ConfigError, match="has no chat template"):
        asyncio.run(policy.actor(0)(Rollout(), ({"role": "user", "content": "Hi"},)))
