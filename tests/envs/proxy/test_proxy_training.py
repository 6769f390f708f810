"""A policy that trains behind the API: exact tokens, exact probabilities, whole runs."""

import pytest

from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv
from grupo.models.causal_lm import CausalLM
from grupo.models.context import context_tokens
from grupo.rollouts.evaluate import run_rollouts
from grupo.training.update.collate import collate
from tests.helpers import agents
from tests.helpers.env_runs import assert_resumes_exactly, make_model, recorded, train_by_command

AGENT = """
import openai

def run(task, address):
    client = openai.OpenAI(base_url=address.base_url, api_key=address.api_key)

    def ask(messages):
        answer = client.chat.completions.create(model=address.model, messages=messages)
        return answer.choices[0].message.content

    messages = [{"role": "user", "content": "go"}]
    first = ask(messages)
    second = ask([{"role": "user", "content": "sub"}])
    messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "on"}]
    third = ask(messages)
    return float(len(set(first + second + third)))
"""
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))


TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    model = make_model(folder, context=256)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return model


def test_each_call_is_read_in_the_exact_tokens_of_its_conversation(model):
    policy = CausalLM(model, max_new_tokens=3, device="cpu").build()
    env = ProxyEnv(agents.with_sub_agent, rewards=(LENGTH,))
    (group,) = run_rollouts(policy.actor(3), env, [Task("k", "go")], 2)
    tokenizer = policy.chat_tokenizer.tokenizer
    for rollout in group.rollouts:
        assert rollout.error == ""
        main, sub, third = rollout.contexts
        answers = [response.items for _, response in rollout.turns]
        assert tokenizer.decode(context_tokens(sub)[:6]) == "u:sub\n"
        before = context_tokens(main)
        assert before[-len(answers[0]) :] == answers[0]
        assert context_tokens(third)[: len(before)] == before  # never tokenized again
    policy_signals(policy, [group])


def policy_signals(policy, groups):
    """The probabilities that training computes are those that the agent's calls sampled."""
    batch = collate(groups, policy.encode)
    logp = policy.signals(batch)["logp"]
    assert len(logp) == 6
    assert (logp - batch.signals["logp@sampler"]).abs().max() < 1e-4


def test_a_template_that_rewrites_answers_forks_the_rollout(tmp_path):
    """Its answers begin with "a:", and its prompts end with ">"."""
    policy = CausalLM(make_model(tmp_path, context=256), max_new_tokens=3, device="cpu").build()
    env = ProxyEnv(agents.with_sub_agent, rewards=(LENGTH,))
    (group,) = run_rollouts(policy.actor(3), env, [Task("k", "go")], 1)
    (rollout,) = group.rollouts
    assert [response.rewrites_history for _, response in rollout.turns] == [False, False, True]
    first, _, third = (response for _, response in rollout.turns)
    text = policy.chat_tokenizer.tokenizer.decode(third.observation)
    assert text.startswith(f"u:main\na:{first.text}\n")


def test_calls_in_equal_conversations_have_random_numbers_of_their_own(model):
    def repeat(task, address):
        return float(len({agents.ask(address, [agents.user("go")]).message.content for _ in "abc"}))

    policy = CausalLM(model, max_new_tokens=8, device="cpu").build()
    (group,) = run_rollouts(policy.actor(3), ProxyEnv(repeat), [Task("k", "go")], 1)
    assert group.rollouts[0].reward == 3.0


def test_an_agent_trains_a_policy_from_the_command_line_and_resumes_exactly(model, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "tasks.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n{"prompt": "c"}\n')
    options = ["--env", f"proxy:{tmp_path}/agent.py:run(max_calls=5)", "--eval-tasks", "1"]
    options += ["--tasks", str(tmp_path / "tasks.jsonl")]
    run = train_by_command(tmp_path / "run", model, options)
    first, _ = recorded(run, "metrics")
    assert first["rollouts/failed"] == 0
    assert first["reward/calls"] == first["reward/contexts"] == 3.0
    assert first["reward/agent_reward"] == pytest.approx(first["reward/mean"])
    assert first["sampler_mismatch/logp_diff_max"] < 1e-4
    assert_resumes_exactly(run, tmp_path / "resumed")
