"""Rewards of texts that another model reads: its answer's score, and what it may not change."""

from typing import Any

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.rewards import Downstream, ExactMatch, FirstInsideTag, LocalModel, RougeL
from grupo.rewards.judges import ChatReply
from grupo.rewards.judges.frozen_model import load_frozen
from grupo.rollouts.evaluate import evaluate
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import InMemoryTasks
from grupo.util.errors import ConfigError
from tests.helpers import letter_envs, tiny_lm
from tests.helpers.fake_judge import closes, fails, hangs, returns, says
from tests.helpers.judged import TASK, ScriptedModel, failing, results, terms

PROMPT = "{prompt} Hint: {completion}"


def downstream(reply, prompt=PROMPT, reward=ExactMatch(), **fields):
    return Downstream(ScriptedModel(reply), prompt, reward, **fields)


def test_the_reward_is_that_of_the_answer_and_not_of_the_hint():
    def solved_with_hint(prompt):
        return "4" if "add" in prompt else "5"

    scored = results(downstream(solved_with_hint), "add", "4")
    assert [terms(result)["quality"] for result in scored] == [1.0, 0.0]


def test_the_model_reads_the_hint_the_prompt_and_columns_of_the_task():
    model = ScriptedModel(lambda _: "4")
    tag = FirstInsideTag("hint")
    reward = Downstream(
        model, "{topic}: " + PROMPT, ExactMatch(), extract=tag, system="On {topic}."
    )
    results(reward, "I think <hint>{prompt}</hint>", "no hint")
    system, user = model.conversations[0]
    assert system == {"role": "system", "content": "On sums."}
    assert user == {"role": "user", "content": "sums: 2 + 2 = Hint: {prompt}"}
    assert model.conversations[1][1]["content"] == "sums: 2 + 2 = Hint: "


def test_rouge_of_the_answer_by_hand():
    task = Task("k", "Summarize", "b d e")
    reward = downstream(lambda _: "A b, c d", "{completion}", RougeL())
    (result,) = results(reward, "any", task=task)
    assert result.reward == pytest.approx(2 * 2 / (4 + 3))  # b and d of 4 words and of 3


def test_a_model_that_does_not_reply_fails_its_rollout_alone_and_a_cut_answer_is_scored():
    replies = {"a": failing("a"), "b": ChatReply("4", "length"), "c": "5"}
    first, second, third = results(downstream(replies.get, "{completion}"), "a", "b", "c")
    assert "no reply to 'a'" in first.error
    assert (second.reward, third.reward) == (1.0, 0.0)
    (only,) = results(downstream(failing, "{completion}"), "a")
    assert "no reply to 'a'" in only.error


def test_a_model_behind_an_address_gives_the_answer(fake):
    fake.script = [says("4")]
    reward = Downstream(fake.endpoint(), PROMPT, ExactMatch())
    (result,) = results(reward, "add")
    assert result.reward == 1.0
    assert fake.prompts == ["2 + 2 = Hint: add"]


@pytest.mark.parametrize(
    "behaviour", [fails(400), fails(503), hangs, closes, returns("junk"), returns({"choices": []})]
)
def test_a_server_that_refuses_hangs_or_returns_junk_fails_the_rollout(fake, behaviour):
    fake.script = [behaviour]
    endpoint = fake.endpoint(time_limit=0.2, retries=0)
    (result,) = results(Downstream(endpoint, PROMPT, ExactMatch()), "add")
    assert f"the judge 'judge' at {fake.url}: " in result.error


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("{prompt}", r"Downstream.prompt: .*Allowed: a text with the placeholder \{completion\}"),
        ("{completion} {topc}", r"Downstream.prompt: \{topc\}: .* Did you mean 'topic'\?"),
    ],
)
def test_a_prompt_that_hides_the_hint_or_lacks_a_column_is_refused(prompt, message):
    with pytest.raises(ConfigError, match=message):
        downstream(str, prompt).validate_tasks([TASK])


def test_a_model_that_is_a_name_is_refused():
    model: Any = "gpt"
    with pytest.raises(ConfigError, match=r"Downstream.model: 'gpt'\. Allowed: ChatEndpoint"):
        Downstream(model, PROMPT, ExactMatch())


def test_a_policy_learns_the_hints_with_which_the_model_is_right(tmp_path):
    def right_with_a_vowel(prompt):  # 10 of 100 tokens
        return "4" if prompt in [*"aeiouAEIOU"] else "5"

    env = SingleTurn((RewardTerm("right", downstream(right_with_a_vowel, "{completion}")),))
    tasks = InMemoryTasks([Task(str(i), "a hint: ", "4") for i in range(4)])
    method = Method(sampler=GroupSampler(16), advantage=Center())
    folder = str(tiny_lm.save_model(tmp_path))
    learner = letter_envs.learner(folder, tasks, method, limit=1, env=env, learning_rate=1e-2)

    def share() -> float:
        return evaluate(learner.policy, env, tasks.load(), num_attempts=32).sampled.value

    assert share() < 0.35
    for _ in range(20):
        learner.step()
    assert share() > 0.9


def test_training_leaves_the_model_that_answers_as_it_is(tmp_path):
    options = {"chat_template": tiny_lm.TEMPLATE}
    folder = str(tiny_lm.save_model(tmp_path, tokenizer_options=options))
    frozen = LocalModel(folder, dtype="float32", device="cpu", max_tokens=4)
    env = SingleTurn((RewardTerm("rouge", Downstream(frozen, "{completion}", RougeL())),))
    learner = letter_envs.learner(
        folder,
        InMemoryTasks([Task(str(i), "a hint: ", "a b c d e f") for i in range(4)]),
        Method(sampler=GroupSampler(4)),
        env=env,
    )
    fields = {"temperature": 0.0, "max_tokens": 4, "allow_pickle": False}
    model = load_frozen(folder, "float32", "cpu", **fields).model
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    result = learner.step()
    assert result.metrics["usage/judge_calls"] == 16  # 4 groups of 4 hints
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
