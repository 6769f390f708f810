"""Preference data in TRL's formats, and rows that are refused, each with one message."""

import pytest

from grupo.config.validate import check_columns
from grupo.methods.bco import bco
from grupo.methods.dpo import dpo
from grupo.rollouts.samplers import LabelledAnswers, SelfImprovingPairs
from grupo.tasks import InMemoryTasks
from grupo.tasks.preference_rows import answers_in, label_of
from grupo.util.errors import ConfigError

USER = {"role": "user", "content": "Hi"}
GOOD = {"role": "assistant", "content": "Hello"}
BAD = {"role": "assistant", "content": "What?"}
AGAIN = {"role": "user", "content": "And?"}
PAIR = {"prompt": "2 + 2 =", "chosen": " 4", "rejected": " 5"}


def load(*rows):
    return InMemoryTasks(list(rows)).load()


def turns_of(row, column="chosen"):
    (task,) = load(row)
    return [answer.turns for answer in answers_in(task, column)]


def test_explicit_prompt_in_text():
    assert turns_of(PAIR) == [(("2 + 2 =", " 4"),)]
    assert turns_of(PAIR, "rejected") == [(("2 + 2 =", " 5"),)]


def test_explicit_prompt_in_messages():
    row = {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]}
    assert turns_of(row) == [(((USER,), GOOD),)]


def test_history_of_several_turns_is_context():
    row = {"prompt": [USER, GOOD, AGAIN], "chosen": [GOOD], "rejected": [BAD]}
    assert turns_of(row, "rejected") == [(((USER, GOOD, AGAIN), BAD),)]


def test_answer_of_several_turns_is_learned_in_each():
    row = {"prompt": [USER], "chosen": [GOOD, AGAIN, GOOD], "rejected": [BAD]}
    assert turns_of(row) == [(((USER,), GOOD), ((AGAIN,), GOOD))]


def test_shared_characters_are_the_prompt():
    row = {"chosen": "2 + 2 = 4.", "rejected": "2 + 2 = 5."}
    assert turns_of(row) == [(("2 + 2 =", " 4."),)]


def test_shared_messages_are_the_prompt():
    row = {"chosen": [USER, GOOD, AGAIN, GOOD], "rejected": [USER, GOOD, AGAIN, BAD]}
    assert turns_of(row, "rejected") == [(((USER, GOOD, AGAIN), BAD),)]


def test_conversations_replace_the_text_of_their_prompt():
    row = {"prompt": "Hi", "chosen": [USER, GOOD], "rejected": [USER, BAD]}
    assert turns_of(row) == [(((USER,), GOOD),)]


def test_explicit_prompt_is_kept_although_the_answers_begin_alike():
    row = {"prompt": "2 + 2 =", "chosen": " 4.", "rejected": " 4!"}
    assert turns_of(row) == [(("2 + 2 =", " 4."),)]


def test_several_answers_of_one_prompt():
    row = {"prompt": "Q", "chosen": ["a", "b"], "rejected": ["c"]}
    assert turns_of(row) == [(("Q", "a"),), (("Q", "b"),)]


@pytest.mark.parametrize(("label", "expected"), [(True, True), (False, False), (1, True), (0, 0)])
def test_label_is_a_truth_value(label, expected):
    (task,) = load({"prompt": "Q", "completion": "a", "label": label})
    assert label_of(task, "label") == expected


def check(method, *rows):
    check_columns(method, load(*rows))


UNPAIRED = {"prompt": "Q", "completion": "a", "label": True}
LABELLED = bco().replace(sampler=LabelledAnswers())


def test_good_rows_are_accepted():
    check(dpo(), PAIR)
    check(LABELLED, UNPAIRED)
    check(dpo().replace(sampler=SelfImprovingPairs()), PAIR)


@pytest.mark.parametrize(
    ("method", "row", "message"),
    [
        (dpo(), {**PAIR, "rejected": " 4"}, r"row 2, .* has ' 4' as its 'chosen', and the same"),
        (dpo(), {**PAIR, "rejected": ""}, r"row 2, column 'rejected' is ''. Allowed: text that is"),
        (dpo(), {"prompt": "Q", "chosen": "a"}, r"row 2, 'Q', has no 'rejected'. Allowed: a text"),
        (dpo(), {**PAIR, "chosen": None}, r"row 2, .* has no 'chosen'. Allowed: a text"),
        (dpo(), UNPAIRED, r"has no 'chosen'.* for the method bco and the sampler LabelledAnswers"),
        (dpo(), {**PAIR, "chosen": [USER]}, r"row 2, column 'chosen': the last message is of the"),
        (dpo(), {**PAIR, "chosen": 4.5, "rejected": True}, r"column 'rejected' is 'True'. Allowed"),
        (LABELLED, PAIR, r"has no 'label'. .* for the sampler PreferencePairs\(\)"),
        (LABELLED, {**UNPAIRED, "label": "yes"}, r"'yes' as its 'label'. Allowed: true or false"),
        (LABELLED, {**UNPAIRED, "completion": ""}, r"column 'completion' is ''. Allowed: text"),
        (
            dpo().replace(sampler=SelfImprovingPairs()),
            {"prompt": "Q", "chosen": ["a", "b"], "rejected": ["c"]},
            r"several answers or turns. Allowed with SelfImprovingPairs: one",
        ),
    ],
)
def test_malformed_row_is_named_with_what_is_allowed(method, row, message):
    good = UNPAIRED if method == LABELLED else PAIR
    with pytest.raises(ConfigError, match=message):
        check(method, good, row)


def test_every_row_is_checked():
    rows = [{**PAIR, "prompt": f"{i} ="} for i in range(2_500)]
    del rows[2_400]["rejected"]
    with pytest.raises(ConfigError, match=r"row 2,?401, '2400 =', has no 'rejected'"):
        check(dpo(), *rows)
