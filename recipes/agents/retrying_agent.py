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
from grupo.toy.multi_turn_lm import CHAT_TEMPLATE
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.user_paths import models_dir

MODEL_DIR = models_dir() / "retrying-agent" / "model"
COLOURS = {"grass": "green", "blood": "red", "snow": "white", "coal": "black"}
INSTRUCTIONS = "Answer with a colour."
RETRY = "Answer again: red, green, white, black."


async def run(task: Task, address: PolicyAddress) -> float:
    """The agent names a colour, with one more attempt; its reward halves with each of them.

    Pydantic AI makes the conversation: a colour that the validator rejects is sent back to the
    policy, which reads its first answer again.
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
            if answer.strip() != COLOURS[task.key]:
                raise ModelRetry(RETRY)
            return answer

        try:
            await agent.run(str(task.prompt))
        except UnexpectedModelBehavior:  # no attempt is left
            return 0.0
    return 0.5 ** (len(answers) - 1)


@component
class Things:
    """A task for each thing with a colour."""

    def load(self) -> Sequence[Task]:
        """The tasks."""
        return [Task(name, f"Which colour has {name}?") for name in COLOURS]


RECIPE = Recipe(
    policy=CausalLM(str(MODEL_DIR), max_new_tokens=2, apply_chat_template=True),
    env=ProxyEnv(run),
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
    roles = ("system: ", "user: ", "assistant: ", "assistant\n")
    texts = (*roles, INSTRUCTIONS, RETRY, *prompts, *COLOURS.values())
    tokenizer = word_tokenizer(texts)
    tokenizer.chat_template = CHAT_TEMPLATE
    LlamaArchitecture(context_length=1024).save_untrained(MODEL_DIR, tokenizer)


if __name__ == "__main__":
    save_model()
