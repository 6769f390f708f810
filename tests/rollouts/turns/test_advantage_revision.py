"""Actions that a critic sends back: advantages by hand, limits, counts and bad input."""

import asyncio
from dataclasses import dataclass, field

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.private_turns import record_private_turns, record_rejected_answers
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import AdvantageRevision, FreshContext
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, Script

ASK = "[{task}/{answer}/{advantage}]"


class TwoAgents(Once):
    """Two agents act one after another; the second one reads the action of the first."""

    async def reply(self, task, rollout):
        texts = [response.text for _, response in rollout.turns]
        return (lambda: "S", lambda: f"T{texts[0]}", lambda: None)[len(texts)]()


@dataclass(frozen=True)
class Valued(Script):
    """A script whose head has a value for each context."""

    values: dict = field(default_factory=dict)

    async def predict_head(self, rollout, head):
        assert head == "value"
        turns = rollout.contexts[-1].turns
        return self.values["".join("".join((*a.observation, *a.items)) for _, a in turns)]


def acted(values, replies, strategy, env):
    """The rollout, the prompts, the usage and the private turns; replies come in order."""
    letters = iter("".join(replies))
    actor = Valued(lambda context, key: next(letters), [], values=values)
    with (
        count_external_usage() as usage,
        record_private_turns() as private,
        record_rejected_answers() as rejected,
    ):
        rollout = asyncio.run(run_rollout(TASK, env, actor, turn_strategy=strategy))
    assert not list(letters)  # every reply was asked for
    prompts = [context for context, _ in actor.log]
    return rollout, prompts, dict(usage), [tuple(turn) for turn in private], rejected


# Q(s) = 1, Q(s, a) = 1.4, Q(s, a, b) = 1.1; an action is read before its last letter
TEAM = {"S": 1.0, "Sa": 1.4, "Sa.Ta.": 1.4, "Sa.Ta.b": 1.1, "Sa.Ta.c": 1.5}


def test_the_second_agents_action_of_advantage_minus_0_3_is_sent_back():
    strategy = AdvantageRevision(threshold=0.0, revision_prompt=ASK)
    rollout, prompts, usage, private, rejected = acted(
        TEAM, ["a.", "b.", "c."], strategy, TwoAgents()
    )
    assert [response.text for _, response in rollout.turns] == ["a.", "c."]
    assert prompts == ["S", "Sa.Ta.", "Sa.[Ta./b./-0.30]"]
    assert [label for label, _ in private] == [
        "action 1, advantage 0.40",
        "action 1, advantage -0.30",
        "action 2, advantage 0.10",
    ]
    assert usage == {"advantage_revision/sent_back": 1.0, "advantage_revision/at_limit": 0.0}
    assert rejected == ["b."]


def test_an_action_of_the_threshold_is_accepted():
    # the advantages 0.5 and -0.25 have no rounding error
    values = {"S": 1.0, "Sa": 1.5, "Sa.Ta.": 1.5, "Sa.Ta.b": 1.25}
    strategy = AdvantageRevision(threshold=-0.25, revision_prompt=ASK)
    rollout, _, usage, *_ = acted(values, ["a.", "b."], strategy, TwoAgents())
    assert [response.text for _, response in rollout.turns] == ["a.", "b."]
    assert usage["advantage_revision/sent_back"] == 0


def test_after_the_last_revision_the_action_of_largest_advantage_is_taken():
    values = {"Q": 0.0, "Qa": -0.5, "Qb": -0.25, "Qc": -1.0}
    strategy = AdvantageRevision(threshold=0.0, max_revisions=2, revision_prompt=ASK)
    rollout, prompts, usage, _, rejected = acted(values, ["a.", "b.", "c."], strategy, Once())
    assert rollout.text == "b."
    assert prompts == ["Q", "[Q/a./-0.50]", "[Q/b./-0.25]"]
    assert usage == {"advantage_revision/sent_back": 2.0, "advantage_revision/at_limit": 1.0}
    assert rejected == ["a.", "c."]


def test_the_action_answers_the_observation_and_is_no_sample():
    values = {"Q": 0.0, "Qa": -1.0, "Qb": 1.0}
    rollout, *_ = acted(values, ["a.", "b."], AdvantageRevision(revision_prompt=ASK), Once())
    ((observation, response),) = rollout.turns
    assert (observation, response.observation) == ("Q", ("Q",))
    assert (response.sampled, response.off_context) == (False, True)
    assert AdvantageRevision().provides.given
    assert AdvantageRevision("worth").read_heads == ("worth",)


def test_an_action_of_one_token_is_read_behind_it():
    rollout, *_ = acted(
        {"Q": 0.0, "Q.": 0.5}, ["."], AdvantageRevision(revision_prompt=ASK), Once()
    )
    assert rollout.text == "."


def test_in_a_fresh_context_the_critic_reads_the_observation_alone():
    values = {"S": 1.0, "Sa": 1.4, "Ta.": 1.4, "Ta.b": 1.1, "Ta.c": 1.5}
    strategy = FreshContext(AdvantageRevision(revision_prompt=ASK))
    rollout, prompts, *_ = acted(values, ["a.", "b.", "c."], strategy, TwoAgents())
    assert prompts == ["S", "Ta.", "[Ta./b./-0.30]"]
    assert [context.text for context in rollout.contexts] == ["a.", "c."]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: AdvantageRevision(threshold=float("nan")),
            "AdvantageRevision.threshold: nan. Allowed:",
        ),
        (
            lambda: AdvantageRevision(threshold=float("inf")),
            "AdvantageRevision.threshold: inf. Allowed:",
        ),
        (lambda: AdvantageRevision(head=""), "AdvantageRevision.head: ''"),
        (
            lambda: AdvantageRevision(max_revisions=0),
            "AdvantageRevision.max_revisions: 0. Allowed: 1 to 10000.",
        ),
        (
            lambda: AdvantageRevision(revision_prompt="{task} {answer}"),
            r"revision_prompt: .* lacks \{advantage\}",
        ),
    ],
)
def test_fields_out_of_range_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
