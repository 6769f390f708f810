"""Messages after an answer: laid out as the chat's template has them, the answer left as it is."""

import asyncio

import pytest

from grupo.core.errors import ConfigError
from grupo.core.interfaces import run_rollout
from grupo.core.types import Action, Rollout, Task
from grupo.envs import MultiTurn
from grupo.models.causal_lm import CausalLM
from tests.helpers.chat_templates import CASES, FAMILIES, language
from tests.helpers.tiny_lm import ALPHABET, batch_of, plant

ASKED = "What is 2+2?"


def answered(known, *, parts, stopped="end"):
    """A rollout of one answer to `SAMPLING_REQUEST`."""
    seen = known.encode_observation(Rollout(), ASKED)
    return Rollout().append_turn(
        ASKED, Action(parts, (-1.0,) * len(parts), seen, finish_reason=stopped)
    )


def ids(rollout):
    return [x for _, action in rollout.turns for x in (*action.observation, *action.items)]


@pytest.mark.parametrize(("family", "role"), CASES)
def test_what_is_read_is_the_whole_chat_in_its_template(family, role):
    known = language(family)
    space = " " * (family == "mistral")  # its template has one before an answer
    text = f"{space}Let me see."
    rollout = answered(known, parts=(*known.encode_forced(text), known.eos_token_ids[0]))
    later = ({"role": role, "content": "4 it is"},)
    read = [*ids(rollout), *known.encode_observation(rollout, later)]
    chat = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": "Let me see."},
        *later,
    ]
    whole = known.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert read == known.tokenizer(whole, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(("family", "role"), CASES)
def test_an_answer_that_was_cut_is_closed_before_the_message(family, role):
    known = language(family)
    later = ({"role": role, "content": "4 it is"},)
    ended = answered(known, parts=(*known.encode_forced("a"), known.eos_token_ids[0]))
    cut = answered(known, parts=known.encode_forced("a"), stopped="length")
    assert known.encode_observation(cut, later) == (
        known.eos_token_ids[0],
        *known.encode_observation(ended, later),
    )


def test_an_end_that_is_not_the_templates_does_not_close_an_answer():
    known = language("chatml")
    other = answered(known, parts=(*known.encode_forced("a"), known.eos_token_ids[1]))
    assert (
        known.encode_observation(other, ({"role": "tool", "content": "4"},))[0]
        == known.eos_token_ids[0]
    )


def test_several_messages_are_one_observation():
    known = language("chatml")
    rollout = answered(known, parts=(known.eos_token_ids[0],))
    later = tuple({"role": "tool", "content": text} for text in "34")
    response = "<|im_start|>user\n<tool_response>\n{}\n</tool_response><|im_end|>\n".format
    said = f"\n{response(3)}{response(4)}<|im_start|>assistant\n"
    assert known.tokenizer.decode(known.encode_observation(rollout, later)) == said


def test_a_message_may_hold_what_stands_for_answers():
    known = language("chatml")
    rollout = answered(known, parts=(known.eos_token_ids[0],))
    said = known.encode_observation(
        rollout, ({"role": "tool", "content": "an ANSWER-OF-THE-POLICY!"},)
    )
    assert "<tool_response>\nan ANSWER-OF-THE-POLICY!\n" in known.tokenizer.decode(said)


def test_roles_that_a_template_refuses_are_named():
    known = language("gemma")
    rollout = answered(known, parts=(known.eos_token_ids[0],))
    with pytest.raises(
        ConfigError, match=r"refuses messages of user, assistant, tool: .*alternate"
    ):
        known.encode_observation(rollout, ({"role": "tool", "content": "4"},))


class Asking:
    """Says the same twice more."""

    def reset(self, task):
        return task.prompt

    def step(self, text):
        return "And?", 0.0, False


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_sampled_in_a_chat_is_what_is_learned(family, tmp_path):
    template, special, roles = FAMILIES[family]
    says = {"chat_template": template, "additional_special_tokens": list(special)}
    more = {"vocab_size": len(ALPHABET) + len(special), "max_position_embeddings": 300}
    folder = plant(tmp_path / family, says=says, **more)
    policy = CausalLM(str(folder), max_new_tokens=6, apply_chat_template=True).build()
    env = MultiTurn(Asking, max_turns=3, role=roles[0])
    rollout = asyncio.run(run_rollout(Task("k", ASKED), env, policy.actor(3)))
    assert len(rollout.turns) == 3
    batch = batch_of(policy, [rollout])
    assert batch.inputs["token"][0].tolist() == ids(rollout)
    assert batch.mask.sum() == rollout.length  # what the world said is never learned
    again = policy.signals(batch).logp[batch.mask]
    assert again.tolist() == pytest.approx(batch.old_logp[batch.mask].tolist(), abs=2e-5)


def test_words_that_leave_no_room_are_not_read(llama):
    policy = llama.build()  # it reads 64 tokens
    env = MultiTurn(Asking, max_turns=30)
    rollout = asyncio.run(run_rollout(Task("k", ASKED), env, policy.actor(3)))
    assert rollout.turns[-1][1].items == rollout.turns[-1][1].observation == ()
    assert policy.context - len("And?") <= len(ids(rollout)) <= policy.context
    (verdict,) = asyncio.run(env.score(Task("k", ASKED), [rollout]))
    assert (verdict.error, verdict.reward_terms["turns"]) == ("", len(rollout.turns) - 1)
