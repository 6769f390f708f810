"""Graphs of thoughts: nesting, edges, limits, what the engine reads, bad input."""

import asyncio

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.private_turns import record_private_turns
from grupo.core.thought_graph import parse_plan
from grupo.core.types import Rollout
from grupo.core.usage import count_external_usage
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.turns import AdaptiveGraph
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine
from tests.helpers.scripted_actor import script
from tests.helpers.token_counts import engine, folder, policy

__all__ = ["engine", "folder", "policy"]  # fixtures

FORMS = {
    "plan_prompt": "P({task})({thoughts}){nodes}",
    "complexity_prompt": "J({task})({thoughts}){question}",
    "question_prompt": "S({task})({thoughts}){question}",
    "answer_prompt": "A({task})({thoughts})",
}


def answered(replies, strategy):
    """Rollout, prompts, labels and usage; replies are looked up by the longest matching prompt."""

    def next_letter(context, key):
        prompt = max((p for p in replies if context.startswith(p)), key=len)
        return f"{replies[prompt]}."[len(context) - len(prompt)]

    actor = script(next_letter)
    with count_external_usage() as usage, record_private_turns() as turns:
        rollout = asyncio.run(strategy(actor, Rollout(), "Q"))
    return rollout, [prompt for prompt, _ in actor.log], [x.label for x in turns], usage


COMPLEX = {
    "P(Q)()3": "a\nb",
    "J(Q)()a": "simple",
    "J(Q)()b.": "complex",
    "S(Q)()a": "1",
    "P(S(Q)()b.)()3": "c",
    "S(S(Q)()b.)()c.": "2",
    "A(S(Q)()b.)(1. c. 2.)": "3",
    "A(Q)(1. a 1.\n2. b. 3.)": "right",
}


def test_a_complex_question_opens_one_graph_and_the_depth_ends_the_recursion():
    rollout, prompts, labels, usage = answered(COMPLEX, AdaptiveGraph(1, 3, 1, **FORMS))
    assert rollout.text == "right."
    assert usage == {"graph/nested": 1, "graph/thoughts": 3}
    assert sorted(prompts) == sorted(COMPLEX)  # c is not judged: no graph may be nested below
    assert set(labels) >= {"plan", "simple 2?", "plan 2.", "thought 2.1", "thought 2"}


def test_without_nesting_nothing_is_judged():
    replies = {k: v for k, v in COMPLEX.items() if k[0] != "J"} | {"S(Q)()b.": "3"}
    rollout, prompts, _, usage = answered(replies, AdaptiveGraph(1, 3, 0, **FORMS))
    assert rollout.text == "right."
    assert usage == {"graph/thoughts": 2}
    assert [p[0] for p in prompts] == ["P", "S", "S", "A"]


def test_a_thought_reads_the_inputs_that_its_plan_names():
    replies = {
        "P(Q)()2": "a\nb",
        "S(Q)()": "1",
        "P(Q)(1. a 1.\n2. b. 1.)2": "[2] c\n[1, 7] d",
        "S(Q)(2. b. 1.)c": "2",
        "S(Q)(1. a 1.)d.": "3",
        "P(Q)(1. a 1.\n2. b. 1.\n3. c 2.\n4. d. 3.)2": "done",
        "A(Q)(1. a 1.\n2. b. 1.\n3. c 2.\n4. d. 3.)": "right",
    }
    replies = {**replies, "S(Q)()a": "1", "S(Q)()b.": "1"}
    rollout, _, _, usage = answered(replies, AdaptiveGraph(5, 2, 0, **FORMS))
    assert rollout.text == "right."
    assert usage == {"graph/thoughts": 4, "graph/unknown_inputs": 1}


@pytest.mark.parametrize("num_thoughts", range(4))
def test_every_plan_is_acyclic(num_thoughts):
    plan = parse_plan("[1, 2, 3, 4] a\nb\n[] c\n[99] d\n\n* a\n(2) e", num_thoughts, 9)
    assert [q.text for q in plan.questions] == ["a", "b", "c", "d", "e"]
    assert all(i <= num_thoughts for q in plan.questions for i in q.inputs)
    assert plan.questions[2].inputs == ()
    assert plan.unknown_inputs == 5 - num_thoughts


def test_layers_and_nodes_are_limited():
    def endless(context, key):
        return "x\ny\nz."[len(context.rpartition("|")[2])]

    actor = script(endless)
    forms = {name: f"{form}|" for name, form in FORMS.items()}
    with count_external_usage() as usage:
        asyncio.run(AdaptiveGraph(2, 2, 0, **forms)(actor, Rollout(), "Q"))
    assert [p[0] for p, _ in actor.log] == ["P", "S", "S", "P", "S", "S", "A"]
    assert usage["graph/thoughts"] == 4


def test_a_task_without_thoughts_is_answered_as_usual_and_counted():
    rollout, prompts, _, usage = answered({"P(Q)()3": "done", "Q": "1"}, AdaptiveGraph(**FORMS))
    assert (rollout.text, prompts) == ("1.", ["P(Q)()3", "Q"])
    assert usage == {"graph/thoughts": 0, "graph/empty": 1}


def test_the_answer_belongs_to_the_task_and_was_sampled_elsewhere():
    rollout, _, _, _ = answered(COMPLEX, AdaptiveGraph(1, 3, 1, **FORMS))
    ((observation, response),) = rollout.turns
    assert (observation, response.observation) == ("Q", ("Q",))
    assert (response.off_context, response.sampled) == (True, True)


def test_the_engine_reads_a_task_once_for_all_thoughts(policy):
    task = "abcdefgh" * 80
    actor = policy.actor(3)
    forms = {name: f"{{task}}{form[0]}{form.replace('{task}', '')}" for name, form in FORMS.items()}
    strategy = AdaptiveGraph(2, 3, 1, 8, **forms)
    with record_private_turns() as turns:
        run_coroutine(strategy(actor.fork("turn"), Rollout(), task))
    assert len(turns) > 4
    assert len(task) < actor.read_tokens[""] < 2 * len(task)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"role": "planner"}, "needs a policy of the role 'planner'"),
        ({"nodes": 0}, r"AdaptiveGraph\.nodes: 0\. Allowed: 1 or more"),
        ({"depth": -1}, r"AdaptiveGraph\.depth: -1\. Allowed: 0 or more"),
        ({"plan_prompt": "{task} {thoughts}"}, r"AdaptiveGraph\.plan_prompt: .* lacks \{nodes\}"),
        (
            {"question_prompt": "{task}{thoughts}{qestion}"},
            r"AdaptiveGraph\.question_prompt: .* lacks \{question\}",
        ),
    ],
)
def test_bad_input_is_named_before_the_run(fields, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", AdaptiveGraph(**fields), RECIPE)


def test_thoughts_beyond_the_context_are_refused_with_their_tokens(folder):
    recipe = RECIPE.replace(policy=CausalLM(folder, max_new_tokens=12))
    message = (
        r"may put 1,152 tokens of thoughts .* context of 999 tokens, .* answer of 12, leaves 987\."
    )
    check_strategy("strategy", AdaptiveGraph(3, 3, 0, 48), recipe)
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", AdaptiveGraph(3, 3, 1, 48), recipe)


def test_a_model_that_is_not_there_yet_is_not_checked(tmp_path):
    recipe = RECIPE.replace(policy=CausalLM(str(tmp_path / "model"), max_new_tokens=12))
    check_strategy("strategy", AdaptiveGraph(30, 30), recipe)


def test_a_number_of_thousands_of_digits_is_an_unknown_thought():
    plan = parse_plan(f"[{5_000 * '9'}, 1] a", 1, 3)
    assert plan.questions[0].inputs == (1,)
    assert plan.unknown_inputs == 1
