"""A conversation that ends with a message of the assistant is continued, as TRL does."""

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs.session_cache import turn_texts
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.rewards import as_reward
from grupo.util.errors import ConfigError
from tests.helpers.chat_templates import FAMILIES, make_chat_tokenizer
from tests.helpers.tiny_lm import TEMPLATE, batch_of, generate, save_model, tokenizer

QUESTION = {"role": "user", "content": "2 + 2 ="}
PREFILL = {"role": "assistant", "content": "The sum is"}
PROMPT = (QUESTION, PREFILL)
CONTINUED = {
    "chatml": "<|im_start|>user\n2 + 2 =<|im_end|>\n<|im_start|>assistant\nThe sum is",
    "llama3": (
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n2 + 2 =<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nThe sum is"
    ),
    "mistral": "<s>[INST] 2 + 2 =[/INST] The sum is",
    "gemma": ("<bos><start_of_turn>user\n2 + 2 =<end_of_turn>\n<start_of_turn>model\nThe sum is"),
}


def rollout_of(*turns) -> Rollout:
    rollout = Rollout()
    for observation, text in turns:
        rollout = rollout.append_turn(observation, Response((1,), (-1.0,), text=text))
    return rollout


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_message_stays_open_and_no_second_turn_begins(family):
    chat_tokenizer = make_chat_tokenizer(family)
    tokens = chat_tokenizer.encode_observation(Rollout(), PROMPT)
    assert chat_tokenizer.tokenizer.decode(tokens) == CONTINUED[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prefill_after_a_later_message_is_continued(family):
    chat_tokenizer = make_chat_tokenizer(family)
    tokens = chat_tokenizer.encode_observation(rollout_of(("Hi", "Yes.")), PROMPT)
    assert chat_tokenizer.tokenizer.decode(tokens).endswith(
        CONTINUED[family]
        .removeprefix("<s>")
        .removeprefix("<bos>")
        .removeprefix("<|begin_of_text|>")
    )


def test_a_template_that_leaves_the_message_out_is_a_config_error():
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
    )
    chat_tokenizer = ChatTokenizer(tokenizer(chat_template=template), eos_token_ids=(0,))
    with pytest.raises(ConfigError, match="chat template cannot continue the last message"):
        chat_tokenizer.encode_observation(Rollout(), PROMPT)


def test_a_prefill_is_context_and_not_trained_on(tmp_path):
    folder = save_model(tmp_path, tokenizer_options={"chat_template": TEMPLATE})
    policy = CausalLM(str(folder), max_new_tokens=8).build()
    response = generate(policy, [PROMPT], attempts=1)[0][0]
    rendered = policy.chat_tokenizer.tokenizer.decode(response.observation)
    assert rendered.endswith("The sum is")
    batch = batch_of(policy, [Rollout(((PROMPT, response),))])
    assert batch.inputs["start"].tolist() == [len(response.observation)]
    assert batch.mask.sum().item() == len(response.items)
    assert policy.signals(batch).logp[0].tolist() == pytest.approx(response.logp, abs=2e-5)


def test_rewards_see_the_prefill_and_the_answer_as_one_message():
    seen = {}

    def trl_reward(prompts, completions, **columns):
        seen.update(prompts=prompts, completions=completions)
        return [0.0]

    rollout = rollout_of((PROMPT, " 4."))
    as_reward(trl_reward)(Task("a", PROMPT), [rollout])
    assert seen["completions"] == [[{"role": "assistant", "content": "The sum is 4."}]]
    assert rollout.text == "The sum is 4."
    assert turn_texts(rollout) == ("The sum is 4.",)


def test_a_prefill_in_a_later_turn_belongs_to_its_answer():
    later = ({"role": "tool", "content": "4"}, PREFILL)
    rollout = rollout_of(((QUESTION,), "?"), (later, " 4."))
    assert turn_texts(rollout) == ("?", "The sum is 4.")
    assert rollout.text == "?The sum is 4."


def test_a_restarted_context_repeats_no_prefill():
    restarted = Response((1,), (-1.0,), text=" and", resets_context=True)
    rollout = rollout_of((PROMPT, " 4")).append_turn(PROMPT, restarted)
    assert rollout.text == "The sum is 4 and"


def test_contents_in_parts_are_joined():
    parts = ({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},)
    assert rollout_of((parts, "b")).text == "ab"
