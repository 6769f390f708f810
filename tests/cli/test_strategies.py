"""`grupo eval --strategy` and `grupo ask --strategy`: tables, pictures, bad input."""

import json
import os
import re
from pathlib import Path

import pytest

from grupo.report.kept_strategies import PICTURE_FILE, STRATEGIES_FILE

EVAL = ["eval", "run", "--attempts", "2", "--count", "3"]
STRATEGIES = ["--strategy", "single", "--strategy", "Vote(3)"]
REVISED = ["--strategy", "Revised(max_revisions=1, revision_prompt='{task}{answer}')"]
ASK = ["ask", "run", "2 + 2 =", "--max-new-tokens", "4"]


def test_strategies_are_compared_with_their_tokens(grupo):
    code, out, err = grupo(*EVAL, *STRATEGIES, *REVISED, "--json")
    data = json.loads(out)
    assert (code, data["tasks"], data["attempts"], data["failed"]) == (0, 3, 2, 0)
    single, vote, revised = data["strategies"]
    assert [x["name"] for x in data["strategies"]] == [STRATEGIES[1], STRATEGIES[3], REVISED[1]]
    tokens = [x["tokens_per_answer"] for x in (single, vote, revised)]
    assert tokens[1]["generated"] > 2 * tokens[0]["generated"]
    assert tokens[1]["read"] == tokens[0]["read"] < tokens[2]["read"]
    assert vote["usage"]["votes/all"] == 6
    assert {"attempts", "difference", "verdict"} < set(revised["at_equal_tokens"])
    assert [x["name"] for x in data["baselines"]][:3] == ["greedy", "Vote(1)", "Vote(2)"]
    assert "self-consistency counts answers of" in err


def test_the_comparison_is_a_table_and_a_picture(grupo, tmp_path):
    picture = tmp_path / "frontier.svg"
    code, out, _ = grupo(*EVAL, *STRATEGIES, "--out", str(picture))
    assert code == 0
    assert "3 tasks, 2 answers of each strategy" in out
    assert "Vote(3): of 6 votes" in out
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/a.svg", "is in a folder that does not exist. Name another file."),
        ("pipe.svg", "exists and is no file. Name another file."),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_the_answers(
    name, message, grupo, tmp_path
):
    os.mkfifo(tmp_path / "pipe.svg")
    code, out, err = grupo(*EVAL, *STRATEGIES, "--out", str(tmp_path / name))
    assert (code, out) == (2, "")
    assert message in err


def test_a_picture_that_the_system_refuses_is_one_message_after_the_table(grupo):
    code, out, err = grupo(*EVAL, "--strategy", "single", "--out", "/proc/a.svg")
    assert code == 2
    assert "answers of each strategy" in out
    assert err.splitlines()[-1] == "grupo: out: '/proc/a.svg': No such file or directory."


def test_a_kept_comparison_is_in_the_report_of_the_run(grupo, tmp_path):
    code, _, err = grupo(*EVAL, *STRATEGIES, "--keep")
    assert code == 0
    assert "The comparison is kept for the report of the run: " in err
    assert grupo("check", "run")[0] == 0
    report = tmp_path / "report.html"
    assert grupo("report", "run", "--out", str(report))[0] == 0
    for name in (STRATEGIES_FILE, PICTURE_FILE):  # other tests use the run
        Path("run", name).unlink()
    data = re.search(r'id="data">(.*?)</script>', report.read_text(), re.DOTALL)
    (run,) = json.loads(data[1])["runs"]
    names = [line[0] for line in run["strategies"]["lines"]]
    assert names[:4] == ["single", "Vote(3)", "greedy", "Vote(1)"]
    assert run["strategies"]["picture"].startswith("data:image/svg+xml;base64,")


def test_a_plain_evaluation_prints_its_tokens(grupo):
    _, out, _ = grupo(*EVAL)
    data = json.loads(grupo(*EVAL, "--json")[1])
    tokens = data["tokens_per_answer"]
    assert f"{tokens['generated']:,.1f} generated" in " ".join(out.split())


def test_an_answer_is_printed_with_what_was_thought_privately(grupo):
    code, out, err = grupo(*ASK, *REVISED)
    (answer,) = (data := json.loads(grupo(*ASK, *REVISED, "--json")[1]))["answers"]
    assert (code, out) == (0, answer["text"] + "\n")
    assert [turn["label"] for turn in answer["private"]] == ["answer 1"]
    assert f"[answer 1] {answer['private'][0]['text']}" in err
    tokens = data["tokens"]
    assert f"in all {tokens['generated']} tokens generated, {tokens['read']} read" in err
    assert tokens["generated"] >= len(answer["tokens"])


def test_a_vote_shows_its_attempts(grupo):
    answer = json.loads(grupo(*ASK, "--strategy", "Vote(3)", "--json")[1])["answers"][0]
    texts = {turn["label"]: turn["text"] for turn in answer["private"]}
    assert len(texts) == 3
    assert [text for label, text in texts.items() if "chosen" in label] == [answer["text"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--strategy", "Vote(0)"], "strategy: Vote.n: 0. Allowed: 1 to 10000."),
        (["--strategy", "Vot(3)"], "Did you mean 'Vote'?"),
        (["--strategy", "BestOf(2, ByHead('score'))"], "the policy has no head 'score'"),
        (["--strategy", "StepBeam('scores')"], "the policy has no head 'scores'"),
        (["--strategy", "AdvantageRevision('worth')"], "the policy has no head 'worth'"),
        (
            ["--strategy", "AdvantageRevision(threshold=1e999)"],
            "AdvantageRevision.threshold: inf. Allowed",
        ),
        (["--strategy", "ValueGuided((('value', 1.0),))"], "the policy has no head 'value'"),
        (["--strategy", "StepTreeSearch(6, 3, 5, 16)"], "may have 80 tokens in 5 steps of 16"),
        (["--strategy", "GroupThink(0)"], "GroupThink.n: 0. Allowed: 1 to 10000."),
        (["--strategy", "GroupThink(99)"], "in all; the model's context has"),
        (["--strategy", "SteeredEntropy(steps=0)"], "steps: 0. Allowed: 1 or more."),
        (["--strategy", "SteeredEntropy(learning_rate=0)"], "learning_rate: 0.0. Allowed: above 0"),
        (
            [
                "--strategy",
                "StepTreeSearch(1, 1, 1, 4, associate=LookUp(KeywordSearch('none.txt')))",
            ],
            "path: 'none.txt' is not a file. Allowed: a text file of documents.",
        ),
        (
            ["--strategy", "StepTreeSearch(associate=LookUp('a.txt'))"],
            "search of LookUp: 'a.txt' does not fit. Allowed: KeywordSearch(…).",
        ),
        (["--strategy", "Revised(role='critic')"], "a policy of the role 'critic'"),
        (
            ["--strategy", "Revised(revision_prompt='{answer}')"],
            "Revised.revision_prompt: '{answer}' lacks {task}.",
        ),
        (["--strategy", "ShuffledOptions(0)"], "ShuffledOptions.n: 0. Allowed: 1 to 10000."),
        (
            ["--strategy", "SimilarExamples('none.jsonl')"],
            "SimilarExamples.file: There is no file none.jsonl",
        ),
        (["--strategy", "LentThought('lender')"], "a policy of the role 'lender'"),
        (["--strategy", "AdaptiveGraph(30, 30)"], "tokens of thoughts before the task. A context"),
        (
            ["--strategy", "Analogies(choice=PairwiseComparsion())"],
            "Did you mean 'PairwiseComparison'?",
        ),
        (
            ["--strategy", "PromptVariants(('Think!',))"],
            "PromptVariants.prompts[0]: 'Think!' lacks {task}.",
        ),
        (["--strategy", "WithProgram('none.txt')"], "WithProgram.file: There is no file none.txt"),
        (
            ["--strategy", "RecalledThoughts(cells=3)"],
            "RecalledThoughts.cells: 3. Allowed: 1, or an even",
        ),
        (
            ["--strategy", "RecalledThoughts(30)"],
            "RecalledThoughts may put 1,440 tokens of thoughts before",
        ),
        (["--strategy", "single", "--strategy", "single"], "strategy: one is given twice"),
        (["--strategy", "rewards.py:nobody"], "has no 'nobody'"),
        (["--strategy", "single", "--out", "a.txt"], "out: 'a.txt' is not an image"),
        (["--out", "a.svg"], "out: the picture compares strategies"),
        (["--keep"], "keep: True. Allowed with the folder of a run and --strategy."),
    ],
)
def test_bad_input_is_one_message(grupo, arguments, message):
    code, out, err = grupo(*EVAL, *arguments)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]


def test_a_run_refuses_ratios_of_chosen_answers(grupo):
    sampler = "GroupSampler(2, Vote(3))"
    code, _, err = grupo("train", "recipe.py", "--method.sampler", sampler, "--dry-run")
    assert code == 2
    assert "method.sampler: Vote, whose answers are given or chosen, not sampled" in err


def test_an_evaluation_uses_a_strategy_by_name(grupo):
    field = ("--evaluation.turn-strategy", "Vote(2)")
    code, out, _ = grupo("train", "recipe.py", *field, "--dry-run")
    assert code == 0
    assert "Vote" in out


def test_thinkers_and_steering_are_compared_at_their_tokens(grupo):
    strategies = ["--strategy", "GroupThink(2)", "--strategy", "SteeredEntropy(every=1)"]
    code, out, _ = grupo(*EVAL, "--strategy", "single", *strategies, "--json")
    assert code == 0
    single, thinkers, steered = (x["tokens_per_answer"] for x in json.loads(out)["strategies"])
    assert thinkers["generated"] > single["generated"]
    assert thinkers["read"] > single["read"]  # the starts, too
    assert steered["generated"] > single["generated"]  # gradient steps
    assert steered["read"] == single["read"]
