"""Python files and chat templates of a user, for tests of the command line."""

RECIPE = """
from grupo.envs import RewardTerm, SingleTurn, raise_error
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import DatasetTasks

RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=8),
    env=SingleTurn((RewardTerm("digits", "rewards.py:digits"),)),
    tasks=DatasetTasks("tasks.jsonl"),
    eval_tasks=4,
    method=Method(sampler=GroupSampler(4)),
    max_steps=2,
    prompts_per_step=2,
    learning_rate=1e-3,
    evaluation=Evaluation(attempts=2),
)
OTHER = RECIPE.replace(prompts_per_step=3)
STRICT = RECIPE.replace(
    env=SingleTurn(
        (RewardTerm("nothing", "rewards.py:nothing"),), on_failure=raise_error
    )
)
NUMBER = 3
"""
REWARDS = """
import signal

interrupted = []


def digits(task, rollout):
    return sum(map(str.isdigit, rollout.text)) / max(1, len(rollout.text))


def words(completions, **columns):
    return [float(" " in text) for text in completions]


def nothing(task, rollout):
    return float("nan")


def odd(left, right):
    return 0.0


def interrupt(task, rollout):
    interrupted.append(True)
    if len(interrupted) == 2:  # the first call is the trial before the run
        signal.raise_signal(signal.SIGINT)
    return 0.0


NUMBER = 3
"""
METHOD = '''
"""Half: half the advantage. An example, not a paper."""

from grupo.algo.advantages import Center, chain
from grupo.method import Method


def halved(x, batch):
    """x / 2."""
    return x / 2


def half(group_size: int = 4) -> Method:
    """A = (r - mean(r)) / 2."""
    return Method(advantage=chain(Center(), halved))


def by_number(x, batch):
    """Depends on the numbering of the groups."""
    return x * batch.group


BROKEN = Method(advantage=by_number)
'''

FUNCTIONS = """
def raises_key_error():
    yield {"prompt": "1"}
    raise KeyError("a")

def recurses():
    return recurses()

def surrogate():
    yield {"prompt": "a \\ud800"}

def exits():
    raise SystemExit(0)

def no_memory():
    raise MemoryError

def escapes():
    raise ValueError("\\x1b]52;c;aGk=\\x07\\x1b[2J")

def needs(number):
    yield {"prompt": "1"}

def cyclic():
    values = []
    values += [values, values]
    yield {"prompt": "1", "values": values}

class Attribute:
    def __getattr__(self, name):
        raise RuntimeError(name)

attribute = Attribute()
"""
TEMPLATES = {
    "chat": "{{ messages[0].content }}{% if style %}.{% endif %}",
    "blank": " ",
    "open": "{% for m in messages %}{{ m.content }}",
    "loops": 3 * "{% for i in range(99999) %}" + 3 * "{% endfor %}" + "{{ messages }}",
    "raises": "{{ raise_exception('roles must alternate') }}",
}
RECIPES = "from recipe import RECIPE\n\nRECIPES = {'a': RECIPE, 'b': RECIPE.replace(seed=1)}\n"
