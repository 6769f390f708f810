"""A rollout whose chat template rewrites earlier answers forks into rows."""

import pytest

from grupo.algo.aggregation import sequence_mean
from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import run_rollout
from grupo.core.template_options import with_template_kwargs
from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn
from grupo.models.causal_lm import CausalLM
from grupo.models.context import replace_prompt
from grupo.models.demonstrations import demonstration_rollout
from grupo.util.event_loop import run_coroutine
from tests.helpers.template_families import (
    FAMILIES,
    family_chat_tokenizer,
    template,
    tokenizer_options,
)
from tests.helpers.tiny_lm import ALPHABET, batch_of, save_model

QUESTION = ({"role": "user", "content": "2+2?"},)
THOUGHTLESS = with_template_kwargs(QUESTION, {"enable_thinking": False})


class AskingGame:
    """Game that repeats one question."""

    def reset(self, task):
        return task.prompt

    def step(self, text):
        return "And?", 0.0, False


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    """A random model with Qwen3's template, whose history leaves empty thoughts out."""
    config = {"vocab_size": len(ALPHABET) + 2, "max_position_embeddings": 400, "eos_token_id": 99}
    folder = tmp_path_factory.mktemp("qwen3")
    save_model(folder, tokenizer_options=tokenizer_options("qwen3"), **config)
    return CausalLM(str(folder), max_new_tokens=6).build()


def played(policy, prompt):
    env = MultiTurn(AskingGame, max_turns=3, role="user")
    return run_coroutine(run_rollout(Task("k", prompt), env.open(), policy.actor(3)))


def test_each_row_holds_the_tokens_that_the_policy_read_and_their_logp(qwen3):
    rollout = played(qwen3, THOUGHTLESS)
    assert rollout.is_forked
    batch = batch_of(qwen3, [rollout, played(qwen3, QUESTION)])
    assert batch.rollout.tolist() == [0, 0, 0, 1]
    assert batch.sequence.tolist()[:3] == [1, 1, 1]
    for row, (_, response) in enumerate(rollout.turns):
        length = batch.inputs["length"][row]
        tokens = (*response.observation, *response.items)
        assert tuple(batch.inputs["token"][row, :length].tolist()) == tokens
        text = qwen3.chat_tokenizer.tokenizer.decode(response.observation)
        assert text.count("<think>\n\n</think>") == 1
        assert text.count("<|im_start|>user") == row + 1
    logp = qwen3.signals(batch).logp[batch.mask]
    assert logp.tolist() == pytest.approx(batch.old_logp[batch.mask].tolist(), abs=2e-5)


def test_a_forked_rollout_weighs_as_much_as_another(qwen3):
    batch = batch_of(qwen3, [played(qwen3, THOUGHTLESS), played(qwen3, QUESTION)])
    weight = sequence_mean(batch).sum(1)
    assert weight[batch.rollout == 0].sum().item() == pytest.approx(0.5)
    assert weight[batch.rollout == 1].sum().item() == pytest.approx(0.5)


def test_another_prompt_replaces_the_first_one_in_every_row(qwen3):
    rollout = played(qwen3, THOUGHTLESS)
    hinted = with_template_kwargs(
        ({"role": "user", "content": "2+2? Four."},), {"enable_thinking": False}
    )
    changed = replace_prompt(qwen3.chat_tokenizer, rollout, hinted)
    for context in changed.contexts:
        text = qwen3.chat_tokenizer.tokenizer.decode(context.turns[0][1].observation)
        assert text.startswith("<|im_start|>user\n2+2? Four.<|im_end|>")


def test_a_later_prefill_stays_in_the_text_of_a_fork(qwen3):
    rollout = played(qwen3, THOUGHTLESS)
    later = ({"role": "user", "content": "?"}, {"role": "assistant", "content": "It is"})
    response = run_coroutine(qwen3.actor(1)(rollout, later))
    assert response.rewrites_history
    assert rollout.append_turn(later, response).text == rollout.text + "It is" + response.text


def conversation(*contents):
    """A demonstration of questions and answers in turn."""
    chat = [
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)
    ]
    return Demonstration(tuple(((chat[i],), chat[i + 1]) for i in range(0, len(chat), 2)))


@pytest.mark.parametrize("family", FAMILIES)
def test_each_answer_of_a_demonstration_follows_the_chat_that_a_policy_would_read(family):
    chat_tokenizer = family_chat_tokenizer(family)
    rollout = demonstration_rollout(chat_tokenizer, conversation("1+1?", "2", "2+2?", "4"))
    assert len(rollout.contexts) == 1 + (family in ("qwen3", "gpt_oss"))
    last = rollout.contexts[-1]
    tokens = [x for _, r in last.turns for x in (*r.observation, *r.items)]
    chat = [
        {"role": ("user", "assistant")[i % 2], "content": text}
        for i, text in enumerate(("1+1?", "2", "2+2?", "4"))
    ]
    whole = chat_tokenizer.tokenizer.apply_chat_template(chat, tokenize=False)
    end = chat_tokenizer.tokenizer.decode(chat_tokenizer.eos_token_ids[:1])
    last_answer = whole.rindex("4")
    if end in whole[last_answer:]:  # what follows the end is not the policy's
        whole = whole[: whole.index(end, last_answer)]
    expected = whole + end
    assert chat_tokenizer.tokenizer.decode(tokens) == expected
    assert all(response.in_loss for _, response in rollout.turns)


def test_thoughts_of_a_demonstration_are_trained_on_once():
    chat_tokenizer = family_chat_tokenizer("qwen3")
    thoughts = "<think>\na\n</think>\n\n2", "<think>\nb\n</think>\n\n4"
    rollout = demonstration_rollout(
        chat_tokenizer, conversation("1+1?", thoughts[0], "2+2?", thoughts[1])
    )
    decode = chat_tokenizer.tokenizer.decode
    texts = [decode(response.items) for _, response in rollout.turns]
    assert texts == [f"{text}<|im_end|>" for text in thoughts]
    second = decode(rollout.turns[1][1].observation)
    assert "<think>" not in second
    assert "assistant\n2<|im_end|>" in second


def test_text_outside_of_generation_blocks_is_not_trained_on():
    """As in a template that marks the answer alone, without what stands before it."""
    chat_tokenizer = family_chat_tokenizer("smollm3")
    marked = "{%- generation -%}{{- content.lstrip('\n') + '<|im_end|>\n' -}}{%- endgeneration -%}"
    before, _, rest = template("smollm3").partition("{%- generation -%}")
    _, _, after = rest.partition("{%- endgeneration -%}")
    head = "{{- '<|im_start|>assistant\n<think>\n\n</think>\n' -}}"
    chat_tokenizer.tokenizer.chat_template = f"{before}{head}{marked}{after}"
    rollout = demonstration_rollout(chat_tokenizer, conversation("1+1?", "2"))
    parts = [
        (chat_tokenizer.tokenizer.decode(response.items), response.in_loss)
        for _, response in rollout.turns
    ]
    assert parts == [("<think>\n\n</think>\n", False), ("2<|im_end|>", True)]
    whole = demonstration_rollout(family_chat_tokenizer("smollm3"), conversation("1+1?", "2"))
    assert [response.in_loss for _, response in whole.turns] == [True]


def test_plain_text_before_a_chat_message_keeps_its_tokens(qwen3):
    actor = qwen3.actor(1)
    rollout = Rollout().append_turn("Hi", run_coroutine(actor(Rollout(), "Hi")))
    assert not run_coroutine(actor(rollout, QUESTION)).rewrites_history
