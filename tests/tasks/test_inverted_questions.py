"""Questions with one right option that become questions with several."""

from random import Random

import pytest

from grupo.core.types import Task
from grupo.tasks import InMemoryTasks, InvertedQuestions
from grupo.tasks.inverted_questions import inverted_options, negated_question
from grupo.util.errors import ConfigError

OPTIONS = ["cat", "dog", "car", "sky"]


def question(prompt, answer="B"):
    return Task(str(prompt), prompt, answer, columns={"options": OPTIONS})


def questions(size):
    return [question(f"What is in clip {i}?") for i in range(size)]


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("Why did the boy run?", "Why didn't the boy run?"),
        ("what Are they?", "what Aren't they?"),
        ("Is it red?", None),
        ("Why", None),
        ("", None),
    ],
)
def test_the_second_word_is_negated_if_it_is_an_auxiliary_verb(text, negated):
    assert negated_question(text) == negated


@pytest.mark.parametrize("seed", range(20))
def test_the_right_option_becomes_the_only_wrong_one(seed):
    options, right = inverted_options(OPTIONS, 1, Random(seed))
    assert 2 <= len(options) <= 4
    assert len(right) == len(options) - 1
    assert {options[i] for i in right} == {*options} - {"dog"}
    assert "dog" in options


def test_one_to_all_of_the_wrong_options_stay():
    numbers = {len(inverted_options(OPTIONS, 1, Random(seed))[1]) for seed in range(40)}
    assert numbers == {1, 2, 3}


def test_the_letters_of_the_answer_name_the_options_of_the_prompt():
    for task in InvertedQuestions(InMemoryTasks(questions(40)), inverted_frac=1.0).load():
        text, *lines = task.prompt.split("\n")
        option = {line[0]: line[2:] for line in lines}
        right = task.reference_answer.split(", ")
        assert text.startswith("What isn't")
        assert {option[letter] for letter in right} == {*option.values()} - {"dog"}
        assert task.columns["options"] == [*option.values()]


@pytest.mark.parametrize(("prompt", "frac"), [("Name it.", 1.0), ("What is it?", 0.0)])
def test_a_question_that_is_not_negated_keeps_its_answer(prompt, frac):
    (task,) = InvertedQuestions(InMemoryTasks([question(prompt)]), inverted_frac=frac).load()
    assert task.prompt == f"{prompt}\nA cat\nB dog\nC car\nD sky"
    assert task.reference_answer == "B"


def test_half_of_the_questions_are_negated_alike_in_every_run():
    tasks = InvertedQuestions(InMemoryTasks(questions(200)), seed=3).load()
    negated = ["isn't" in task.prompt for task in tasks]
    assert 80 < sum(negated) < 120
    assert [task.prompt for task in tasks] == [
        task.prompt for task in InvertedQuestions(InMemoryTasks(questions(200)), seed=3).load()
    ]


def test_the_text_behind_an_image_is_negated_and_the_options_follow():
    parts = [{"type": "image", "image": "a.png"}, {"type": "text", "text": "Where was it?"}]
    prompt = ({"role": "user", "content": parts},)
    (task,) = InvertedQuestions(InMemoryTasks([question(prompt, "A")]), inverted_frac=1.0).load()
    image, text, options = task.prompt[0]["content"]
    assert image == parts[0]
    assert text["text"] == "Where wasn't it?"
    assert options["text"].startswith("\nA ")


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        ("E", OPTIONS, "a letter from A to D"),
        ("AB", OPTIONS, "a letter from A to D"),
        (None, OPTIONS, "a letter from A to D"),
        ("A", ["cat"], "2 to 26 options"),
        ("A", None, "2 to 26 options"),
    ],
)
def test_a_task_without_options_or_without_their_letter_is_refused(answer, options, message):
    task = Task("k", "What is it?", answer, columns={"options": options})
    with pytest.raises(ConfigError, match=message):
        InvertedQuestions(InMemoryTasks([task])).load()[0]
