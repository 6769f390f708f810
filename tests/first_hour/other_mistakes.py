"""Mistakes of the command line that users of TRL and verl make in the first hour."""

from tests.first_hour.mistake import Mistake

TRAIN = "train --model model --tasks tasks.jsonl --reward rewards.py:digits --run new"
RECIPE = "recipe.py --run new"
COMPARE = "compare recipe.py --out new --method grpo --method rloo"
ANSWER = "no such option"


def command(word: str, fix: str) -> Mistake:
    """A word for which other programs have a command."""
    return Mistake(f"{word} run", f"{word!r} is no command", "Allowed: ask,", fix)


COMMANDS = (
    command("evaluate", "Write grupo eval RUN"),
    command("generate", "Write grupo ask RUN"),
    command("plot", "Write grupo report RUN"),
    command("merge", "which merges adapters"),
    Mistake("-v", "'-v'", "two hyphens", "grupo train --help"),
    Mistake(f"{RECIPE} -steps 5", "'-steps'", "two hyphens", "--steps VALUE"),
    Mistake("train model", "'model' is no recipe", "Allowed: FILE.py:NAME", "--model FOLDER"),
    Mistake("train run", "'run' is no recipe", "Allowed: FILE.py:NAME", "grupo resume RUN"),
    Mistake("train tasks.jsonl", "'tasks.jsonl' is no recipe", "FILE.toml", "--tasks FILE"),
    Mistake("train recipe.json", "'recipe.json' is no recipe", "FILE.yaml", "FILE.py:NAME"),
    Mistake("train no_name.py", "no 'RECIPE'", "choose from", "'no_name.py'"),
    Mistake("recipe.py trainer.steps5", "'trainer.steps5'", "too many", "--FIELD VALUE"),
)
OPTIONS = (
    Mistake(f"{RECIPE} --num-epochs 3", "--num-epochs", "the number of passes", "--steps 3"),
    Mistake(f"{RECIPE} --output-dir out", "--output-dir", ANSWER, "--run out"),
    Mistake(f"{RECIPE} --train-file a.jsonl", "--train-file", ANSWER, "--tasks a.jsonl"),
    Mistake(f"{RECIPE} --reward-funcs r.py:f", "--reward-funcs", "repeat it", "--reward r.py:f"),
    Mistake(f"{RECIPE} --temperature 0.7", "--temperature", ANSWER, "temperature 0.7"),
    Mistake(f"{RECIPE} --use-vllm true", "--use-vllm", ANSWER, "Vllm(urls=('http://127.0.0.1"),
    Mistake(f"{RECIPE} --gpus 2", "--gpus", "no counterpart", "--ranks N places"),
    Mistake(f"{RECIPE} --deepspeed ds.json", "--deepspeed", "no counterpart", "--policy.sharding"),
    Mistake(f"{RECIPE} --max-prompt-length 9", "--max-prompt-length", ANSWER, "overlong truncate"),
    Mistake(f"{RECIPE} --load-in-4bit True", "--load-in-4bit", "adapters only", '"Nf4()"'),
    Mistake(f"{RECIPE} --lora True", "--lora", ANSWER, '"Lora(rank=16)"'),
    Mistake(f"{RECIPE} --optim adamw_8bit", "--optim", ANSWER, '--optimizer "Adam8bit()"'),
    Mistake(f"{RECIPE} --lr-scheduler-type cosine", "-type", ANSWER, '"Cosine(1e-6, 0)"'),
    Mistake(f"{RECIPE} --warmup-ratio 0.1", "--warmup-ratio", "of the run", '"Warmup(0.1, 1e-6)"'),
    Mistake(f"{RECIPE} --save-total-limit 3", "-limit", ANSWER, '"KeepCheckpoints(last=3)"'),
    Mistake(f"{RECIPE} --eval-every 5", "--eval-every", ANSWER, "--evaluation.every 5"),
    Mistake(f"{RECIPE} --system-prompt hello", "no such", "have none", "--policy.system-prompt"),
    Mistake(f"{RECIPE} --resume-from-checkpoint a", "-checkpoint", ANSWER[:2], "grupo resume RUN"),
    Mistake(f"{RECIPE} algorithm.adv_estimator=grpo", "adv_estimator", "verl's", "--method grpo"),
    Mistake(f"{RECIPE} --patience 3", "'patience'", "Allowed:", "'early_stopping.patience'"),
    Mistake(f"{RECIPE} --optimizer adamw", "'adamw'", "Adafactor(…) or Adam(…)", "'Adam()'"),
    Mistake(f"{RECIPE} --learning-rate cosine", "'cosine'", "a number or Cosine", "Cosine(start=…"),
    Mistake(f"{RECIPE} --learning-rate 1e-6x", "'1e-6x'", "Allowed: a number", "Cosine(…)"),
    Mistake(f"{RECIPE} --keep 3", "'3'", "Allowed: KeepCheckpoints(…)", "KeepCheckpoints(last=…"),
    Mistake(f"{RECIPE} --policy.sampling.top-p 90", "90.0", "at most 1", "top_p"),
    Mistake(f"{RECIPE} --eval-tasks 10%", "'10%'", "a whole number of tasks", "--eval-tasks 20"),
    Mistake(f"{RECIPE} --steps 10k", "max_steps: '10k'", "Allowed: a whole number", "does not fit"),
)
REWARDS_AND_MODELS = (
    Mistake(
        "recipe.py --reward rewards.py",
        "'rewards.py'",
        "Allowed: module",
        "rewards.py:NAME",
        on_page=True,
    ),
    Mistake(f"{RECIPE} --reward digits", "'digits'", "Allowed: module:name", "file.py:name"),
    Mistake(
        f"{RECIPE} --reward rewards.py:Scorer",
        "Scorer is a class",
        "f(task, rollouts)",
        "an instance",
    ),
    Mistake(
        "recipe.py --reward rewards.py:digit",
        "'digit'",
        "Allowed:",
        "Did you mean 'digits'?",
        on_page=True,
    ),
    Mistake(
        f"{RECIPE} --reward rewards.py:digits=0.5",
        *("'rewards.py:digits=0.5'", "the weight stands first", "0.5*rewards.py:digits"),
    ),
    Mistake(
        "train --model model --tasks tasks.jsonl",
        *("none is given", "only tasks of reasoning-gym", "--reward file.py:function"),
    ),
    Mistake(
        "recipe.py --run started --eval-tasks 0 --reward rewards.py:tokens",
        *("no attribute 'token_list'", "rewards.py:", "Mend the function"),
    ),
    Mistake(
        "judged.py --run started --eval-tasks 0",
        *("reward 'quality'", "http://127.0.0.1:9/v1", "Mend the reward"),
        code=1,
    ),
    Mistake(
        "train --model model/model.safetensors --tasks tasks.jsonl --reward rewards.py:digits",
        *("is not a folder", "the folder that holds config.json", "--model model"),
    ),
    Mistake(f"{RECIPE} --model run@7", "none of step 7", "Allowed: best, last", "steps 1"),
    Mistake(f"{TRAIN} --policy.quantization Nf4", "'Nf4'", "Nf4(…) or None", "'Nf4()'"),
)
DATA = (
    Mistake(f"{RECIPE} --tasks rows.txt", "'.txt'", "Allowed: .jsonl", "Write it in one"),
    Mistake(f"{RECIPE} --tasks list.jsonl", "a JSON list", "an object", "on each line"),
    Mistake(f"{RECIPE} --tasks indented.jsonl", "line 1", "not JSON", "one object on each line"),
    Mistake(f"{RECIPE} --tasks semicolons.csv", "'prompt;answer'", "commas", "place of ';'"),
    Mistake(f"{RECIPE} --tasks ragged.csv", "line 3 has 3 values", "Allowed: 2", "prompt, answer"),
    Mistake(f"{RECIPE} --tasks broken.parquet", "broken.parquet", "Parquet", "Write it again"),
    Mistake(f"{RECIPE} --tasks sft.jsonl", "eval_tasks: 4", "at most 0", "leave it out"),
    Mistake(f"{RECIPE} --tasks sharegpt.jsonl", "'from': 'human'", '"role": "user"', "Mend"),
    Mistake(
        f"{RECIPE} --tasks \"tasks.jsonl(answer='gold')\"",
        *("no column 'gold'", "Allowed: answer, prompt", "Name it behind the source"),
    ),
    Mistake(f"{RECIPE} --overlong cut", "overlong: 'cut'", "drop or error or truncate", "Allowed"),
)
METHODS = (
    Mistake(
        f'{RECIPE} --method "grpo(kl_coef=0.1"',
        *("'grpo(kl_coef=0.1'", "never closed", "name(argument=value)"),
    ),
    Mistake(
        f'{RECIPE} --method "dapo(max_length=8)"',
        *("dapo", "overlong_buffer must be given", "dapo(overlong_buffer=...)"),
    ),
    Mistake(f"{RECIPE} --method methods.py:number", "'number'", "must return a Method", "returned"),
    Mistake(
        f"{RECIPE} --method.group-size 4",
        *("'group_size'", "Allowed: advantage", "Did you mean 'sampler.group_size'?"),
    ),
    Mistake("methods check methods.py:RAISE", "'RAISE'", "Allowed:", "Did you mean 'RAISES'?"),
)
ENVIRONMENTS = (
    Mistake(f"{RECIPE} --env CartPole-v1", "'CartPole-v1'", "gymnasium, mcp", "Write KIND:NAME"),
    Mistake(f"{RECIPE} --env gymnasium:CartPol-v1", "'CartPol-v1'", "Allowed:", "'CartPole-v1'?"),
    Mistake(
        f'{RECIPE} --env "gymnasium:CartPole-v1(max_turn=20)"',
        *("'max_turn'", "Allowed: answer_error_reward", "Did you mean 'max_turns'?"),
    ),
    Mistake(f'{RECIPE} --env "mcp:python no.py"', "'python no.py'", "does not start", "no.py"),
    Mistake(f"{RECIPE} --env openv:echo", "'openv:echo'", "gymnasium, mcp", "KIND:NAME"),
)
RECIPE_FILES = (
    Mistake("train type.toml", "policy.dtype: 16", "float32 or bfloat16", "type.toml"),
    Mistake("train text.toml", "policy: 'model'", "a table in a recipe file", "text.toml"),
    Mistake("train function.toml", "'function'", "Allowed: answer_error_score, fn", "rewards[0]"),
    Mistake("train method.toml", "'grp'", "Allowed: a_grae", "Did you mean 'grpo'?"),
    Mistake("train no_policy.toml", "no_policy.toml", "it is missing", "Write a table [policy]"),
    Mistake("train tab.yaml", "tab.yaml", "not valid YAML", "line 2"),
    Mistake("train twice.yaml", "'tasks'", "occurs twice", "line 2"),
    Mistake("train trl.yaml", "num_generations", "TRL's", "--method.sampler.group-size 8"),
    Mistake("migrate notes.sh", "notes.sh", "Allowed: a Python script of TRL", "of prime-rl"),
)
AFTER_TRAINING = (
    Mistake(f"{COMPARE} --budget 100", "'100'", "no known unit", "steps=NUMBER"),
    Mistake(f"{COMPARE} --budget steps=2 --seeds 1-3", "'1-3'", "a number of seeds", "8..24"),
    Mistake(f"{COMPARE} --budget steps=2 --run a", "--run", "a comparison sets this", "with --out"),
    Mistake(
        "compare recipe.py --out new --method grpo,rloo --budget steps=2",
        *("'grpo,rloo'", "Allowed: a_grae", "Write --method again"),
    ),
    Mistake(
        "compare recipe.py --methods grpo --budget steps=2 --out new",
        *("--methods", "a comparison sets this", "--method, repeated"),
    ),
    Mistake(
        "compare recipe.py --out model --method grpo --budget steps=2",
        *("'model' holds", "Allowed: a comparison, or a new folder", "--out"),
    ),
    Mistake("resume run/checkpoints", "'run/checkpoints'", "holds no run", "Allowed"),
    Mistake("eval run --k 8", "--k", "Allowed: attempts", "its own recipe"),
    Mistake("eval model", "'model' holds no run", "It is a model", "--model model"),
    Mistake("export run out --weights ema", "'ema'", "Allowed: trained", "has no ema"),
    Mistake("export run out --format gguf", "--format", "Usage: grupo export", "export --help"),
    Mistake("export run", "FOLDER", "Usage: grupo export", "export --help"),
    Mistake(
        "export run out --checkpoint 7", "none of step 7", "best, last", "steps 2", on_page=True
    ),
    Mistake("report run --out page.pdf", "'page.pdf'", "ends in .html", "Allowed"),
    Mistake("report run --out no/page.html", "'no/page.html'", "does not exist", "Name another"),
    Mistake("watch run --port 99999", "port: 99999", "65535", "Allowed"),
    Mistake("rollouts run --step 0", "step: 0", "1 or more", "Allowed"),
)
COMMAND_LINE = (
    *(*COMMANDS, *OPTIONS, *REWARDS_AND_MODELS, *DATA, *METHODS),
    *(*ENVIRONMENTS, *RECIPE_FILES, *AFTER_TRAINING),
)
