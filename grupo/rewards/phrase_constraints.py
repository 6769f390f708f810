"""Constraints on the phrases that a text contains, begins with or ends with.

A constraint is a component from a text to True or False, in time linear in the text. No constraint
is met by an empty text.
"""

import re

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString
from grupo.rewards.text_counts import CountOf, has_word


@component
class Contains:
    """All phrases occur as whole words, ignoring case.

    Args:
        phrases: Words or phrases.

    >>> Contains(("red", "blue"))("Blue and red."), Contains(("red",))("bored")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return all(CountOf(phrase)(text) for phrase in self.phrases)


@component
class ContainsNone:
    """No phrase occurs as a whole word, ignoring case, in a text with a word.

    Args:
        phrases: Words or phrases.

    >>> ContainsNone(("red",))("Blue."), ContainsNone(("red",))("RED")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return has_word(text) and not any(CountOf(phrase)(text) for phrase in self.phrases)


@component
class InOrder:
    """All phrases occur as whole words, each after the one before, ignoring case.

    Args:
        phrases: Words or phrases.

    >>> InOrder(("one", "two"))("One, two."), InOrder(("one", "two"))("two one")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        position = 0
        for phrase in self.phrases:
            pattern = rf"(?<!\w){re.escape(phrase)}(?!\w)"
            match = re.compile(pattern, re.IGNORECASE).search(text, position)
            if match is None:
                return False
            position = match.end()
        return True


@component
class StartsWith:
    """The text begins with a phrase, ignoring case and white space before it.

    Args:
        phrase: The phrase.

    >>> StartsWith("Dear")(" dear reader"), StartsWith("Dear")("Oh dear")
    (True, False)
    """

    phrase: NonEmptyString

    def __call__(self, text: str) -> bool:
        return text.strip().lower().startswith(self.phrase.strip().lower())


@component
class EndsWith:
    """The text ends with a phrase, ignoring case, quotation marks and white space after it.

    Args:
        phrase: The phrase; nothing else follows it.

    >>> EndsWith("The end.")("So. the END."), EndsWith("The end.")("The end. Or not")
    (True, False)
    """

    phrase: NonEmptyString

    def __call__(self, text: str) -> bool:
        return text.strip().strip('"').lower().endswith(self.phrase.strip().strip('"').lower())


@component
class HasOneOf:
    """One of the options occurs, and no other option does.

    Args:
        options: Phrases, of which none contains another.

    >>> yes_no = HasOneOf(("My answer is yes.", "My answer is no."))
    >>> yes_no("My answer is yes."), yes_no("My answer is yes. My answer is no.")
    (True, False)
    """

    options: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return sum(option in text for option in self.options) == 1


@component
class RepeatsPrompt:
    """The text begins with the prompt, and a word follows it.

    Args:
        prompt: The text to repeat; case and white space do not count.

    >>> RepeatsPrompt("Why?")("Why? Because."), RepeatsPrompt("Why?")("Why?")
    (True, False)
    """

    prompt: NonEmptyString

    def __call__(self, text: str) -> bool:
        expected, written = (" ".join(part.lower().split()) for part in (self.prompt, text))
        return written.startswith(expected) and has_word(written.removeprefix(expected))
