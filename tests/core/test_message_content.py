"""Text added to prompts, judges and limits, where a content has parts with pictures."""

import numpy as np
import pytest

from grupo.core.media import Image, media_of
from grupo.core.prompt_text import append_text, prepend_text
from grupo.core.types import Response, Rollout, Task, prefill_text
from grupo.core.validation import PromptLimit
from grupo.envs.random_opponent import RandomOpponent
from grupo.envs.tools.tool_env import with_tools_prompt
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.rewards.judges.template import observation_text
from grupo.rewards.trl_verl import TRLReward
from grupo.rollouts.samplers.tagged import _prepend_text
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.util.errors import ConfigError

PICTURE = Image.from_pixels(np.full((2, 2, 3), 7, np.uint8))
IMAGE = {"type": "image", "image": PICTURE}


def text(words):
    return {"type": "text", "text": words}


def user(*content):
    return {"role": "user", "content": [*content]}


PROMPT = (user(IMAGE, text("Which?")),)


def test_text_at_the_end_is_a_part_of_its_own():
    assert append_text(PROMPT, " Think.") == (user(IMAGE, text("Which?"), text(" Think.")),)


@pytest.mark.parametrize("prepend", [prepend_text, lambda new, prompt: _prepend_text(prompt, new)])
def test_text_at_the_beginning_is_a_part_of_its_own(prepend):
    assert prepend("Think. ", PROMPT) == (user(text("Think. "), IMAGE, text("Which?")),)


def test_a_description_of_tools_keeps_the_pictures_of_the_system_message():
    system = {"role": "system", "content": [IMAGE]}
    described, message = with_tools_prompt((system, *PROMPT), ['{"name": "add"}'])
    assert described["content"][0] == IMAGE
    assert '{"name": "add"}' in described["content"][1]["text"]
    assert (message,) == PROMPT


def test_the_text_for_a_judge_has_a_mark_for_each_picture():
    assert observation_text(PROMPT) == "<image>Which?"
    answer = {"role": "assistant", "content": "Red"}
    assert observation_text((*PROMPT, answer)) == "user: <image>Which?\n\nassistant: Red"


def test_a_prefilled_beginning_is_the_text_of_its_parts():
    assert prefill_text((*PROMPT, {"role": "assistant", "content": [text("It is")]})) == "It is"


def test_an_opponent_reads_the_texts_of_parts():
    import random

    moves = (user(IMAGE, text("Moves: '[left]'")),)
    assert RandomOpponent()(moves, random.Random(0)) == "[left]"


def words_of(rollout, observation, tools=()):
    """A token for each word, and five for each picture."""
    parts = [part for message in observation for part in message["content"]]
    return (*(w for p in parts for w in p.get("text", "").split()), *(5 * [*media_of(observation)]))


def test_a_prompt_with_a_picture_is_counted_and_truncated_with_it():
    limit = PromptLimit(words_of, context_length=12, max_new_tokens=4, demonstrate=None)
    short = Task("short", (user(IMAGE, text("a b c")),))
    long = Task("long", (user(IMAGE, text("a b c d e")),), location="rows.jsonl, line 2")
    assert not limit.surely_fits(short)
    assert limit.describe_excess(short) == ""
    assert limit.describe_excess(long) == "10 tokens"
    shortened = limit.truncate(long).prompt
    assert list(media_of(shortened)) == [PICTURE]
    assert len(words_of(Rollout(), shortened)) <= 8
    assert shortened[0]["content"][1]["text"] == " c d e"


@pytest.fixture
def chat_tokenizer():
    tokenizer = phrase_tokenizer([])
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    return ChatTokenizer(tokenizer, (0,))


def test_a_policy_of_text_refuses_a_picture_and_names_the_row(chat_tokenizer):
    limit = PromptLimit(chat_tokenizer.encode_observation, 100, 10, None)
    task = Task("k", PROMPT, location="rows.jsonl, line 2")
    assert not limit.surely_fits(task)
    with pytest.raises(
        ConfigError, match=r"^prompt: its messages hold image .*VisionLM\..*rows.jsonl, line 2"
    ):
        limit.validate_tasks([task])


def test_a_policy_of_text_refuses_a_picture_in_a_later_observation(chat_tokenizer):
    rollout = Rollout((("?", Response((1,), (0.0,), text="a")),))
    with pytest.raises(ConfigError, match="its messages hold image"):
        chat_tokenizer.encode_observation(rollout, PROMPT)


def test_a_reward_function_of_trl_sees_pil_images():
    def corner(prompts, completions, images, **kwargs):
        shown = prompts[0][0]["content"][0]["image"]
        assert completions[0][0] == {"role": "assistant", "content": "Red"}
        return [float(x[0].getpixel((0, 0))[0] + shown.getpixel((1, 1))[2]) for x in images]

    task = Task("k", PROMPT, columns={"images": [PICTURE]})
    rollouts = [Rollout(((PROMPT, Response((1,), (0.0,), text="Red")),))] * 2
    assert TRLReward(corner)(task, rollouts) == [14.0, 14.0]
