"""Constraints of IFEval and Tülu 3: cases by hand, attacks, and bounded time."""

import json
import time

import pytest

from grupo.core.component import to_code
from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import InstructionFollowing, all_met, share_met, whole_text
from grupo.rewards.instruction_formats import IFEVAL, TULU, task_constraints
from grupo.util.errors import ConfigError


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


def ifeval_task(**constraints):
    """A task with constraints by their names, in which : is written __."""
    names = [name.replace("__", ":") for name in constraints]
    columns = {"instruction_id_list": names, "kwargs": list(constraints.values())}
    return Task("k", "?", columns=columns, location="t.jsonl, line 2")


def tulu_task(name, **arguments):
    truth = json.dumps({"func_name": name, "N": None, **arguments})
    return Task("k", "?", truth, columns={"ground_truth": truth}, location="t.jsonl, line 2")


AT_LEAST = "at least"
# the constraint; its arguments; texts that meet it; texts that do not
IFEVAL_CASES = [
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": AT_LEAST},
        ["NASA and ESA", "I AM"],
        ["NASA", "Nasa Esa", ""],
    ),
    ("change_case:english_capital", {}, ["ALL, 2", "ÄÖ"], ["All", "2", ""]),
    ("change_case:english_lowercase", {}, ["all, 2", "äö"], ["All", "2", ""]),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": "Why is\nit blue?"},
        ["Why is it blue? Light."],
        ["Why is it blue?", "Light. Why is it blue?", "Why is it blue? ..", ""],
    ),
    (
        "combination:two_responses",
        {},
        ["One.******Two."],
        ["One.******One.", "One.", "******", "a******b******c", "One.******", ""],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["[a] [b c]", "[a][b][c]"],
        ["[a]", "[] []", "[a [b", ""],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Yours\n\nP.S. Write", "Yours\np. s. write"],
        ["Yours", "P.S.", "So P.S. more", ""],
    ),
    (
        "detectable_format:constrained_response",
        {},
        ["My answer is yes.", "Well. My answer is maybe."],
        ["yes", "My answer is yes. My answer is no.", ""],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": 1}', '```json\n{"a": [2]}\n```', "[]"],
        ["{a: 1}", '{"a": 1} done', "3", '{"a": NaN}', "[" * 90_000, "9" * 90_000, ""],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Section", "num_sections": 2},
        ["Section 1\nA\nSection 2\nB", "**Section 1**\nA\n# Section II:\nB"],
        ["Section 1\nSection 2\nSection 3", "Section 1\nA", "the Section 1 a Section 2 b", ""],
    ),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* a\n* b", "- a\n  - b", "* a\n***\n* b\n* * *"],
        ["* a", "* a\n* b\n* c", "**a**\n**b**", "*\n*", ""],
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* and *b c*", "**a** and *b*"],
        ["*a*", "****", "* * * *", "*a\nb*", ""],
    ),
    ("detectable_format:title", {}, ["<<A>>\nb"], ["<<>>", "<< >>", "<A>", "<<A\n>>", ""]),
    (
        "keywords:existence",
        {"keywords": ["red", "deep sea"]},
        ["Red, the deep\nsea"],
        ["red", "bored deep sea", "r\u200bed deep sea", ""],
    ),
    ("keywords:forbidden_words", {"forbidden_words": ["red"]}, ["bored"], ["so RED!", ""]),
    (
        "keywords:frequency",
        {"keyword": "red", "frequency": 3, "relation": "less than"},
        ["red red", "blue"],
        ["red red red", ""],
    ),
    (
        "keywords:letter_frequency",
        {"letter": "a", "let_frequency": 3, "let_relation": AT_LEAST},
        ["Banana", "A aa"],
        ["Ana", ""],
    ),
    (
        "language:response_language",
        {"language": "ru"},
        ["Привет, мир"],
        ["Hello", "Привет world", "12", ""],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"},
        ["A\n\nThen, b", "A\n \n\n\n*Then* b"],
        ["Then\n\nA", "A\n\nThen\n\nB", "A\nThen", ""],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["A\n***\nB", "A\n\n* * *\n\nB\n\nc"],
        ["A", "A\n***\n***\n", "A\n***\nB\n***\nC", ""],
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, "relation": AT_LEAST},
        ["A. B! C?", "A. B. C", "一。二。三。"],
        ["A. B.", "3.5.2", "...!!!???. . .", ""],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 4, "relation": "less than"},
        ["it's a well-known", "один два три"],
        ["a b c d", "...", ""],
    ),
    ("punctuation:no_comma", {}, ["a b"], ["a, b", "一，二", ""]),  # noqa: RUF001
    (
        "startend:end_checker",
        {"end_phrase": "That is all."},
        ["So. That is all.", 'So. "that is ALL." \n'],
        ["That is all. Or not", "That is", "That is all.\n<!-- x -->", ""],
    ),
    ("startend:quotation", {}, ['"A b"', "“A”"], ['"A', 'A"', '"', '""', '" "', ""]),
]
TULU_CASES = [
    ("validate_choice", {"options": ["yes", "no"]}, ["yes."], ["yes no", "maybe", ""]),
    ("validate_end", {"end_phrase": "Bye"}, ["So bye"], ["Bye now", ""]),
    ("validate_forbidden_words", {"forbidden_words": ["red"]}, ["blue"], ["red", ""]),
    (
        "validate_frequency_capital_words",
        {"N": 1, "quantifier": "at most"},
        ["A b", "a"],
        ["A B", ""],
    ),
    ("validate_highlighted_sections", {"N": 1}, ["*a*"], ["a", ""]),
    ("validate_json_format", {}, ["{}"], ["", "x"]),
    ("validate_lowercase", {}, ["a"], ["A", ""]),
    ("validate_no_commas", {}, ["a"], ["a,", ""]),
    ("validate_paragraphs", {"N": 1, "i": 1, "first_word": "a"}, ["A b"], ["b", ""]),
    ("validate_placeholders", {"N": 1}, ["[a]"], ["a", ""]),
    ("validate_quotation", {}, ['"a"'], ["a", ""]),
    ("validate_repeat_prompt", {"original_prompt": "Hi"}, ["hi there"], ["there", ""]),
    ("validate_response_language", {"language": "ko"}, ["안녕"], ["hi", ""]),
    ("validate_sections", {"N": 1, "section_splitter": "Part"}, ["Part 1\na"], ["Part 1", ""]),
    ("validate_title", {}, ["<<a>>"], ["a", ""]),
    ("validate_two_responses", {}, ["a******b"], ["a", ""]),
    ("validate_uppercase", {}, ["A"], ["a", ""]),
    (
        "validate_word_count",
        {"N": 20, "quantifier": "around"},
        ["a " * 18, "a " * 22],
        ["a " * 17, "a " * 23, ""],
    ),
    ("verify_bullet_points", {"N": 1}, ["* a"], ["a", ""]),
    ("verify_keyword_frequency", {"word": "red", "N": 2}, ["red Red"], ["red", "red " * 3, ""]),
    ("verify_keywords", {"keyword_list": ["red"]}, ["red"], ["blue", ""]),
    ("verify_letter_frequency", {"letter": "z", "N": 1}, ["Zoo"], ["a", "zz", ""]),
    ("verify_paragraph_count", {"N": 2}, ["a\n* * *\nb"], ["a", ""]),
    ("verify_postscript", {"postscript_marker": "P.P.S"}, ["a\nP.P.S b"], ["a", ""]),
    ("verify_sentence_constraint", {"N": 2, "quantifier": "at most"}, ["A. B."], ["A. B. C.", ""]),
]


def test_every_constraint_has_cases():
    assert [case[0] for case in IFEVAL_CASES] == sorted(IFEVAL)
    assert [case[0] for case in TULU_CASES] == sorted(TULU)


@pytest.mark.parametrize(("name", "arguments", "meeting", "breaking"), IFEVAL_CASES)
def test_constraints_of_ifeval(name, arguments, meeting, breaking):
    # the hub's table has every argument of every instruction, None where it has no meaning
    columns = {"instruction_id_list": [name], "kwargs": [{"unused": None, **arguments}]}
    task, reward = Task("k", "?", columns=columns), InstructionFollowing(whole_text)
    assert {text: reward.score(task, rollout(text)) for text in (*meeting, *breaking)} == {
        **dict.fromkeys(meeting, 1.0),
        **dict.fromkeys(breaking, 0.0),
    }


@pytest.mark.parametrize(("name", "arguments", "meeting", "breaking"), TULU_CASES)
def test_constraints_of_tulu(name, arguments, meeting, breaking):
    task, reward = tulu_task(name, **arguments), InstructionFollowing()
    assert {text: reward.score(task, rollout(text)) for text in (*meeting, *breaking)} == {
        **dict.fromkeys(meeting, 1.0),
        **dict.fromkeys(breaking, 0.0),
    }


def test_the_score_is_the_share_or_all():
    task = ifeval_task(punctuation__no_comma={}, change_case__english_lowercase={})
    texts = [rollout("one two"), rollout("One two"), rollout("One, two"), rollout("")]
    assert InstructionFollowing()(task, texts) == [1.0, 0.5, 0.0, 0.0]
    assert InstructionFollowing(combine=all_met)(task, texts) == [1.0, 0.0, 0.0, 0.0]
    assert (share_met([]), all_met([])) == (0.0, 0.0)


def test_several_constraints_of_tulu_and_json_text_of_ifeval():
    truth = [{"instruction_id": ["punctuation:no_comma", "startend:quotation"], "kwargs": [{}, {}]}]
    task = Task("k", "?", json.dumps(truth))
    assert InstructionFollowing().score(task, rollout("one")) == 0.5
    columns = {"instruction_id_list": '["punctuation:no_comma"]', "kwargs": "[{}]"}
    assert InstructionFollowing().score(Task("k", "?", columns=columns), rollout("one")) == 1.0


def test_thoughts_are_no_answer():
    task = ifeval_task(keywords__existence={"keywords": ["red"]})
    texts = ["<think>red</think> blue", "<think>red", "<think>a</think> red"]
    assert InstructionFollowing()(task, list(map(rollout, texts))) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            ifeval_task(punctuation__no_coma={}),
            "the constraint 'punctuation:no_coma' is unknown. Did you mean 'punctuation:no_comma'?",
        ),
        (
            ifeval_task(keywords__existence={}),
            "a constraint lacks the argument 'keywords'.",
        ),
        (
            ifeval_task(length_constraints__number_words={"num_words": 2, "relation": "at leest"}),
            "the relation 'at leest'. Did you mean 'at least'?",
        ),
        (
            ifeval_task(language__response_language={"language": "xx"}),
            "the language 'xx'. Allowed: ar,",
        ),
        (
            ifeval_task(
                length_constraints__number_words={"num_words": "2", "relation": "at least"}
            ),
            "AtLeast.number: '2'",
        ),
        (tulu_task("validate_titel"), "the constraint 'validate_titel' is unknown."),
        (
            Task("k", "?", "4", location="t.jsonl, line 2"),
            "there are no constraints. Allowed: the columns instruction_id_list and kwargs,",
        ),
        (
            Task("k", "?", columns={"instruction_id_list": []}, location="t.jsonl, line 2"),
            "0 instructions and 0 kwargs.",
        ),
    ],
)
def test_malformed_tasks_are_config_errors_that_name_the_row(task, message):
    with pytest.raises(ConfigError) as error:
        InstructionFollowing().validate_tasks([task])
    assert str(error.value).startswith(f"tasks: t.jsonl, line 2: {message}")


GIANTS = (
    "!",
    "a",
    "*",
    "* ",
    "[",
    "\n",
    " ",
    "-",
    "a-",
    "<<",
    '"',
    "red ",
    "Section 1\n",
    "一。",
    "\n ",
)


@pytest.mark.slow
def test_giant_answers_take_bounded_time_and_longer_ones_meet_nothing():
    tasks = [
        Task("k", "?", columns={"instruction_id_list": [name], "kwargs": [arguments]})
        for name, arguments, *_ in IFEVAL_CASES
    ]
    constraints = [constraint for task in tasks for constraint in task_constraints(task)]
    for piece in GIANTS:
        text = (piece * 100_000)[:99_999] + "x"
        for constraint in constraints:
            started = time.process_time()
            constraint(text)
            assert time.process_time() - started < 2.0, (piece, constraint)
    assert InstructionFollowing().score(tasks[1], rollout("A" * 100_000)) == 1.0
    assert InstructionFollowing().score(tasks[1], rollout("A" * 100_001)) == 0.0


def test_it_prints_as_code_and_returns_from_its_record():
    reward = InstructionFollowing(combine=all_met)
    assert from_data(to_data(reward)) == reward
    assert "all_met" in to_code(reward)
