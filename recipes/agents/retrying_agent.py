"""An agent of Pydantic AI trains a toy model, which starts with random weights: docs/proxy.md.

pip install "grupo[proxy]" "pydantic-ai-slim[openai]"
python recipes/agents/retrying_agent.py
grupo train recipes/agents/retrying_agent.py:RECIPE
"""

from collections.abc import Sequence

from grupo import Adam, CausalLM, Recipe, Task
from grupo.core.component import component
from grupo.envs.proxy import PolicyAddress, ProxyEnv
from grupo.methods.grpo import grpo
from grupo.toy.multi_turn_lm import CHAT_TEMPLATE, ROLE_PREFIXES
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.user_paths import models_dir

MODEL_DIR = models_dir() / "retrying-agent" / "model"
THINGS = ("grass", "blood", "snow", "coal")
INSTRUCTIONS = "Answer in small letters."
RETRY = "Small letters and nothing else, please."


async def run(task: Task, address: PolicyAddress) -> float:
    """The agent answers in small letters: at once for the reward 1, at its second attempt for 0.5.

    Pydantic AI makes the conversation: an answer that the validator rejects is sent back to the
    policy, which reads it again.
    """
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, ModelRetry, UnexpectedModelBehavior
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    answers: list[str] = []

    async with AsyncOpenAI(base_url=address.base_url, api_key=address.api_key) as client:
        model = OpenAIChatModel(address.model, provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, instructions=INSTRUCTIONS, retries=1)

        @agent.output_validator
        def check(answer: str) -> str:
            answers.append(answer)
            if not (answer.isalpha() and answer.islower()):
                raise ModelRetry(RETRY)
            return answer

        try:
            await agent.run(str(task.prompt))
        except UnexpectedModelBehavior:  # no attempt is left
            return 0.0
    return 0.5 ** (len(answers) - 1)


@component
class Things:
    """A question for each thing."""

    def load(self) -> Sequence[Task]:
        """The tasks."""
        return [Task(name, f"Which colour has {name}?") for name in THINGS]


RECIPE = Recipe(
    policy=CausalLM(str(MODEL_DIR), max_new_tokens=1, apply_chat_template=True),
    env=ProxyEnv("recipes/agents/retrying_agent.py:run"),
    tasks=Things(),
    eval_tasks=0,
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=10,
    prompts_per_step=4,
    learning_rate=3e-2,
    optimizer=Adam(),
)


def save_model() -> None:
    """Save the toy model, with a token for each word of the conversations."""
    prompts = [str(task.prompt) for task in Things().load()]
    tokenizer = word_tokenizer((*ROLE_PREFIXES, INSTRUCTIONS, RETRY, *prompts))
    tokenizer.chat_template = CHAT_TEMPLATE
    LlamaArchitecture(context_length=1024).save_untrained(MODEL_DIR, tokenizer)


if __name__ == "__main__":
    save_model()
