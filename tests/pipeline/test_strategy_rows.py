"""Collections of a turn strategy's answers: which texts become rows, and what they cost."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest

from grupo.core.interfaces import single_response
from grupo.core.private_turns import record_private_turns, reject_answers
from grupo.core.serialization import from_data, to_data
from grupo.distributed.base import SINGLE_RANK
from grupo.methods.ppo import ppo
from grupo.methods.sft import sft
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    Pipeline,
    Stage,
    SurveyStage,
    answers,
    answers_against_rejected,
    run_pipeline,
)
from grupo.pipeline.collect import ROWS_FILE, WithRejected, sample_task_groups
from grupo.pipeline.load import load_pipeline_file
from grupo.pipeline.validate import check_pipeline
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import BestOf, Revised, StepBeam, Vote
from grupo.storage import rollout_json
from grupo.training.callbacks import NullCallback
from grupo.util.errors import ConfigError
from tests.helpers.pipelines import first_letter, short
from tests.helpers.scripted_actor import TASK, Once, dice, script


def group_of(strategy, key, task=TASK, reward_fn=len):
    sampler = GroupSampler(1, WithRejected(strategy))
    return asyncio.run(sampler(task, Once(reward_fn), script(dice).fork(key))).rollouts


@pytest.mark.parametrize("key", range(6))
def test_a_vote_is_chosen_over_the_attempts_that_it_outvotes(key):
    with record_private_turns() as turns:
        (rollout,) = group_of(Vote(7, first_letter), key)
    texts = [turn.text for turn in turns]
    votes = Counter(text[:1] for text in texts)
    assert votes[rollout.text[:1]] == max(votes.values())
    others = [text for text in texts if text[:1] != rollout.text[:1]]
    assert others, "another key is needed: all attempts agree"
    rows = answers_against_rejected([rollout], bool)
    assert rows == [
        {"chosen": rollout.text, "rejected": text} for text in dict.fromkeys(others) if text.strip()
    ]


def test_best_of_rejects_all_others_and_a_revision_the_answers_before_it():
    with record_private_turns() as turns:
        (best,) = group_of(BestOf(4), 1)
        (revised,) = group_of(Revised(2), 1)
    assert best.rejected == tuple(t.text for t in turns if t.label in _labels(4))
    assert revised.rejected == tuple(t.text for t in turns if t.label in ("answer 1", "answer 2"))


def _labels(n):
    return [f"attempt {i + 1} of {n}" for i in range(n)]


def test_of_nested_strategies_the_outermost_one_rejects():
    with record_private_turns() as turns:
        (rollout,) = group_of(Revised(1, inner=Vote(3, first_letter)), 2)
    assert rollout.rejected == tuple(t.text for t in turns if t.label == "answer 1")


def test_a_vote_without_answers_and_a_single_response_reject_nothing():
    assert group_of(Vote(4, extract=lambda text: ""), 1)[0].rejected == ()
    assert group_of(single_response, 1)[0].rejected == ()


@pytest.mark.parametrize("strategy", [Vote(5, first_letter), BestOf(4), Revised(2)])
def test_rewards_and_reference_answers_change_no_row(strategy):
    def rows(task, reward_fn):
        group = group_of(strategy, 3, task, reward_fn)
        return answers(group, bool), answers_against_rejected(group, bool)

    other = replace(TASK, reference_answer="else", columns={"solution": "else"})
    assert rows(TASK, len) == rows(other, lambda text: -len(text))


def test_a_strategy_of_the_user_names_what_it_rejects():
    async def second(actor, rollout, observation):
        first = await actor.fork(1)(rollout, observation)
        reject_answers([first.text, " "])
        return rollout.append_turn(observation, await actor.fork(2)(rollout, observation))

    (rollout,) = group_of(second, 5)
    (row,) = answers_against_rejected([rollout], bool)
    assert row == {"chosen": rollout.text, "rejected": rollout.rejected[0]}


def test_a_rollout_of_several_turns_has_no_rejected_answers():
    class Twice(Once):
        async def reply(self, task, rollout):
            return None if len(rollout.turns) == 2 else task.prompt

    sampler = GroupSampler(1, WithRejected(BestOf(3)))
    (rollout,) = asyncio.run(sampler(TASK, Twice(), script(dice))).rollouts
    assert rollout.rejected == ()


def test_rejected_answers_are_exchanged_among_ranks():
    (rollout,) = group_of(BestOf(3), 1)
    assert rollout.rejected
    restored = rollout_json.from_data(json.loads(json.dumps(rollout_json.to_data(rollout))))
    assert restored.rejected == rollout.rejected


def test_all_attempts_and_their_votes_are_in_the_ledger(model):
    recipe = short(model)

    def collected(attempts, strategy):
        stage = CollectStage("c", recipe, attempts, 3, answers, strategy=strategy)
        return sample_task_groups(stage.recipe, attempts, 3, NullCallback(), SINGLE_RANK)

    one, four = collected(1, None), collected(1, Vote(4, first_letter))
    longest = recipe.policy.max_new_tokens
    assert one.generated[""] == sum(r.length for group in one.groups for r in group.rollouts)
    assert 3 * 4 <= four.generated[""] <= 3 * 4 * longest
    assert four.generated[""] > sum(r.length for group in four.groups for r in group.rollouts)
    assert four.read == one.read  # the attempts share their prompt
    assert four.usage["votes/all"] == 3


@pytest.mark.slow
def test_a_model_is_trained_on_the_answers_of_a_vote(model, tmp_path):
    recipe = short(model)
    tasks = CollectedTasks("voted")
    imitation = recipe.replace(method=sft(), tasks=tasks, eval_tasks=0, max_steps=6)
    voted = CollectStage("voted", recipe, 1, rows=answers, strategy=Vote(4, first_letter))
    root = run_pipeline(Pipeline((voted, Stage("sft", imitation))), tmp_path / "run")
    rows = [json.loads(line) for line in (root / "voted" / ROWS_FILE).read_text().splitlines()]
    groups = sample_task_groups(voted.recipe, 1, 0, NullCallback(), SINGLE_RANK).groups
    assert [(row["prompt"], row["completion"]) for row in rows] == [
        (group.task.prompt, group.rollouts[0].text) for group in groups
    ]
    summary = json.loads((root / "voted" / "summary.json").read_text())
    assert summary["usage"]["votes/all"] == len(groups)
    assert summary["tokens"] > sum(group.rollouts[0].length for group in groups)
    metrics = [
        json.loads(line) for line in (root / "sft" / "metrics.jsonl").read_text().splitlines()
    ]
    assert metrics[-1]["loss"] < metrics[0]["loss"]


TOML = """
[[stages]]
type = "CollectStage"
name = "voted"
recipe = "tests.pipeline.test_strategy_rows:TOML_RECIPE"
attempts = 1
rows = "answers"
strategy = "{strategy}"
"""
TOML_RECIPE = short("model")


async def own_strategy(actor, rollout, observation):
    return await single_response(actor, rollout, observation)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("Vote(8)", Vote(8)),
        ("BestOf(2, inner=Vote(4))", BestOf(2, inner=Vote(4))),
        ("tests.pipeline.test_strategy_rows:own_strategy", "own_strategy"),
    ],
)
def test_a_recipe_file_spells_the_strategy_of_a_stage(text, strategy, tmp_path):
    (tmp_path / "p.toml").write_text(TOML.format(strategy=text))
    (stage,) = load_pipeline_file(tmp_path / "p.toml").stages
    used = stage.recipe.evaluation.turn_strategy
    assert getattr(used, "__name__", used) == strategy
    assert stage.rows.__name__ == "answers"


def test_a_stage_with_a_strategy_is_saved_and_changed_by_a_field(model):
    stage = CollectStage("c", short(model), rows=answers, strategy=Vote(8))
    assert from_data(to_data(stage)) == stage
    changed = replace(stage, strategy=BestOf(2))
    assert changed.recipe.evaluation.turn_strategy == BestOf(2)


def test_a_sampler_beside_a_strategy_is_refused(model):
    with pytest.raises(ConfigError, match=r"CollectStage.strategy: Vote\(n=8\), and the stage has"):
        CollectStage("c", short(model), sampler=GroupSampler(2), strategy=Vote(8))


@pytest.mark.parametrize("stage", [CollectStage, SurveyStage])
def test_a_strategy_with_a_head_is_refused_where_no_heads_are_loaded(model, stage):
    recipe = short(model).replace(method=ppo())
    recipe = recipe.replace(evaluation=replace(recipe.evaluation, turn_strategy=StepBeam("value")))
    with pytest.raises(ConfigError, match=rf"c: .*'value', and a {stage.__name__} loads no heads"):
        check_pipeline(Pipeline((stage("c", recipe),)))
