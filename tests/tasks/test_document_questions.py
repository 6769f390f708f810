"""Questions about documents: answers, documents by seed, and documents that are shown."""

import pytest

from grupo.tasks.document_questions import OBJECTS, RULES_PREFIX, DocumentQuestions, RuleBooks
from grupo.util.errors import ConfigError


def rules_of(document: str) -> list[str]:
    return [rule.replace("-", " ") for rule in document.split()]


def asked_objects(prompt: object) -> list[str]:
    return [word for word in str(prompt).split() if word in OBJECTS]


def test_all_questions_are_about_one_document_that_no_prompt_shows():
    tasks = DocumentQuestions(40, num_objects=4, size=50).load()
    (document,) = {task.columns["rules"] for task in tasks}
    objects = [rule.split()[0] for rule in rules_of(document)]
    assert sorted(objects) == sorted(OBJECTS)
    assert not any(character.isdigit() for task in tasks for character in str(task.prompt))


def test_an_answer_repeats_the_rules_of_the_objects_in_the_order_of_the_question():
    for task in DocumentQuestions(10, num_objects=3, size=50).load():
        answered = str(task.reference_answer).split(". ")
        assert {*answered} <= {*rules_of(task.columns["rules"])}
        assert [rule.split()[0] for rule in answered] == asked_objects(task.prompt)
        assert len({*answered}) == 3


def test_the_document_has_a_seed_of_its_own():
    first, questions, document = (
        DocumentQuestions(seed=seed, document_seed=document_seed).load()[0]
        for seed, document_seed in ((0, 0), (1, 0), (0, 1))
    )
    assert first.columns["rules"] == questions.columns["rules"] != document.columns["rules"]
    assert first.prompt != questions.prompt


def test_a_share_of_the_prompts_ends_with_its_document():
    tasks = RuleBooks(4, 8, size=400, shown_share=0.5).load()
    shown = [
        task for task in tasks if str(task.prompt).endswith(RULES_PREFIX + task.columns["rules"])
    ]
    assert 160 < len(shown) < 240
    bare = [task for task in tasks if task not in shown]
    assert not any(character.isdigit() for task in bare for character in str(task.prompt))
    assert {len(rules_of(task.columns["rules"])) for task in tasks} == {4, 5, 6, 7, 8}


def test_a_question_about_a_random_document_has_up_to_max_objects_objects():
    tasks = RuleBooks(size=100, max_objects=3, shown_share=0.0).load()
    assert {len(asked_objects(task.prompt)) for task in tasks} == {1, 2, 3}


@pytest.mark.parametrize(
    ("make", "arguments", "field"),
    [
        (DocumentQuestions, (41,), "num_rules"),
        (DocumentQuestions, (3, 4), "num_objects"),
        (RuleBooks, (5, 4), "max_rules"),
    ],
)
def test_numbers_of_rules_that_are_not_allowed(make, arguments, field):
    with pytest.raises(ConfigError, match=field):
        make(*arguments)
