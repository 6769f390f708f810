"""Mistakes that a run may survive are named before its first step, one line each."""

TRAIN = "train --model marked --tasks marked.jsonl --reward rewards.py:digits --eval-tasks 0"
SIZES = "--steps 1 --prompts-per-step 1 --method.sampler.group-size 2 --policy.max-new-tokens 2"


def test_a_template_and_prompts_that_mislead_the_policy_are_named(grupo, tmp_path):
    code, out, err = grupo(*TRAIN.split(), *SIZES.split(), "--run", str(tmp_path / "run"))
    assert code == 0
    printed = out + err
    for part in (
        "chat_template: it ignores add_generation_prompt: prompts end without '<|assistant|>'",
        "chat_template: it ends an answer with '<|user|>', which is no end token of the model",
        "prompts: 9 of 9 hold control tokens of the tokenizer in their texts, such as '<|model|>'",
    ):
        assert printed.count(part) == 1, part
    assert printed.index("chat_template") < printed.index("step 1/1")
