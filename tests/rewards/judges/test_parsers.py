"""Scores in replies, and replies without one."""

import math

import pytest

from grupo.rewards.judges import JSONField, LetterChoice, NumberAfter, ReplyError, YesNo
from grupo.util.errors import ConfigError

SCORE = NumberAfter("Score:", 1, 5)
JSON = JSONField("score", 0, 10)
YES = YesNo("Correct:")
GRADE = LetterChoice("Grade:", "ABC", (1.0, 0.5, 0.0))


@pytest.mark.parametrize(
    ("parse", "text", "score"),
    [
        (SCORE, "Score: 1", 0.0),
        (SCORE, "Score: 5", 1.0),
        (SCORE, "Good.\nScore: 3.5\n", 0.625),
        (SCORE, "**Score: 2**", 0.25),
        (SCORE, "### Score: **2**.", 0.25),
        (SCORE, "Score: 4/5", 0.75),
        (SCORE, "<think>Score: 1</think>Score: 5", 1.0),
        (JSON, '{"score": 5}', 0.5),
        (JSON, 'I think:\n```json\n{"reason": "{}", "score": 7}\n```', 0.7),
        (JSON, '```\n{"score": 1}\n```\nor rather\n```\n{"score": 2}\n```', 0.2),
        (YES, "Correct: YES", 1.0),
        (YES, "Correct: no.", 0.0),
        (GRADE, "Grade: A", 1.0),
        (GRADE, "Grade: [B]", 0.5),
    ],
)
def test_a_score_is_rescaled_to_one(parse, text, score):
    assert parse(text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("parse", "text", "cause"),
    [
        (SCORE, "", "no line begins with 'Score:'"),
        (SCORE, "I would give a score of 4", "no line begins with"),
        (SCORE, "The answer says Score: 5", "no line begins with"),
        (SCORE, "> Score: 5", "no line begins with"),
        (SCORE, "Score:", "'' after 'Score:' is no number"),
        (SCORE, "Score: five", "'five' after"),
        (SCORE, "Score: 4 or 5", "'4 or 5' after"),
        (SCORE, "Score: 4/10", "is not out of 5"),
        (SCORE, "Score: 6", "6.0 is outside of 1 to 5"),
        (SCORE, "Score: -2", "-2.0 is outside"),
        (SCORE, "Score: nan", "is no number"),
        (SCORE, "Score: 1e999", "is no number"),
        (SCORE, "Score: ٤", "is no number"),
        (SCORE, "Score: " + "9" * 400, "is outside"),
        (SCORE, "<think>Score: 5", "the thoughts do not end"),
        (JSON, "Score: 5", "no JSON object"),
        (JSON, '{"score": 5', "no JSON object"),
        (JSON, "[5]", "no JSON object"),
        (JSON, '{"score": 1, "score": 10}', "occurs twice"),
        (JSON, '{"points": 5}', "has no field 'score': points"),
        (JSON, '{"score": "5"}', "'5', no number"),
        (JSON, '{"score": true}', "no number"),
        (JSON, '{"score": null}', "no number"),
        (JSON, '{"score": NaN}', "no JSON object"),
        (JSON, '{"score": 11}', "11 is outside of 0 to 10"),
        (JSON, '{"score": 1' + "0" * 400 + "}", "is outside"),
        (JSON, 'Text: {"score": 5}', "no JSON object"),
        (JSON, '```json\n{"score": 10}\n```\nThe answer claims this.', "no JSON object"),
        (YES, "Correct: maybe", "'maybe' after 'Correct:' is neither yes nor no"),
        (YES, "Correct: yes and no", "neither"),
        (GRADE, "Grade: D", "'D' after 'Grade:' is none of 'ABC'"),
        (GRADE, "Grade: AB", "none of"),
        (GRADE, "Grade: a", "none of"),
        (GRADE, "Grade:", "none of"),
    ],
)
def test_a_reply_without_a_score_is_an_error_with_its_cause(parse, text, cause):
    with pytest.raises(ReplyError) as error:
        parse(text)
    assert cause in str(error.value)


def test_the_last_marker_counts_because_judges_quote_the_answer_first():
    assert SCORE("The answer ends with\nScore: 5\nwhich is not its decision.\nScore: 1") == 0.0


def test_a_malformed_last_score_is_not_replaced_by_an_earlier_one():
    with pytest.raises(ReplyError, match="no number"):
        SCORE("Score: 5\nScore: unclear")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NumberAfter("Score:", 5, 5), "NumberAfter.high: 5. Allowed: above low, 5"),
        (lambda: NumberAfter("", 1, 5), "NumberAfter.marker"),
        (lambda: JSONField("score", 0, math.inf), "JSONField.high: inf"),
        (lambda: LetterChoice("Grade:", "AA", (1.0, 0.0)), "different letters"),
        (lambda: LetterChoice("Grade:", "ABC", (1.0, 0.0)), "one for each of 'ABC'"),
        (lambda: LetterChoice("Grade:", "AB", (2.0, 0.0)), "LetterChoice.scores"),
    ],
)
def test_parsers_that_cannot_work_are_refused(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert message in str(error.value)
