"""Whole runs whose reward is a judge over HTTP."""

import itertools
import json
import re

import pytest

from grupo.config.overrides import apply_overrides
from grupo.config.validate import check_recipe
from grupo.core.serialization import from_data, to_data
from grupo.envs import RewardTerm, SingleTurn
from grupo.recipe import Evaluation
from grupo.rewards import ChatEndpoint, Judge, PairwiseJudge, Rubric
from grupo.rewards.judges import NumberAfter, RubricItem
from grupo.rewards.judges.session import close_sessions
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers.fake_judge import FakeJudge, fails, says
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.training_components import save_models
from tests.helpers.training_recipes import base

PROMPT = "Task {prompt}\nAnswer:{completion}"
PARSE = NumberAfter("Score:", 0, 60)
STEPS = 2


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


@pytest.fixture
def fake():
    server = FakeJudge(early_letters)
    yield server
    close_sessions()
    server.stop()


def early_letters(handler, body):
    """The score is the number of letters before P in the answer."""
    answer = body["messages"][-1]["content"].partition("Answer:")[2]
    says(f"Score: {sum(c < 'P' for c in answer)}")(handler, body)


def in_turn():
    """Scores that do not depend on the answer, as those of a server that is not repeatable."""
    numbers = itertools.cycle([0, 3, 6, 1, 5])
    return lambda handler, body: says(f"Score: {next(numbers)}")(handler, body)


def recipe(model, endpoint, **changes):
    env = SingleTurn((RewardTerm("quality", Judge(endpoint, PROMPT, PARSE)),))
    fields = {"eval_tasks": 0, "evaluation": Evaluation(), "max_steps": STEPS, **changes}
    return base(model).replace(env=env, **fields)


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def rollouts(run):
    return [json.loads(line) for line in (run / "rollouts.jsonl").read_text().splitlines()]


def unequal_parts(first, second):
    """The differing parts of two runs; what a judge took depends on its cache."""
    outcomes = [outcome(first), outcome(second)]
    for values in outcomes:
        for step in values["metrics"]:
            step[:] = [pair for pair in step if not pair[0].startswith("usage/")]
    return differences(*outcomes)


class Messages(NullCallback):
    """Records messages, and interrupts the run after a step; 0: after none."""

    def __init__(self, last_step=0):
        self.messages = []
        self.last_step = last_step

    def on_message(self, message):
        self.messages.append(message)

    def on_step_end(self, step, metrics):
        if step == self.last_step:
            raise KeyboardInterrupt


def test_a_run_is_trained_on_the_scores_of_the_judge(fake, model, tmp_path):
    endpoint = fake.endpoint(cache=str(tmp_path / "replies"), prompt_price=2.0)
    summary = run_training(recipe(model, endpoint), tmp_path / "run")
    for rollout in rollouts(tmp_path / "run"):
        letters = sum(c < "P" for c in rollout["text"])
        assert rollout["reward"] == rollout["reward_terms"]["quality"] == letters / 60
    usage = {
        name: sum(step[name] for step in metrics(tmp_path / "run"))
        for name in ("usage/judge_calls", "usage/judge_prompt_tokens", "usage/judge_cost")
    }
    calls = len(fake.bodies)
    assert usage["usage/judge_calls"] == calls
    assert usage["usage/judge_prompt_tokens"] == 10 * calls
    assert usage["usage/judge_cost"] == pytest.approx(calls * 10 * 2.0 / 1e6)
    assert summary["ledger"]["usage/judge_calls"] == calls
    assert summary["failed_rollouts"] == 0


@pytest.mark.slow
def test_the_same_seed_and_cache_are_the_same_run_without_a_request(fake, model, tmp_path):
    fake.script = [in_turn()]
    endpoint = fake.endpoint(cache=str(tmp_path / "replies"), temperature=1.0)
    run_training(recipe(model, endpoint), tmp_path / "first")
    close_sessions()
    fake.script = [fails(500)]
    run_training(recipe(model, endpoint), tmp_path / "second")
    assert unequal_parts(tmp_path / "first", tmp_path / "second") == []
    assert all("usage/judge_calls" not in step for step in metrics(tmp_path / "second"))


@pytest.mark.slow
def test_a_resumed_run_replays_the_replies_of_the_steps_that_it_repeats(fake, model, tmp_path):
    fake.script = [in_turn()]
    endpoint = fake.endpoint(cache=str(tmp_path / "replies"))
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe(model, endpoint, save_every=1), tmp_path / "resumed", Messages(STEPS))
    close_sessions()
    num_requests = len(fake.bodies)
    resume_training(tmp_path / "resumed")
    assert len(fake.bodies) == num_requests
    run_training(recipe(model, endpoint, save_every=1), tmp_path / "uninterrupted")
    assert unequal_parts(tmp_path / "resumed", tmp_path / "uninterrupted") == []


@pytest.mark.slow
def test_a_run_without_a_cache_is_said_to_be_not_repeatable(fake, model, tmp_path):
    callback = Messages()
    run_training(recipe(model, fake.endpoint(), max_staleness=1), tmp_path / "run", callback)
    (message,) = (m for m in callback.messages if "judge" in m)
    assert message.startswith("The replies of the judge 'judge' are not cached: the run is not rep")
    assert all(step["usage/judge_calls"] > 0 for step in metrics(tmp_path / "run"))


@pytest.mark.slow
def test_rollouts_that_the_judge_cannot_score_are_dropped_with_the_cause(fake, model, tmp_path):
    fake.script = [says("I would not know.")]
    doubtful = recipe(model, fake.endpoint(retries=0), on_unscored="continue")
    summary = run_training(doubtful, tmp_path / "run")
    assert summary["failed_rollouts"] == STEPS * 2 * 4
    errors = {re.sub(r"rollout \d|task \d+", "", r["error"]) for r in rollouts(tmp_path / "run")}
    assert len(errors) == 1
    assert "no line begins with 'Score:': 'I would not know.'" in errors.pop()


@pytest.mark.slow
def test_evaluations_count_apart(fake, model, tmp_path):
    summary = run_training(recipe(model, fake.endpoint()).replace(eval_tasks=3), tmp_path / "run")
    ledger = summary["ledger"]
    assert ledger["usage/evaluation/judge_calls"] > 0
    total = ledger["usage/evaluation/judge_calls"] + ledger["usage/judge_calls"]
    assert total == len(fake.bodies)


def test_a_missing_column_is_refused_before_the_folder_is_made(fake, model, tmp_path):
    reward = Judge(fake.endpoint(), "{completion} {topic}", PARSE)
    env = SingleTurn((RewardTerm("quality", reward),))
    with pytest.raises(ConfigError, match=r"Judge.prompt: {topic}: task .* has no column 'topic'"):
        run_training(recipe(model, fake.endpoint()).replace(env=env), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert fake.bodies == []


def test_a_missing_key_is_refused_before_the_run(model, monkeypatch):
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    endpoint = ChatEndpoint("judge", api_key_env="JUDGE_KEY", cache="")
    with pytest.raises(ConfigError, match="'JUDGE_KEY' is not set"):
        check_recipe(recipe(model, endpoint))


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (
            "Judge(ChatEndpoint('m', base_url='http://host/v1'), prompt='{completion}?',"
            " parse=NumberAfter('Score:', 0, 60))",
            Judge(ChatEndpoint("m", "http://host/v1"), "{completion}?", PARSE),
        ),
        (
            "Rubric(ChatEndpoint('m'), items=(RubricItem('right', 'It is right.', 2.0),))",
            Rubric(ChatEndpoint("m"), (RubricItem("right", "It is right.", 2.0),)),
        ),
        (
            "PairwiseJudge(ChatEndpoint('m', options=(('top_p', 0.9),)), neighbours=2)",
            PairwiseJudge(ChatEndpoint("m", options=(("top_p", 0.9),)), neighbours=2),
        ),
    ],
)
def test_judges_are_written_as_text_and_stored_in_recipes(model, text, reward):
    rewards = f"(RewardTerm('quality', {text}, weight=0.5),)"
    changed = apply_overrides(recipe(model, ChatEndpoint("m")), [("env.rewards", rewards)])
    assert changed.env.rewards == (RewardTerm("quality", reward, 0.5),)
    assert from_data(json.loads(json.dumps(to_data(changed)))) == changed
