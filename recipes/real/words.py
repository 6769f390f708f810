"""Words that tasks are made of."""

from random import Random


def separate(text: str) -> tuple[str, ...]:
    """The words of a text.

    >>> separate("old bridge")
    ('old', 'bridge')
    """
    return tuple(text.split())


ADJECTIVES = separate(
    "old small quiet green bright lonely broken wooden famous hidden tall rusty golden narrow"
    " frozen busy strange gentle dusty crooked"
)
NOUNS = separate(
    "bridge river garden kitchen teacher doctor horse rabbit island castle forest market ship"
    " train window mountain village library piano bicycle lantern harbor bakery tower farmer"
    " painter sailor clock desert lake school orchard museum candle puppy kitten dragon"
    " robot wizard"
)
VERBS = separate("sings waits sleeps shines moves falls laughs stands turns grows")
ADVERBS = separate("slowly today again outside quietly alone often early")
SHORT_WORDS = separate(
    "stone water apple chair table bread plant cloud house tiger lemon music paper green smile"
    " ocean horse candy grape river snake sugar light piano zebra queen train beach storm floor"
    " glass money night world heart brush clock dance eagle field ghost honey juice knife lunch"
    " mouse nurse onion pearl radio sheep tooth uncle voice wheat youth angel brick cabin daisy"
    " earth flute giant hotel igloo jelly koala llama medal novel olive pizza quilt robin salad"
    " toast vapor whale yacht acorn bacon camel diver elbow fence glove"
)
OPPOSITES = separate(
    "hot:cold big:small fast:slow high:low happy:sad old:young light:dark hard:soft wet:dry"
    " early:late open:closed full:empty rich:poor strong:weak long:short thick:thin wide:narrow"
    " deep:shallow clean:dirty loud:quiet near:far up:down left:right in:out north:south east:west"
    " day:night summer:winter love:hate begin:end buy:sell give:take win:lose push:pull"
    " laugh:cry sit:stand come:go remember:forget arrive:depart accept:reject attack:defend"
    " increase:decrease rise:fall float:sink freeze:melt hide:show lead:follow live:die"
    " success:failure victory:defeat war:peace truth:lie friend:enemy hero:villain king:queen"
    " man:woman boy:girl father:mother brother:sister uncle:aunt husband:wife son:daughter"
    " heaven:hell top:bottom front:back inside:outside above:below before:after first:last"
    " always:never everything:nothing more:less many:few all:none yes:no true:false right:wrong"
    " good:bad best:worst brave:cowardly beautiful:ugly cheap:expensive easy:difficult"
    " guilty:innocent heavy:light male:female major:minor maximum:minimum modern:ancient"
    " positive:negative polite:rude private:public question:answer sharp:blunt smooth:rough"
    " sweet:sour tight:loose vertical:horizontal wild:tame wise:foolish plural:singular"
    " import:export include:exclude multiply:divide add:subtract lock:unlock"
)


def subject(rng: Random) -> str:
    """A thing or a person, such as "the old bridge"."""
    return f"the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}"


def sentence(rng: Random) -> str:
    """A sentence of four to six words without a final period, in lower case."""
    words = [subject(rng), rng.choice(VERBS), *rng.sample(ADVERBS, rng.randint(0, 2))]
    return " ".join(words)
