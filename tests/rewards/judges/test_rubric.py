"""Rubrics: weighted means, logged items, items from columns, failures."""

from dataclasses import replace

import pytest

from grupo.rewards import Rubric, RubricInOneCall
from grupo.rewards.judges import ChatReply, RubricColumn, RubricItem
from grupo.util.errors import ConfigError
from tests.helpers.judged import TASK, ScriptedModel, failing, results, terms

ITEMS = (RubricItem("right", "It is right.", 3.0), RubricItem("brief", "It is brief."))
COLUMN = [
    {"name": "right", "criterion": "It is 4.", "weight": 3},
    {"name": "kind", "criterion": "K"},
]


def met(**by_criterion):
    """A model that says yes to the criteria of these names for the answers in their value."""
    criteria = {item.name: item.criterion for item in ITEMS}

    def reply(message):
        answer, criterion = message.split("|")
        names = [name for name, answers in by_criterion.items() if answer in answers]
        return f"Met: {'yes' if criterion in [criteria[n] for n in names] else 'no'}"

    return ScriptedModel(reply)


def rubric(model, items=ITEMS):
    return Rubric(model, items, "{completion}|{criterion}")


def in_one_call(reply, items=ITEMS):
    return RubricInOneCall(ScriptedModel(lambda _: reply), items)


def test_the_reward_is_the_weighted_mean_and_every_item_is_a_reward_term():
    first, second = results(rubric(met(right=["4"], brief=["4", "5"])), "4", "5")
    assert first.reward == 1.0
    assert terms(second) == {"quality": 0.25, "quality/right": 0.0, "quality/brief": 1.0}


def test_each_item_of_each_rollout_is_one_call():
    reward = rubric(met())
    results(reward, "4", "5")
    sent = [messages[0]["content"] for messages in reward.model.conversations]
    assert sent == ["4|It is right.", "4|It is brief.", "5|It is right.", "5|It is brief."]


def test_a_rollout_with_an_item_without_a_score_fails_and_names_the_item():
    def reply(message):
        return failing(message) if message == "5|It is brief." else "Met: yes"

    good, failed = results(rubric(ScriptedModel(reply)), "4", "5")
    assert good.reward == 1.0
    assert "item 'brief': no reply to '5|It is brief.'" in failed.error
    assert failed.reward != failed.reward  # NaN


def test_one_call_scores_all_items():
    reward = in_one_call('{"right": 10, "brief": 5, "further": "text"}')
    assert terms(*results(reward, "4")) == {
        "quality": 0.875,
        "quality/right": 1.0,
        "quality/brief": 0.5,
    }
    (messages,) = reward.model.conversations
    assert "right: It is right.\nbrief: It is brief." in messages[0]["content"]
    assert "with a number from 0 to 10" in messages[0]["content"]


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ('{"right": 10}', "has no field 'brief'"),
        ('{"right": 10, "brief": 11}', "11 is outside of 0 to 10"),
        ('{"right": 10, "brief": "5"}', "no number"),
        ("right: 10, brief: 5", "no JSON object"),
        (ChatReply('{"right": 10, "brief": 5}', "length"), "cut at the token limit"),
    ],
)
def test_one_call_without_a_score_for_every_item_fails(reply, cause):
    (failed,) = results(in_one_call(reply), "4")
    assert cause in failed.error


def test_items_of_a_column_are_those_of_the_task():
    task = replace(TASK, columns={"rubric": COLUMN})
    reward = rubric(
        ScriptedModel(lambda m: f"Met: {'yes' if 'It is 4' in m else 'no'}"), RubricColumn("rubric")
    )
    assert terms(*results(reward, "4", task=task)) == {
        "quality": 0.75,
        "quality/right": 1.0,
        "quality/kind": 0.0,
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "column 'rubric': the task does not have it."),
        ("right", "column 'rubric': 'right'. Allowed: a list of objects"),
        ([], "items named []. Allowed: at least one"),
        (["right"], "item 0: 'right'. Allowed: an object"),
        ([{"name": "right"}], "item 0: RubricItem.__init__() missing"),
        ([{"name": "right", "criteria": "x"}], "'criteria' is no field. Did you mean 'criterion'?"),
        ([{**COLUMN[0], "weight": 0}], "RubricItem.weight: 0"),
        ([{**COLUMN[0], "weight": "3"}], "RubricItem.weight: '3'"),
        ([COLUMN[0], COLUMN[0]], "no name twice"),
        ([{"name": "score", "criterion": "x"}], "none of them 'score'"),
    ],
)
@pytest.mark.parametrize("make", [rubric, lambda m, items: in_one_call("", items)])
def test_a_column_that_holds_no_items_is_refused_before_the_run(make, column, message):
    task = replace(TASK, columns={} if column is None else {"rubric": column})
    with pytest.raises(ConfigError) as error:
        make(met(), RubricColumn("rubric")).validate_tasks([task])
    assert "task 'k'" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("items", [(), (ITEMS[0], ITEMS[0])])
def test_a_recipe_without_items_or_with_a_name_twice_is_refused(items):
    with pytest.raises(ConfigError, match="at least one, no name twice"):
        rubric(met(), items)


def test_a_prompt_without_the_criterion_is_refused():
    with pytest.raises(ConfigError, match=r"Rubric.prompt: .*{criterion}"):
        Rubric(met(), ITEMS, "{completion}")


def test_the_prompts_of_the_library_need_no_column():
    Rubric(met(), ITEMS).validate_tasks([TASK])
    RubricInOneCall(met(), ITEMS).validate_tasks([TASK])
