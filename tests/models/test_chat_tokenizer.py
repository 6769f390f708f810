"""Conversion between text or chat messages and tokens."""

from dataclasses import replace

import pytest

from grupo.core.types import Response, Rollout
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import TEMPLATE, batch_of, generate, save_model, tokenizer

PLAIN = ChatTokenizer(tokenizer(), eos_token_ids=(0, 5), stop_strings=("END",))
CHAT = ChatTokenizer(
    tokenizer(chat_template=TEMPLATE), eos_token_ids=(0,), apply_chat_template=True
)
LATER = Rollout().append_turn("Hi", Response((3,), (-1.0,)))


def test_decode_inverts_encode():
    text = "".join(map(chr, range(32, 127))) + "\n  two  spaces ."
    assert PLAIN.decode(PLAIN.encode_observation(Rollout(), text)) == text


def test_decode_leaves_special_tokens_out():
    assert PLAIN.decode((*PLAIN.encode_observation(Rollout(), "four"), 0)) == "four"


def test_encoded_answers_end_with_an_end_token_or_a_stop_string():
    assert PLAIN.encode_answer("4") == (*PLAIN.encode_observation(Rollout(), "4"), 0)
    assert PLAIN.encode_answer("4END") == PLAIN.encode_observation(Rollout(), "4END")


def test_first_end_token_is_the_tokenizers(tmp_path):
    folder = save_model(tmp_path, tokenizer_options={"eos_token": "!"}, eos_token_id=[0, 2])
    assert CausalLM(str(folder), max_new_tokens=8).build().chat_tokenizer.eos_token_ids == (2, 0)


def test_prompts_are_rendered_by_the_chat_template():
    rendered = "<|user|>Hi<|model|>"
    assert CHAT.tokenizer.decode(CHAT.encode_observation(Rollout(), "Hi")) == rendered
    assert CHAT.encode_observation(Rollout(), "Hi") == CHAT.encode_observation(
        Rollout(), ({"role": "user", "content": "Hi"},)
    )
    assert (
        replace(CHAT, apply_chat_template=False).tokenizer.decode(
            CHAT.encode_observation(Rollout(), "Hi")
        )
        == rendered
    )


def test_later_text_observations_are_plain():
    assert CHAT.encode_observation(LATER, "Hi") == PLAIN.encode_observation(Rollout(), "Hi")
    assert CHAT.encode_observation(LATER, "") == ()


@pytest.mark.parametrize(
    ("chat_tokenizer", "rollout", "prompt", "message"),
    [
        (PLAIN, Rollout(), ({"role": "user", "content": "Hi"},), "has no chat template"),
        (replace(PLAIN, apply_chat_template=True), Rollout(), "Hi", "has no chat template"),
        (PLAIN, LATER, ({"role": "user", "content": "Hi"},), "has no chat template"),
        (PLAIN, Rollout(), "", "it has no tokens. Allowed: at least one."),
    ],
)
def test_invalid_prompts_raise_config_errors(chat_tokenizer, rollout, prompt, message):
    with pytest.raises(ConfigError, match=rf"^prompt: .*{message}"):
        chat_tokenizer.encode_observation(rollout, prompt)


def test_policy_with_a_chat_template_generates_after_the_template(tmp_path):
    folder = save_model(tmp_path, tokenizer_options={"chat_template": TEMPLATE})
    policy = CausalLM(str(folder), max_new_tokens=8, apply_chat_template=True).build()
    response = generate(policy, ["Hi"], attempts=1)[0][0]
    assert policy.chat_tokenizer.tokenizer.decode(response.observation) == "<|user|>Hi<|model|>"
    batch = batch_of(policy, [Rollout((("Hi", response),))])
    assert batch.inputs["start"].tolist() == [len("?Hi?")]
    assert policy.signals(batch).logp[0].tolist() == pytest.approx(response.logp, abs=2e-5)


def test_prompt_errors_are_raised_by_the_actor(llama):
    policy = llama.build()
    with pytest.raises(ConfigError, match="has no chat template"):
        run_coroutine(policy.actor(0)(Rollout(), ({"role": "user", "content": "Hi"},)))
