"""`grupo ask`: answers of a run or a model, streamed, sampled several times, in turns."""

import io
import json
import math
import shutil
from types import SimpleNamespace

import pytest

from grupo.cli import chosen_defaults
from grupo.config import precision_choice
from grupo.models.causal_lm import CausalLM
from grupo.training.resume.load_run import load_policy

BASE = ["ask", "run", "2 + 2 =", "--max-new-tokens", "6"]


def test_the_streamed_answer_is_that_of_json(grupo):
    code, streamed, err = grupo(*BASE, "--seed", "3")
    data = json.loads(grupo(*BASE, "--seed", "3", "--json")[1])
    (answer,) = data["answers"]
    assert code == 0
    assert streamed == answer["text"] + "\n"
    assert err.splitlines()[0] == data["source"] == "run, step 2"
    assert f"{len(answer['tokens'])} tokens, ended by" in err.splitlines()[1]


def test_the_log_probabilities_are_those_of_the_runs_policy(grupo, home):
    import torch

    (answer,) = json.loads(grupo(*BASE, "--json")[1])["answers"]
    policy, _ = load_policy(home / "run")
    policy.hf_model.set_attn_implementation("eager")
    prompt = policy.chat_tokenizer.tokenizer("2 + 2 =", add_special_tokens=True)["input_ids"]
    tokens = torch.tensor([[*prompt, *answer["tokens"]]])
    with torch.no_grad():
        logits = policy.hf_model(tokens).logits[0, len(prompt) - 1 : -1].double()
    expected = logits.log_softmax(-1).gather(-1, tokens[0, len(prompt) :, None])[:, 0]
    assert answer["logp"] == pytest.approx(expected.tolist(), abs=1e-4)


def test_a_model_answers_in_the_dtype_that_training_would_have(grupo, monkeypatch):
    monkeypatch.setattr(chosen_defaults, "TOY_PARAMETERS", 0)
    monkeypatch.setattr(precision_choice, "has_bfloat16", lambda device: True)
    monkeypatch.setattr(precision_choice, "bfloat16_speedup", lambda inputs, outputs: 2.0)
    built: list[str] = []
    build = CausalLM.build
    monkeypatch.setattr(CausalLM, "build", lambda spec: built.append(spec.dtype) or build(spec))
    code, _, err = grupo("ask", "model", *BASE[2:])
    assert (code, built) == (0, ["bfloat16"])
    assert err.startswith("policy.dtype = bfloat16: ")
    grupo(*BASE)
    assert built[1:] == ["float32"]  # a run keeps its own


def test_greedy_answers_are_equal_and_sampled_ones_differ(grupo):
    greedy = json.loads(grupo(*BASE, "--temperature", "0", "--attempts", "3", "--json")[1])
    sampled = json.loads(grupo(*BASE, "--attempts", "3", "--json")[1])
    assert len({tuple(answer["tokens"]) for answer in greedy["answers"]}) == 1
    assert len({tuple(answer["tokens"]) for answer in sampled["answers"]}) == 3


def test_rewards_score_every_attempt(grupo):
    rewarded = [*BASE, "--attempts", "4", "--reward", "rewards.py:digits"]
    answers = json.loads(grupo(*rewarded, "--json")[1])["answers"]
    for answer in answers:
        digits = sum(map(str.isdigit, answer["text"])) / max(1, len(answer["text"]))
        assert answer["reward"] == pytest.approx(digits)
        assert answer["reward_terms"] == {"digits": answer["reward"]}
    code, out, _ = grupo(*rewarded)
    mean = sum(answer["reward"] for answer in answers) / 4
    assert code == 0
    assert len({answer["text"].strip() for answer in answers}) == 4
    assert out.splitlines()[-1] == f"all 4 answers differ; mean reward {mean:g}"


def test_equal_answers_are_counted(grupo):
    out = grupo(*BASE, "--temperature", "0", "--attempts", "3")[1]
    assert out.splitlines()[-1] == "3 of 3 answers are equal"


@pytest.mark.parametrize("options", [(), ("--system", "Be brief.")])
def test_rewards_of_a_chat_model_get_the_answers_as_texts(grupo, home, tmp_path, options):
    model = shutil.copytree(home / "model", tmp_path / "model")
    (model / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    )
    rewards = tmp_path / "rewards.py"
    rewards.write_text(
        "def correct(completions, answer):\n"
        "    return [float(x.strip() == y) for x, y in zip(completions, answer)]\n"
    )
    scored = ("--attempts", "2", "--reward", f"{rewards}:correct", "--column", "answer=4")
    code, out, _ = grupo("ask", str(model), *BASE[2:], *scored, *options, "--json")
    assert code == 0
    assert [answer["reward"] for answer in json.loads(out)["answers"]] == [0.0, 0.0]


def test_a_reward_that_fails_is_named(grupo):
    code, out, _ = grupo(*BASE, "--attempts", "2", "--reward", "rewards.py:nothing")
    assert code == 0
    assert out.endswith("2 rewards failed: task ask, rollout 0: reward 'nothing' returned nan\n")
    assert "mean reward" not in out


def test_logprobs_are_listed_for_each_token(grupo):
    (answer,) = json.loads(grupo(*BASE, "--json")[1])["answers"]
    table = grupo(*BASE, "--logprobs")[1]
    for logp in answer["logp"]:
        assert f"{logp:.3f}" in table
        assert f"{math.exp(logp):.3f}" in table


def test_a_conversation_keeps_its_turns_until_it_is_reset(grupo, monkeypatch):
    from grupo.cli import ask_args

    seen = []
    answers = ask_args.Conversation.answers

    def recorded(self, prompt, *rest, **options):
        seen.append((prompt, len(self.rollout.turns)))
        return answers(self, prompt, *rest, **options)

    monkeypatch.setattr(ask_args.Conversation, "answers", recorded)
    monkeypatch.setattr("sys.stdin", io.StringIO("1 +\n2 +\n\n/reset\n3 +\n"))
    code, out, err = grupo("ask", "run", "--chat", "--max-new-tokens", "2")
    assert code == 0
    assert seen == [("1 +", 0), ("2 +", 1), ("3 +", 0)]
    assert err.count("ended by") == 3
    assert out.count("> ") == 6


def test_an_interrupted_answer_is_not_kept(grupo, monkeypatch):
    from grupo.cli import ask_args

    def interrupted(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ask_args.Conversation, "answers", interrupted)
    monkeypatch.setattr("sys.stdin", io.StringIO("1 +\n"))
    code, _, err = grupo("ask", "run", "--chat")
    assert code == 0
    assert err.splitlines()[-1] == "Stopped: the conversation goes on without this question."


def test_a_model_answers_from_standard_input(grupo, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("2 + 2 ="))
    code, out, err = grupo("ask", "model", "-", "--max-new-tokens", "3", "--json")
    assert (code, err) == (0, "model\n")
    assert len(json.loads(out)["answers"][0]["tokens"]) <= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "prompt: it is empty"),
        (["run", "a", "--system", "b"], "system: 'run' has no chat template"),
        (["run", "a", "--system", "b", "--plain"], "system: the text of --plain"),
        (["run", "a", "--column", "answer=1"], "column: no reward reads it"),
        (
            ["run", "a", "--reward", "rewards.py:digits", "--column", "x"],
            "column: 'x' has no value",
        ),
        (["run", "a", "--reward", "rewards.py:digit"], "digits"),
        (["run", "a", "--chat"], "chat: a conversation has no prompt"),
        (["run", "a", "--checkpoint", "9"], "has none of step 9"),
        (["model", "a", "--checkpoint", "best"], "are of a run, and 'model' is none"),
        (["run", 999 * "1 + "], "Allowed: fewer than"),
        (["run", "a", "--attempts", "0"], "attempts: 0. Allowed: 1 or more."),
        (["./rum", "a"], "model: './rum'"),
    ],
)
def test_bad_input_is_one_message(grupo, arguments, message):
    code, out, err = grupo("ask", *arguments)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]


def test_characters_that_would_act_on_a_terminal_are_spelled_out(grupo, monkeypatch):
    from grupo.models.chat_tokenizer import ChatTokenizer

    monkeypatch.setattr(ChatTokenizer, "decode", lambda *_: "\x1b[2J")
    out = grupo(*BASE)[1]
    assert out == "\\x1b[2J\n"


def stdin_of(content, errors="strict"):
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors=errors)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # of another locale
@pytest.mark.parametrize("arguments", [["-"], ["--chat", "--max-new-tokens", "3"]])
def test_bytes_that_are_no_utf_8_are_one_message(grupo, monkeypatch, arguments, errors):
    monkeypatch.setattr("sys.stdin", stdin_of(b"2 + \xff\n", errors))
    code, _, error = grupo("ask", "model", *arguments)
    assert code == 2
    assert "prompt: it is no text in UTF-8: " in error


def test_standard_input_without_end_is_refused(grupo, monkeypatch):
    endless = SimpleNamespace(read=lambda count: "a" * count)
    monkeypatch.setattr("sys.stdin", endless)
    code, _, error = grupo("ask", "model", "-")
    assert code == 2
    assert error == (
        "grupo: prompt: standard input has more. Allowed: at most 2,097,152 characters.\n"
    )
