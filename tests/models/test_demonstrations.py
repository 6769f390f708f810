"""Demonstrations have the tokens that the policy would generate in the same context."""

import pytest

from grupo.core.demonstration import Demonstration
from grupo.core.types import Response, Rollout
from grupo.models.causal_lm import CausalLM
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.demonstrations import demonstration_rollout
from grupo.models.rollout_cache import RolloutCache
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.chat_templates import CHATML, FAMILIES, make_chat_tokenizer
from tests.helpers.tiny_lm import ALPHABET, batch_of, save_model, tokenizer

PLAIN = ChatTokenizer(tokenizer(), eos_token_ids=(0,))


def message(role, content):
    return {"role": role, "content": content}


def conversation(**options):
    return Demonstration(
        (
            ((message("user", "Hi"),), message("assistant", "Hello")),
            ((message("user", "And?"),), message("assistant", "Bye")),
        ),
        **options,
    )


def all_tokens(rollout):
    return [x for _, response in rollout.turns for x in (*response.observation, *response.items)]


def rendered(chat_tokenizer, messages):
    """The tokens of a rendered chat up to the end token of its last answer."""
    text = chat_tokenizer.tokenizer.apply_chat_template(messages, tokenize=False)
    tokens = chat_tokenizer.tokenizer(text, add_special_tokens=False)["input_ids"]
    last = max(i for i, token in enumerate(tokens) if token in chat_tokenizer.eos_token_ids)
    return tokens[: last + 1]


@pytest.mark.parametrize("family", FAMILIES)
def test_conversation_is_the_whole_rendered_chat(family):
    chat_tokenizer = make_chat_tokenizer(family)
    rollout = demonstration_rollout(chat_tokenizer, conversation())
    messages = [m for observation, answer in conversation().turns for m in (*observation, answer)]
    assert all_tokens(rollout) == rendered(chat_tokenizer, messages)
    for (_, response), text in zip(rollout.turns, ("Hello", "Bye"), strict=True):
        assert response.items[-1] == chat_tokenizer.eos_token_ids[0]
        assert chat_tokenizer.decode(response.items[:-1]).strip() == text
        assert (response.sampled, response.in_loss) == (False, True)


@pytest.mark.parametrize("family", FAMILIES)
def test_demonstration_has_the_logp_of_generated_tokens(family, tmp_path):
    """The inference engine scores the tokens as it scores those that it generates."""
    template, special, _ = FAMILIES[family]
    options = {"chat_template": template, "additional_special_tokens": list(special)}
    config = {"vocab_size": len(ALPHABET) + len(special), "max_position_embeddings": 300}
    folder = save_model(tmp_path / family, tokenizer_options=options, **config)
    policy = CausalLM(str(folder), max_new_tokens=6).build()
    actor = policy.actor(3)
    rollout = actor.demonstrate(conversation())
    scores = []
    played = Rollout()
    for observation, response in rollout.turns:
        # the actor encodes the observation as it does before it generates
        context = policy.chat_tokenizer.encode_observation(played, observation)
        assert context == response.observation
        played = played.append_turn(observation, response)
        scores += run_coroutine(actor.logprobs(played)).logp
    batch = batch_of(policy, [rollout])
    logp = policy.signals(batch).logp[batch.mask]
    assert len(logp) == rollout.length > 0
    assert logp.tolist() == pytest.approx(scores, abs=2e-5)


def test_generated_answer_has_the_tokens_of_its_demonstration(tmp_path):
    """An answer that ended is generated again by its demonstration, with the same log-probs."""
    options = {"chat_template": CHATML, "additional_special_tokens": ["<|im_end|>", "<|im_start|>"]}
    config = {"vocab_size": len(ALPHABET) + 2, "max_position_embeddings": 300}
    folder = save_model(tmp_path / "model", tokenizer_options=options, **config)
    policy = CausalLM(str(folder), max_new_tokens=300 - 60).build()
    observation = (message("user", "Hi"),)
    ended = 0
    for seed in range(12):
        response = run_coroutine(policy.actor(seed)(Rollout(), observation))
        answer = message("assistant", response.text)
        again = policy.actor(0).demonstrate(Demonstration(((observation, answer),)))
        has_plain_text = policy.chat_tokenizer.encode_answer(response.text) == response.items
        if response.finish_reason != "end" or not has_plain_text:
            continue
        ended += 1
        assert again.turns[0][1].items == response.items
        assert again.turns[0][1].observation == response.observation
        batch = batch_of(policy, [again])
        logp = policy.signals(batch).logp[batch.mask]
        assert logp.tolist() == pytest.approx(list(response.logp), abs=2e-5)
        if ended == 3:
            break
    assert ended


def test_all_tokens_but_the_first_are_trained_on_on_request():
    chat_tokenizer = make_chat_tokenizer("chatml")
    whole = demonstration_rollout(chat_tokenizer, conversation(all_tokens=True))
    ((_, response),) = whole.turns
    turns = demonstration_rollout(chat_tokenizer, conversation())
    assert [*response.observation, *response.items] == all_tokens(turns)
    assert len(response.observation) == 1


def test_text_has_one_end_token():
    ((_, response),) = demonstration_rollout(PLAIN, Demonstration((("", "abc"),))).turns
    assert (*response.observation, *response.items) == (*PLAIN.encode_forced("abc"), 0)
    assert len(response.observation) == 1
    ended = f"abc{PLAIN.tokenizer.eos_token}"
    ((_, again),) = demonstration_rollout(PLAIN, Demonstration((("", ended),))).turns
    assert again.items == response.items


def test_text_of_one_token_is_refused():
    empty_end = ChatTokenizer(tokenizer(), eos_token_ids=())
    with pytest.raises(ConfigError, match="2 or more"):
        demonstration_rollout(empty_end, Demonstration((("", "a"),)))


def test_plain_completion_follows_its_prompt():
    ((_, response),) = demonstration_rollout(PLAIN, Demonstration((("ab", "c"),))).turns
    assert (response.observation, response.items) == (
        PLAIN.encode_observation(Rollout(), "ab"),
        PLAIN.encode_answer("c"),
    )


TOOL_CHATML = (
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t.function.name }}{% endfor %}"
    "<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}</call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_tools_and_their_calls_are_rendered_by_the_template():
    special = ["<|im_end|>", "<|im_start|>"]
    backend = tokenizer(chat_template=TOOL_CHATML, additional_special_tokens=special)
    chat_tokenizer = ChatTokenizer(backend, (backend.convert_tokens_to_ids("<|im_end|>"),))
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add"}}]}
    turns = (
        ((message("user", "Hi"),), call),
        ((message("tool", "3"),), message("assistant", "It is 3")),
    )
    tools = ({"type": "function", "function": {"name": "add"}},)
    rollout = demonstration_rollout(chat_tokenizer, Demonstration(turns, tools))
    first, second = (response for _, response in rollout.turns)
    decode = chat_tokenizer.tokenizer.decode
    prompt = "<|im_start|>system\nadd<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    assert decode(first.observation) == f"{prompt}<|im_start|>assistant\n"
    assert decode(first.items) == "<call>add</call><|im_end|>"
    assert decode(second.observation) == "\n<|im_start|>tool\n3<|im_end|>\n<|im_start|>assistant\n"
    assert decode(second.items) == "It is 3<|im_end|>"


def test_template_that_closes_answers_with_no_end_token_gets_the_policys():
    """A base model ends its answers with its own end token, not with the template's."""
    backend = make_chat_tokenizer("chatml").tokenizer
    chat_tokenizer = ChatTokenizer(backend, eos_token_ids=(0,))
    ((_, response),) = demonstration_rollout(
        chat_tokenizer, Demonstration(conversation().turns[:1])
    ).turns
    assert response.items == (*chat_tokenizer.encode_forced("Hello"), 0)


def test_template_that_changes_answered_prompts_gets_the_content():
    """The generation prompt of reasoning models begins a thought that history leaves out."""
    template = CHATML.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    backend = tokenizer(chat_template=template, additional_special_tokens=["<|im_end|>"])
    end = backend.convert_tokens_to_ids("<|im_end|>")
    chat_tokenizer = ChatTokenizer(backend, eos_token_ids=(end,))
    ((_, response),) = demonstration_rollout(
        chat_tokenizer, Demonstration(conversation().turns[:1])
    ).turns
    assert response.items == (*chat_tokenizer.encode_forced("Hello"), end)


def test_equal_demonstrations_are_encoded_once():
    chat_tokenizer = make_chat_tokenizer("chatml")
    first = demonstration_rollout(chat_tokenizer, conversation())
    again = demonstration_rollout(chat_tokenizer, conversation())
    other = demonstration_rollout(chat_tokenizer, conversation(all_tokens=True))
    assert again.turns == first.turns != other.turns
    cached = demonstration_rollout(chat_tokenizer, conversation())
    assert cached is again or cached.turns is again.turns


def test_full_cache_keeps_its_rollouts():
    cache = RolloutCache(max_tokens=4)
    rollouts = {
        key: Rollout().append_turn("", Response((1000, 1001), (0.0,) * 2, (1000,)))
        for key in (b"a", b"b")
    }
    made = []

    def get(key):
        return cache.get_or_make(key, lambda: made.append(key) or rollouts[key])

    for key in (b"a", b"b", b"a", b"b"):
        assert get(key) == rollouts[key]
    assert made == [b"a", b"b", b"b"]  # the second has no room beside the first
    assert cache.num_tokens == 3
