"""Every combination of answers has three candidates that can run, with true reasons."""

import itertools

import pytest

from grupo.catalogue.entries import methods
from grupo.core.paper import TAGS
from grupo.evidence.suggest.candidates import STARTS, Candidate, points_of_methods, suggest_methods
from grupo.evidence.suggest.evidence import DOES_NOT_HOLD, find_evidence
from grupo.evidence.suggest.questions import POLICY, QUESTIONS, Answers
from grupo.evidence.suggest.rules import RULES
from grupo.evidence.suggest.runnable import can_run
from grupo.util.errors import ConfigError

FIRST_RUN = Answers("language", "verifier", "nothing", "unknown", "local")


def all_answers():
    for policy in POLICY.choices:
        for rest in itertools.product(*(q.allowed(policy) for q in QUESTIONS[1:])):
            yield Answers(policy, *rest)


@pytest.fixture(scope="module")
def suggestions():
    return {answers: suggest_methods(answers) for answers in all_answers()}


def keys(candidates):
    return [candidate.key for candidate in candidates]


@pytest.mark.slow
def test_every_combination_of_answers_gives_three_different_methods_that_can_run(suggestions):
    assert len(suggestions) > 1500
    for answers, candidates in suggestions.items():
        assert len({*keys(candidates)}) == 3, answers
        assert all(can_run(key, answers) for key in keys(candidates)), answers


def test_every_rule_names_existing_methods_tags_questions_and_answers():
    known = {entry.key for entry in methods()}
    choices = {question.name: question.choices for question in QUESTIONS}
    for rule in RULES:
        assert {*rule.methods} <= known, rule
        assert {*rule.tags} <= set(TAGS), rule
        assert rule.answer in choices[rule.question], rule
        assert {*rule.policies} <= set(POLICY.choices), rule
    assert {key for names in STARTS.values() for key in names} <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda r: f"{r.question}-{r.answer}-{r.policies[0]}")
def test_every_rule_gives_a_reason_of_some_suggestion(rule, suggestions):
    assert any(
        reason.text == rule.reason and candidate.key in rule.methods
        for candidates in suggestions.values()
        for candidate in candidates
        for reason in candidate.reasons
    )


def test_every_answer_that_says_something_has_a_rule_for_every_kind_of_policy():
    uninformative = {("extra", "nothing"), ("sampler", "local")}
    for question in QUESTIONS:
        for answer in question.choices:
            ruled = {
                p
                for r in RULES
                if (r.question, r.answer) == (question.name, answer)
                for p in r.policies
            }
            assert ruled or (question.name, answer) in uninformative, answer


def test_methods_for_images_are_suggested_for_images_only(suggestions):
    for answers, candidates in suggestions.items():
        assert ("flow_grpo" in keys(candidates)) <= (answers.policy == "images")


def test_a_method_that_reads_a_teacher_or_a_solution_needs_one():
    with_teacher = Answers("language", "verifier", "teacher", "unknown", "local")
    assert can_run("kdrl", with_teacher)
    assert not can_run("kdrl", FIRST_RUN)
    with_solutions = Answers("language", "verifier", "solutions", "unknown", "local")
    assert can_run("luffy", with_solutions)
    assert not can_run("luffy", with_teacher)


def test_a_sampler_that_scores_texts_cannot_use_a_server():
    agents = Answers("agents", "verifier", "nothing", "credit", "local")
    assert can_run("igpo", agents)
    assert not can_run("igpo", Answers("agents", "verifier", "nothing", "credit", "engine"))


def test_without_rewards_methods_learn_without_labels():
    answers = Answers("language", "none", "nothing", "unknown", "local")
    for candidate in suggest_methods(answers):
        assert "unsupervised" in candidate.entry.tags


def test_a_method_whose_claim_does_not_hold_comes_after_an_equal_one():
    rule = next(rule for rule in RULES if rule.answer == "engine")
    assert points_of_methods(rule)["icepop"] < points_of_methods(rule)["tis"]
    answers = Answers("language", "verifier", "nothing", "mismatch", "local")
    candidates = suggest_methods(answers)
    assert find_evidence("icepop").verdict in DOES_NOT_HOLD
    assert find_evidence("trm").verdict == "not tested"
    assert keys(candidates).index("trm") < keys(candidates).index("icepop")


def test_a_method_that_only_has_a_tag_is_given_the_meaning_of_the_tag():
    answers = Answers("language", "none", "nothing", "unknown", "stale")
    reasons = [r.text for c in suggest_methods(answers) for r in c.reasons]
    assert all("made for rollouts of an older policy" not in text for text in reasons)


def test_a_method_that_a_rule_names_is_given_no_tag_as_a_further_reason():
    answers = Answers("agents", "graded", "nothing", "credit", "local")
    mt_grpo = next(c for c in suggest_methods(answers) if c.key == "mt_grpo")
    assert [reason.question for reason in mt_grpo.reasons] == ["policy", "problem"]
    assert all("has the tag" not in reason.text for reason in mt_grpo.reasons)


def test_needs_name_what_a_recipe_has_to_provide():
    assert Candidate("luffy", (), 0.0).needs == ("columns `solution`",)
    assert "reward terms `correct`, `format`" in Candidate("gdpo", (), 0.0).needs
    assert Candidate("dapo", (), 0.0).needs == ("rewards from 0 to 1",)
    assert Candidate("kdrl", (), 0.0).needs == ("a teacher in `aux_models`",)


@pytest.mark.parametrize(
    ("policy", "changes", "message"),
    [
        ("langauge", {}, "policy: 'langauge'. Did you mean 'language'"),
        ("images", {"sampler": "engine"}, "sampler: 'engine' with policy 'images'. Allowed: local"),
        ("images", {"reward": "none"}, "reward: 'none' with policy 'images'"),
        ("language", {"problem": "entropi"}, "problem: 'entropi'. Did you mean 'entropy'"),
    ],
)
def test_an_unknown_or_impossible_answer_is_refused(policy, changes, message):
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        Answers(**{**vars(FIRST_RUN), "policy": policy, **changes})
