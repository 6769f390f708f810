"""Valid and malformed values from which `tests.helpers.malformed_input` makes cases."""

from typing import Any

LONG = "x" * 5000
DEEP = "[" * 900 + "]" * 900
ESCAPES = "\x1b[31m\x1b]52;c;aGk=\x07\x1bPq\x1b\\\x9b2J\u202e\ufeff\x1b]8;;http://a\x1b\\"
BAD_TEXTS: tuple[str, ...] = (
    *("", " ", "\0", "a\0b", "/", ".", "~nobody/a", "/dev/null", "loop", LONG, LONG + ".py"),
    *(ESCAPES, "a\rb", "\ud800", "\udcff", "٣", "--", "-", "-x", "=", ":", "::", "a:b", ".py:f"),
    *("[]", "null", "None", "{}", "()", "(", "(" * 900, DEEP, "-" * 9000 + "1", "lambda: 1"),
    *("nan", "inf", "-inf", "1e999", "-1", "0", "9" * 400, "9" * 5000, "1" + "0" * 300, "1j"),
    *("100000", "True", "'a'", "b'a'", "f'{1}'", "[x for x in y]", "{[]: 1}", "-'a'", "a.b.c"),
    *("builtins:exec", "os:system", "builtins:print", "math:sqrt", "grpo(", "grpo(**{})"),
    *("Lora(targets='[')", "Lora(rank=10**9)", "Cosine(*[1])", "Linear(1e308, -1e308)"),
    *("Switch(" * 100, "rg:", "rg:chain_sum(", "rg:chain_sum(max_terms=100000000)", "rg:gcd*nan"),
    *("nothing.jsonl", "torn.jsonl", "rewards.py:NUMBER", "recipe.py:NUMBER", "no.such:module"),
)
BAD_JSON: tuple[Any, ...] = (
    *(None, True, 0, -1, 3, 0.5, 1e308, float("nan"), float("inf"), 10**30, "", "a", "\ud800"),
    *(LONG, ESCAPES, "\0", [], [[]], {}, {"a": 1}, [None], {"": {}}, {"component": 3}),
    *({"component": "builtins:exec"}, {"component": "no.such:module"}, {"function": "os:system"}),
    *({"tuple": 3}, {"tuple": [[]]}, {"path": 3}, {"path": "a\0b"}, {"$float": "NaN"}),
    *({"$float": [1]}, {"component": "grupo.core.types:Task", "key": 1, "prompt": 2}),
    *({"component": "grupo.core.schedules:Linear", "start": 1}, {"function": "math:sqrt"}),
)
ROWS: tuple[dict[str, Any], ...] = (
    {"prompt": "1 + 1 =", "answer": "2"},
    {"prompt": [{"role": "user", "content": "2 + 2 ="}], "answer": 4, "level": 1.5},
    {"prompt": "3", "reward_model": {"ground_truth": "4"}, "data_source": "a", "extra_info": {}},
    {"prompt": "5", "source": "b", "columns": [1, [2, {"a": None}]], "extra_info": '{"a": [1]}'},
    {"prompt": "\u00e9\u6f22\U0001f600", "answer": None},
)
MODEL_FILES = ("config.json", "generation_config.json", "tokenizer_config.json")
FIELDS = (
    *("policy", "policy.model", "policy.lora", "policy.dtype", "policy.device", "policy.sampling"),
    *("policy.sampling.temperature", "policy.sampling.top-k", "policy.max-new-tokens", "env"),
    *("policy.stop-strings", "policy.apply-chat-template", "policy.engine", "tasks", "tasks.path"),
    *("tasks.columns", "eval-tasks", "method", "method.advantage", "method.loss", "method.updates"),
    *("method.sampler", "method.sampler.group-size", "method.reference", "steps", "max-steps"),
    *("prompts-per-step", "learning-rate", "optimizer", "optimizer.betas", "aux-models"),
    *("max-grad-norm", "old-logp-tolerance", "max-staleness", "evaluation", "evaluation.attempts"),
    *("evaluation.success.threshold", "early-stopping.max-seconds", "early-stopping.max-tokens"),
    *("logged-groups", "save-every", "seed", "reward", "model", "run", "env.rewards", "nothing"),
    *("policy.nothing", "policy.", ".", "", "policy..model", "seed.a", LONG, "a\x1bb"),
)
COMPARE = ("compare", "recipe.py", "--method", "grpo", "--budget", "steps=2", "--out", "new")
TASKS_WITH_REWARD = ("--reward", "rewards.py:digits", "--eval-tasks", "2")
VALID_LINES: tuple[tuple[str, ...], ...] = (
    ("train", "recipe.py", "--run", "new", "--steps", "2"),
    ("recipe.py", "--tasks", "tasks.jsonl", *TASKS_WITH_REWARD),
    ("recipe.py", "--tasks", "tasks.jsonl(prompt='prompt')", "--eval-tasks", "tasks.jsonl"),
    ("recipe.py", "--tasks", "rg:chain_sum(max_terms=2, size=20)*2+rg:gcd", *TASKS_WITH_REWARD),
    ("recipe.py", "--method", "grpo(clip_eps=0.1)", "--policy.lora", "Lora(4)"),
    ("recipe.py", "--method", "method.py:half(group_size=4)", "--dry-run"),
    ("recipe.py", "--learning-rate", "Warmup(0.1, Cosine(1e-5, 0))", "--seed", "1"),
    ("resume", "run"),
    ("resume", "run", "recipe.py", "--steps", "2"),
    ("eval", "run", "--count", "2", "--attempts", "2"),
    ("eval", "--model", "model", "--tasks", "tasks.jsonl", "--reward", "rewards.py:digits"),
    ("rollouts", "run", "--step", "1", "--best", "2", "--min-reward", "0.5", "--json"),
    ("rollouts", "run", "--contains", "a", "--limit", "3", "--parquet", "new.parquet"),
    ("doctor", "run", "--json"),
    ("report", "run", "--out", "new.html"),
    ("export", "run", "new"),
    ("watch", "run", "--text", "--port", "0"),
    ("methods", "list", "--tag", "length", "--json"),
    ("methods", "check", "grpo"),
    ("make-toy-model", "--seed", "1", "--out", "new"),
    (*COMPARE, "--seeds", "2", "--metric", "sampled", "--baseline", "grpo"),
    (*COMPARE, "--updates-per-step", "Updates(2)", "--workers", "1", "--threads", "1"),
    ("compare", "--recipes", "several.py", "--budget", "tokens=100", "--out", "new"),
    (*COMPARE, "--tasks", "a=tasks.jsonl", "--tasks", "b=tasks.jsonl", *TASKS_WITH_REWARD),
)
NAMED: tuple[tuple[str, ...], ...] = (  # once ended in a traceback, took minutes or were accepted
    *(("recipe.py", "--model", name) for name in ("c_list", "c_null", "c_types", "c_heads")),
    *(("recipe.py", "--model", name) for name in ("c_layers", "c_deep", "c_tokenizer")),
    *(
        ("recipe.py", "--tasks", text, *TASKS_WITH_REWARD)
        for text in (
            *("/", "builtins:exec", LONG, f"{LONG}.jsonl", f"{LONG}:f", "a\0b", "a\0b.py:f"),
            *("rg:chain_sum(max_terms=100000000)", "rg:chain_sum(size=30000000)", "model"),
            *("rg:chain_sum(size=100000000000)", "nan.jsonl", "twice.jsonl", "surrogate.jsonl"),
            *("deep.jsonl", "functions.py:raises_key_error", "functions.py:recurses"),
            *("functions.py:surrogate", "functions.py:exits", "functions.py:no_memory"),
            *("functions.py:escapes", "functions.py:needs", "functions.py:cyclic"),
        )
    ),
    ("recipe.py", "--staleness", "100000"),
    ("recipe.py", "--max-staleness", "100000"),
    ("recipe.py", "--run", "a\0b"),
    ("recipe.py", "--run", LONG),
    *(("recipe.py", "--model", text) for text in (LONG, "(" * 900, "9" * 400, "loop", "~nobody/a")),
    ("recipe.py", "--policy.model", LONG),
    ("recipe.py", "--max-steps", "9" * 400),
    ("recipe.py", "--policy.lora", "Lora(targets='[')"),
    ("recipe.py", "--policy.lora", "Lora(rank=100000000)"),
    ("recipe.py", "--learning-rate", DEEP),
    ("recipe.py", "--learning-rate", "9" * 400),
    ("recipe.py", "--learning-rate", "Exponential(1, -1e9)"),
    ("recipe.py", "--method", f"grpo(clip_eps={DEEP})"),
    ("recipe.py", "--method", "grpo(clip_eps={[]: 2})"),
    ("recipe.py", "--reward", "functions.py:attribute.error"),
    ("compare", "recipe.py", "--method", "grpo", "--budget", f"steps={'9' * 5000}", "--out", "new"),
    ("compare", "recipe.py", "--method", "grpo", "--budget", "tokens=1_", "--out", "new"),
    ("compare", "recipe.py", "--method", "grpo", "--budget", f"steps={'9' * 400}", "--out", "new"),
    (
        "compare",
        "recipe.py",
        "--method",
        "grpo",
        "--budget",
        f"updates={'9' * 400}",
        "--out",
        "new",
    ),
    (*COMPARE, "--seeds", "100000000"),
    (*COMPARE[:-1], "tasks.jsonl"),
    (*COMPARE[:-1], "/dev/null"),
    ("rollouts", "run", "--limit", "9" * 30),
    ("rollouts", "run", f"--{ESCAPES}", "1"),
    ("export", "run", "/dev/null"),
    *((command, LONG) for command in ("resume", "doctor", "rollouts", "report", "eval")),
)
HAND_MADE = (
    *NAMED,
    *(("recipe.py", "--tasks", text, *TASKS_WITH_REWARD) for text in BAD_TEXTS),
    *(("recipe.py", "--method", text) for text in BAD_TEXTS),
    *(("recipe.py", "--reward", text) for text in BAD_TEXTS),
    *(("train", text) for text in BAD_TEXTS),
    *((text,) for text in BAD_TEXTS),
    *((*COMPARE, "--seeds", text) for text in BAD_TEXTS),
)


def comparison_data(recipe: Any) -> dict[str, Any]:
    """The manifest of a comparison of one recipe, as JSON data.

    Args:
        recipe: The recipe as JSON data.
    """
    return {
        "format": 1,
        "budget": {"steps": 2},
        "seeds": [0],
        "updates": {"function": "grupo.compare.update_budget:shared"},
        "baseline": "a",
        "metric": "sampled",
        "recipes": {"a": recipe},
        "task_sets": {},
        "toy_models": {"tuple": []},
        "controls": {"tuple": []},
        "design": None,
    }
