"""The mistakes that the diary of the first hour names."""

from tests.first_hour.mistake import Mistake

TRAIN = "train --model model --tasks tasks.jsonl --reward rewards.py:digits"
RECIPE = "recipe.py --run new"
UNSCORED = "train recipe.py --steps 1 --run started --eval-tasks 0 --reward rewards.py"
MEND = "Mend the reward and resume, or ignore such steps with --on-unscored continue"


def refused(reward: str, allowed: str, options: str = "") -> Mistake:
    """A reward function that is refused before anything is generated."""
    typed = f"{UNSCORED}:{reward}{options}"
    fix = "on a made-up answer, before anything is generated. Mend the function."
    return Mistake(typed, f"reward: {reward!r}", allowed, fix, "2")


def unscored(reward: str, allowed: str, *, options: str = "") -> Mistake:
    """A reward that scores no rollout: the run stops after the first step, with exit code 1."""
    typed = f"{UNSCORED}:{reward}{options}"
    return Mistake(typed, f"reward {reward!r}", allowed, MEND, "2", code=1)


DATA_AND_REWARDS = (
    Mistake(f"{TRAIN} --eval-tasks 200", "200", "at most 11", "--eval-tasks NUMBER", "2"),
    Mistake(
        f"{RECIPE} --env.rewards.7.weight 0.1",
        *("no item '7'", "Allowed: 0", "env.rewards.7", "2"),
    ),
    unscored("raises", "raised ZeroDivisionError: division by zero (rewards.py:"),
    unscored("nan", "returned nan"),
    Mistake(f"{UNSCORED}:none", "returned None", "no reward applies", MEND, "2", code=1),
    refused("one_number", "not one number for each of 2 rollouts"),
    refused("scalar", "not one number for each of 2 rollouts"),
    refused("words", "not a number"),
    refused("huge", "returned 1e+30, which is 1e+30 with its weight: at most 10^15"),
    unscored("hangs", "did not return within 0.05 s", options=" --env.time-limit 0.05"),
    refused("strips", "'int' object has no attribute", options=" --tasks numbers.jsonl"),
    Mistake(
        f"{RECIPE} --reward rewards.py:needs_solution",
        *("'solution' of needs_solution", "Allowed: answer,", "Add the column to the rows", "2"),
    ),
    Mistake(
        "recipe.py --tasks torn.jsonl",
        *("line 3", "not JSON", "The line is", "2"),
        on_page=True,
    ),
    Mistake(
        "recipe.py --tasks empty.jsonl", "empty.jsonl", "1 or more", "a row", "2", on_page=True
    ),
    Mistake(
        f"{RECIPE} --tasks blank.jsonl",
        *("blank.jsonl has no rows", "Allowed: 1 or more", "Name a file with a row", "2"),
    ),
    Mistake(
        f"{RECIPE} --tasks questions.csv",
        *("no column 'prompt'", "Allowed: answer, question", "Did you mean 'question'?", "2"),
    ),
    Mistake(
        f"{RECIPE} --tasks null.jsonl",
        *("line 4, column 'prompt' is 'None'", "Allowed: text", "Mend the row", "2"),
    ),
    Mistake(
        f"{RECIPE} --tasks no_text.jsonl",
        *("line 4, column 'prompt' is ''", "text that is not empty", "Mend the row", "2"),
    ),
    Mistake(
        f"{RECIPE} --tasks message.jsonl",
        *("'text': '1 + 1 ='", '"content": "Hi"', "Mend the row", "2"),
    ),
    Mistake(f"{RECIPE} --tasks latin1.jsonl", "line 1", "not UTF-8", "Save the file as UTF-8", "2"),
    Mistake(
        f"{RECIPE} --tasks rows.json",
        *("'.json'", "Allowed: .jsonl", "Write it in one of these formats", "2"),
    ),
    Mistake(
        "recipe.py --tasks long.jsonl",
        *("1 of 13 prompts", "Allowed: 56 tokens", "--overlong drop", "2"),
        on_page=True,
    ),
)
MODELS = (
    Mistake(
        f"{RECIPE} --model plain --tasks chat.jsonl",
        *("no chat template", "Allowed: plain text", "apply_chat_template=False", "3"),
    ),
    Mistake("resume run --max-steps 0", "max_steps: 0", "1 to 1000000000", "Allowed", "3"),
    Mistake(
        "train --model adapters --tasks tasks.jsonl --reward rewards.py:digits --run new",
        *("'adapters' has no", "adapter_model.safetensors", "Allowed: adapters in safet", "3"),
    ),
    Mistake("resume other", "'other' is not a folder", "Allowed: run", "Allowed: run", "3"),
    Mistake(
        "recipe.py --eval-tasks 0 --evaluation.every 1",
        *("evaluation.every: 1", "0", "--eval-tasks NUMBER", "3"),
        on_page=True,
    ),
    Mistake(
        f'{TRAIN} --method "dapo(max_length=128, overlong_buffer=64)" --policy.max-new-tokens 64',
        *("policy.max_new_tokens: 64", "max_length of OverlongPenalty", "max-new-tokens 128", "3"),
    ),
)
EXTENDING = (
    Mistake(
        f"{RECIPE} --method methods.py:DIVIDED",
        *("methods.py", "unsupported operand type(s) for /", "line 6", "4"),
    ),
    Mistake(
        "methods check methods.py:DIVIDED",
        *("methods.py", "unsupported operand type(s) for /", "line 6", "4"),
    ),
    Mistake(
        "recipe.py --method methods.py:RAISES --run started",
        *("'Batch' object has no attribute 'nothing'", "methods.py, line 10", "Mend", "4"),
        code=3,
    ),
)
TOOLS = (
    Mistake(
        "report model",
        *("'model' holds no run", "It is a model", "--model model", "5"),
    ),
    Mistake("compare --plan here --method grpo --out new", "--plan", "--estimate", "--trial", "5"),
    Mistake("doctor runn", "'runn' is not a folder", "Allowed: run", "Did you mean 'run'?", "5"),
)
MISSPELLED = (
    Mistake("trian", "'trian'", "Allowed: ask,", "Did you mean 'train'?", "6", on_page=True),
    Mistake(
        "recipe.py --max-new-tokens 5",
        *("--max-new-tokens", "Allowed: aux", "Did you mean 'policy.max_new_tokens'?", "6"),
        on_page=True,
    ),
    Mistake(
        "recipe.py --num-generations 4",
        *("--num-generations", "no such option", "--method.sampler.group-size 4", "6"),
        on_page=True,
    ),
    Mistake(
        f"{RECIPE} --batch-size 8",
        *("--batch-size", "no such option", "--prompts-per-step 8", "6"),
    ),
    Mistake(
        f"{RECIPE} --gradient-accumulation-steps 8",
        *("--gradient-accumulation-steps", "it counts answers", "--prompts-per-step 8", "6"),
    ),
    Mistake("recipe.py --kl 0.1", "--kl", "no such option", "kl_coef=0.1", "6", on_page=True),
    Mistake("recipe.py --group 4", "--group", "option", "group-size 4", "6", on_page=True),
    Mistake(
        "train --config recipe.toml",
        *("--config", "no such option", "grupo train recipe.toml", "6"),
        on_page=True,
    ),
    Mistake("recipe.py --beta 0.04", "--beta", "TRL's", "kl_coef=0.04", "6", on_page=True),
    Mistake(
        "recipe.py --method GRPO",
        *("'GRPO'", "Allowed: a_grae", "Did you mean 'grpo'?", "6"),
        on_page=True,
    ),
    Mistake(
        "recipe.py --method dr-grpo",
        *("'dr-grpo'", "name(argument=value)", "Did you mean 'dr_grpo'?", "6"),
        on_page=True,
    ),
    Mistake(
        "train --wandb true",
        *("'true' is no recipe", "no value", "--tensorboard, --trackio, --wandb", "6"),
        on_page=True,
    ),
    Mistake("train --run", "--run", "requires an argument", "Option '--run'", "6"),
    Mistake("--version now", "'now'", "COMMAND", "grupo --help", "6"),
    Mistake(
        'recipe.py --policy.lora "Lora(r=16)"',
        *("'r'", "Allowed: alpha, rank, targets", "Did you mean 'rank'?", "6"),
        on_page=True,
    ),
    Mistake(
        f"{RECIPE} --policy.lora 16",
        *("'16'", "Allowed: Lora(…) or None", 'Write "Lora(rank=…', "6"),
    ),
    Mistake(
        "recipe.py --policy.lora \"Lora(targets=('q_proj', 'v_prj'))\"",
        *("'v_prj'", "Allowed: all-linear", "Did you mean 'v_proj'?", "6"),
        on_page=True,
    ),
    Mistake(
        f"{RECIPE} --policy.stop '</answer>'",
        *("policy.stop", "Allowed: allow_pickle", "Did you mean 'stop_strings'?", "6"),
    ),
    Mistake(
        f"{RECIPE} --policy.stop-strings '</answer>'",
        *("'</answer>'", "Allowed: a tuple", "Write \"('</answer>',)\"", "6"),
    ),
    Mistake(
        f'{RECIPE} --method.updates "Updates(minibatches=64)"',
        *("minibatches: 64", "Allowed: at most 2", "Set prompts_per_step to 64", "6"),
    ),
    Mistake(
        f"{RECIPE} --tasks taks.jsonl",
        *("taks.jsonl", "Allowed: blank.jsonl", "Did you mean 'tasks.jsonl'?", "6"),
    ),
    Mistake("methods kll", "'kll'", "Allowed:", "Did you mean 'kl'?", "6"),
    Mistake(
        "recipe.py --reward reward.py:digits",
        *("reward.py", "Allowed: ", "Did you mean 'rewards.py'?", "6"),
        on_page=True,
    ),
    Mistake(
        "recipe.py --method.sampler.group-size 1",
        *("a group of 1", "2 or more", "advantage estimator", "6"),
        on_page=True,
    ),
    Mistake(
        f"{RECIPE} --policy.dtype fp16",
        *("'fp16'", "float32 or bfloat16", "Did you mean 'bfloat16'?", "6"),
    ),
    Mistake(
        "recipe.py --policy.device tpu",
        *("'tpu'", "Allowed: auto", "Did you mean 'cpu'?", "6"),
        on_page=True,
    ),
    Mistake(
        "recipe.py --policy.max-new-tokens 64",
        *("max_new_tokens: 64", "below 64", "the context length", "6"),
        on_page=True,
    ),
    Mistake("recipe.py --run run", "'run' exists", "Name another", "resume run", "6", on_page=True),
    Mistake(
        f"{RECIPE} --reward rewards.py:text_only",
        *("text_only(text)", "Allowed: f(task, rollouts)", "f(prompts, completions", "6"),
    ),
    Mistake(
        "resume run recipe.py:OTHER",
        *("prompts_per_step = 2, not 3", "may change", "Resume it as it is", "6"),
        on_page=True,
    ),
)
DIARY = (*DATA_AND_REWARDS, *MODELS, *EXTENDING, *TOOLS, *MISSPELLED)
