"""Files that a user writes in the first hour."""

MODEL = '''
"""A Qwen3 with random weights, and a BPE tokenizer trained on the texts of the tasks."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
)
texts = [f"What is {a} plus {b}? The sum is {a + b}." for a in range(40) for b in range(40)]
backend = Tokenizer(models.BPE())
backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
backend.decoder = decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
alphabet = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
backend.train_from_iterator(texts, trainer)
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>"
)
tokenizer.chat_template = TEMPLATE
tokenizer.save_pretrained("my_model")
config = Qwen3Config(
    vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=256,
    eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
)
model = Qwen3ForCausalLM(config)
model.save_pretrained("my_model")
print(sum(p.numel() for p in model.parameters()), "parameters")
'''
TASKS = """
import json

import pyarrow as pa
from pyarrow import csv, parquet

sums = [(a, b) for a in range(6) for b in range(6)]
with open("train.jsonl", "w") as file:
    for a, b in sums:
        file.write(json.dumps({"prompt": f"What is {a} plus {b}?", "answer": str(a + b)}) + "\\n")
with open("chat.jsonl", "w") as file:
    for a, b in sums:
        messages = [{"role": "user", "content": f"What is {a} plus {b}?"}]
        file.write(json.dumps({"prompt": messages, "solution": str(a + b)}) + "\\n")
columns = {
    "question": [f"What is {a} plus {b}?" for a, b in sums],
    "answer": [str(a + b) for a, b in sums],
}
csv.write_csv(pa.table(columns), "train.csv")
verl = {
    "prompt": [[{"role": "user", "content": text}] for text in columns["question"]],
    "data_source": ["sums"] * len(sums),
    "reward_model": [{"style": "rule", "ground_truth": text} for text in columns["answer"]],
}
parquet.write_table(pa.table(verl), "train.parquet")
"""
REWARDS = '''
def digits(completions, **columns):
    """TRL's signature: the fraction of digits in an answer."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [sum(map(str.isdigit, text)) / max(1, len(text)) for text in texts]


def short(completions, **columns):
    return [-len(c) / 100 for c in completions]


def solved(completions, solution, **columns):
    return [float(s in c[0]["content"]) for c, s in zip(completions, solution)]


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    """verl's signature."""
    return float(ground_truth in solution_str)
'''
JUDGED = """
from grupo import CausalLM, Recipe, RewardTerm, SingleTurn
from grupo.method import Method
from grupo.rewards import ChatEndpoint, Judge
from grupo.rewards.judges import NumberAfter
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import parse_task_source

judge = Judge(
    ChatEndpoint("any-model", base_url="{url}", api_key_env="", cache="replies.sqlite"),
    prompt="Rate the answer.\\n{{boundary}}\\n{{completion}}\\n{{boundary}}\\nWrite: Score: N",
    parse=NumberAfter("Score:", 1, 10),
)
RECIPE = Recipe(
    CausalLM("my_model", max_new_tokens=8),
    SingleTurn((RewardTerm("quality", judge),)),
    parse_task_source("train.jsonl"),
    method=Method(sampler=GroupSampler(4)),
    eval_tasks=4,
    prompts_per_step=2,
    max_steps=2,
)
"""
OWN_ENVIRONMENT = """
from grupo import CausalLM, Recipe
from grupo.envs import MultiTurn
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import parse_task_source


class Guess:
    def reset(self, task):
        self.secret = task.reference_answer
        return task.prompt

    def step(self, text):
        if self.secret in text:
            return "Right.", 1.0, True
        return "No. Again:", 0.1 * any(map(str.isdigit, text)), False


RECIPE = Recipe(
    CausalLM("my_model", max_new_tokens=8),
    MultiTurn(Guess, max_turns=3),
    parse_task_source("train.jsonl"),
    method=Method(sampler=GroupSampler(4)),
    eval_tasks=4,
    prompts_per_step=2,
    max_steps=2,
)
"""
LOAD_EXPORT = """
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("exported")
model = AutoModelForCausalLM.from_pretrained("exported")
inputs = tokenizer("What is 2 plus 3?", return_tensors="pt", return_token_type_ids=False)
print("tokens:", model.generate(**inputs, max_new_tokens=4, do_sample=False).shape[1])
"""
NOTEBOOK = """
import nbformat
from nbclient import NotebookClient

CELLS = [
    "from datasets import Dataset\\n"
    "from transformers import AutoModelForCausalLM, AutoTokenizer\\n"
    "from grupo import CausalLM, LoadedModel, Recipe, RewardTerm, SingleTurn, train\\n"
    "model = AutoModelForCausalLM.from_pretrained('my_model')\\n"
    "tokenizer = AutoTokenizer.from_pretrained('my_model')",
    "rows = [{'prompt': f'What is {i} plus 1?', 'answer': str(i + 1)} for i in range(12)]\\n"
    "def digits(completions, **columns):\\n"
    "    return [sum(map(str.isdigit, c)) / max(1, len(c)) for c in completions]",
    "recipe = Recipe(\\n"
    "    CausalLM(LoadedModel(model, tokenizer), max_new_tokens=8),\\n"
    "    SingleTurn((RewardTerm('digits', digits),)),\\n"
    "    Dataset.from_list(rows),\\n"
    "    eval_tasks=4, max_steps=2, prompts_per_step=2)\\n"
    "run = train(recipe, 'runs/notebook')",
    "run",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
nbformat.write(notebook, "notebook.ipynb")
shown = notebook.cells[-1].outputs[0].data
print("shown as", "HTML" if "text/html" in shown else "plain text")
"""
