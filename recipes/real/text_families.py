"""Families of tasks about given words: counting, sorting, and edits of texts."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.evidence.survey import TaskFamily
from grupo.rewards import ExactMatch, NumberWithin
from grupo.rewards.text import LabelMatch
from grupo.util.importing import load_module_file

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
WORDS = load_module_file(Path(__file__).with_name("words.py"))
NUMBER = NumberWithin(extract=ANSWERS.last_number)
SHORT = LabelMatch(ANSWERS.short_answer)


def letters(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A letter of a word, and how often it occurs there."""
    words = (*WORDS.SHORT_WORDS, *WORDS.NOUNS, *WORDS.ADJECTIVES)
    while True:
        word = rng.choice(words)
        letter = rng.choice(word)
        yield {"word": word, "letter": letter, "answer": str(word.count(letter))}


@component
class Sentences:
    """Sentences, and what an edit or a count makes of them.

    Args:
        answer: From the sentence to the reference answer.
    """

    answer: Callable[[str], str]

    def __call__(self, rng: Random) -> Iterator[Mapping[str, Any]]:
        while True:
            text = WORDS.sentence(rng)
            yield {"text": text, "answer": self.answer(text)}


def unchanged(text: str) -> str:
    """The text itself."""
    return text


def number_of_words(text: str) -> str:
    """The number of words.

    >>> number_of_words("the old bridge")
    '3'
    """
    return str(len(text.split()))


def capitals(text: str) -> str:
    """The text in capitals.

    >>> capitals("the old bridge")
    'THE OLD BRIDGE'
    """
    return text.upper()


def last_word(text: str) -> str:
    """The last word.

    >>> last_word("the old bridge")
    'bridge'
    """
    return text.split()[-1]


def initials(text: str) -> str:
    """The first letters of the words.

    >>> initials("the old bridge")
    'tob'
    """
    return "".join(word[0] for word in text.split())


def short_words(rng: Random) -> Iterator[Mapping[str, Any]]:
    """A word and its letters from back to front."""
    for word in rng.sample(WORDS.SHORT_WORDS, len(WORDS.SHORT_WORDS)):
        yield {"word": word, "answer": word[::-1]}


def word_lists(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Four words with different first letters, and the same in alphabetical order."""
    while True:
        words = rng.sample(WORDS.SHORT_WORDS, 4)
        if len({word[0] for word in words}) == len(words):
            shown, ordered = (", ".join(x) for x in (words, sorted(words)))
            yield {"words": shown, "answer": ordered}


FAMILIES = (
    TaskFamily(
        "letters_of_a_word",
        letters,
        (
            'How many times does the letter "{letter}" occur in "{word}"? Answer with a number.',
            "Count the letter {letter} in the word {word}.",
        ),
        NUMBER,
    ),
    TaskFamily(
        "words_of_a_sentence",
        Sentences(number_of_words),
        (
            'How many words are in this sentence? "{text}" Answer with a number.',
            "Count the words: {text}",
            "Count the words.\nthe cat runs -> 3\nthe red sun sets slowly -> 5\n{text} ->",
        ),
        NUMBER,
    ),
    TaskFamily(
        "sorted_words",
        word_lists,
        (
            "Sort these words alphabetically: {words}. Answer with the list only.",
            "Write these words in alphabetical order: {words}",
            "Sort the words.\nfig, apple, kiwi, date -> apple, date, fig, kiwi\n{words} ->",
        ),
        ExactMatch(ANSWERS.listed_items),
        max_new_tokens=20,
    ),
    TaskFamily(
        "reversed_word",
        short_words,
        (
            'Write the word "{word}" backwards. Answer with the word only.',
            "Reverse the letters of {word}.",
            "Spell backwards.\ncat -> tac\nbook -> koob\n{word} ->",
        ),
        SHORT,
    ),
    TaskFamily(
        "copied_sentence",
        Sentences(unchanged),
        (
            'Write exactly this and nothing else: "{text}"',
            "Repeat this sentence: {text}",
        ),
        SHORT,
    ),
    TaskFamily(
        "capitals_of_a_sentence",
        Sentences(capitals),
        (
            "Write this in capital letters: {text}",
            'Convert to uppercase: "{text}" Answer with the text only.',
            "Write in capitals.\nthe cat runs -> THE CAT RUNS\na red sun -> A RED SUN\n{text} ->",
        ),
        ExactMatch(ANSWERS.short_answer),
        max_new_tokens=20,
    ),
    TaskFamily(
        "last_word",
        Sentences(last_word),
        (
            'What is the last word of "{text}"? Answer with the word only.',
            "Repeat only the last word: {text}",
            "Last word.\nthe cat runs fast -> fast\na red sun sets -> sets\n{text} ->",
        ),
        SHORT,
    ),
    TaskFamily(
        "first_letters",
        Sentences(initials),
        (
            'Write the first letter of each word of "{text}".',
            "What are the initials of these words? {text} Answer with the letters only.",
            "First letters.\nthe cat runs -> tcr\na red sun sets -> arss\n{text} ->",
        ),
        LabelMatch(ANSWERS.joined_letters),
    ),
)
