"""Messages after an answer are rendered by the chat template; the answer keeps its tokens."""

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.types import Response, Rollout, Task
from grupo.envs import MultiTurn
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.chat_templates import CASES, FAMILIES, make_chat_tokenizer
from tests.helpers.tiny_lm import ALPHABET, batch_of, save_model

QUESTION = "What is 2+2?"


def answered(chat_tokenizer, *, items, finish_reason="end"):
    """A rollout of one answer to `QUESTION`."""
    prompt = chat_tokenizer.encode_observation(Rollout(), QUESTION)
    response = Response(items, (-1.0,) * len(items), prompt, finish_reason=finish_reason)
    return Rollout().append_turn(QUESTION, response)


def token_ids(rollout):
    return [x for _, response in rollout.turns for x in (*response.observation, *response.items)]


@pytest.mark.parametrize(("family", "role"), CASES)
def test_context_is_the_whole_rendered_chat(family, role):
    chat_tokenizer = make_chat_tokenizer(family)
    space = " " * (family == "mistral")  # its template has one before an answer
    text = f"{space}Let me see."
    rollout = answered(
        chat_tokenizer, items=(*chat_tokenizer.encode_forced(text), chat_tokenizer.eos_token_ids[0])
    )
    later = ({"role": role, "content": "4 it is"},)
    tokens = [*token_ids(rollout), *chat_tokenizer.encode_observation(rollout, later)]
    chat = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Let me see."},
        *later,
    ]
    whole = chat_tokenizer.tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, tokenize=False
    )
    assert tokens == chat_tokenizer.tokenizer(whole, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(("family", "role"), CASES)
def test_truncated_answer_gets_an_end_token_before_the_message(family, role):
    chat_tokenizer = make_chat_tokenizer(family)
    later = ({"role": role, "content": "4 it is"},)
    ended = answered(
        chat_tokenizer, items=(*chat_tokenizer.encode_forced("a"), chat_tokenizer.eos_token_ids[0])
    )
    cut = answered(chat_tokenizer, items=chat_tokenizer.encode_forced("a"), finish_reason="length")
    assert chat_tokenizer.encode_observation(cut, later) == (
        chat_tokenizer.eos_token_ids[0],
        *chat_tokenizer.encode_observation(ended, later),
    )


def test_end_token_of_another_kind_does_not_end_an_answer():
    chat_tokenizer = make_chat_tokenizer("chatml")
    other = answered(
        chat_tokenizer, items=(*chat_tokenizer.encode_forced("a"), chat_tokenizer.eos_token_ids[1])
    )
    assert (
        chat_tokenizer.encode_observation(other, ({"role": "tool", "content": "4"},))[0]
        == chat_tokenizer.eos_token_ids[0]
    )


def test_several_messages_form_one_observation():
    chat_tokenizer = make_chat_tokenizer("chatml")
    rollout = answered(chat_tokenizer, items=(chat_tokenizer.eos_token_ids[0],))
    later = tuple({"role": "tool", "content": text} for text in "34")
    response = "<|im_start|>user\n<tool_response>\n{}\n</tool_response><|im_end|>\n".format
    rendered = f"\n{response(3)}{response(4)}<|im_start|>assistant\n"
    assert (
        chat_tokenizer.tokenizer.decode(chat_tokenizer.encode_observation(rollout, later))
        == rendered
    )


def test_message_may_contain_the_placeholder():
    chat_tokenizer = make_chat_tokenizer("chatml")
    rollout = answered(chat_tokenizer, items=(chat_tokenizer.eos_token_ids[0],))
    tokens = chat_tokenizer.encode_observation(
        rollout, ({"role": "tool", "content": "an ANSWER-OF-THE-POLICY!"},)
    )
    assert "<tool_response>\nan ANSWER-OF-THE-POLICY!\n" in chat_tokenizer.tokenizer.decode(tokens)


def test_error_names_the_roles_that_a_template_rejects():
    chat_tokenizer = make_chat_tokenizer("gemma")
    rollout = answered(chat_tokenizer, items=(chat_tokenizer.eos_token_ids[0],))
    with pytest.raises(
        ConfigError, match=r"rejects messages of user, assistant, tool: .*alternate"
    ):
        chat_tokenizer.encode_observation(rollout, ({"role": "tool", "content": "4"},))


class AskingGame:
    """Game that repeats one question."""

    def reset(self, task):
        return task.prompt

    def step(self, text):
        return "And?", 0.0, False


@pytest.mark.parametrize("family", FAMILIES)
def test_chat_rollouts_are_evaluated_as_generated(family, tmp_path):
    template, special, roles = FAMILIES[family]
    tokenizer_options = {"chat_template": template, "additional_special_tokens": list(special)}
    config = {"vocab_size": len(ALPHABET) + len(special), "max_position_embeddings": 300}
    folder = save_model(tmp_path / family, tokenizer_options=tokenizer_options, **config)
    policy = CausalLM(str(folder), max_new_tokens=6, apply_chat_template=True).build()
    env = MultiTurn(AskingGame, max_turns=3, role=roles[0])
    rollout = run_coroutine(run_rollout(Task("k", QUESTION), env.open(), policy.actor(3)))
    assert len(rollout.turns) == 3
    batch = batch_of(policy, [rollout])
    assert batch.inputs["token"][0].tolist() == token_ids(rollout)
    assert batch.mask.sum() == rollout.length  # observations are not in the loss
    logp = policy.signals(batch).logp[batch.mask]
    assert logp.tolist() == pytest.approx(batch.old_logp[batch.mask].tolist(), abs=2e-5)


def test_observation_without_room_for_an_answer_is_dropped(llama):
    policy = llama.build()  # its context has 64 tokens
    env = MultiTurn(AskingGame, max_turns=30)
    rollout = run_coroutine(run_rollout(Task("k", QUESTION), env.open(), policy.actor(3)))
    assert rollout.last_response.items == rollout.last_response.observation == ()
    assert policy.context_length - len("And?") <= len(token_ids(rollout)) <= policy.context_length
    (result,) = run_coroutine(env.open().score(Task("k", QUESTION), [rollout]))
    assert (result.error, result.reward_terms["turns"]) == ("", len(rollout.turns) - 1)
