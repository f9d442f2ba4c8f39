"""What a model wrote while it was thinking, taken off what it then answered."""

from __future__ import annotations

import re

_NAMES = r"think|thinking|thoughts?|reasoning|scratchpad"
# <think>, [THINK], ◁think▷ (Kimi), <|begin_of_thought|>, <seed:think>; the same with a slash, or `end`, is the end.
_TAG = re.compile(
    rf"<(?P<xml>/?)(?:seed:)?(?:{_NAMES})(?:\s[^<>\n]{{0,80}})?>|\[(?P<square>/?)(?:{_NAMES})\]|"
    rf"◁(?P<kimi>/?)(?:{_NAMES})▷|<\|(?P<bar>begin|end)_of_(?:{_NAMES})\|>",
    re.IGNORECASE,
)


def split_thought(text: str) -> tuple[str, str]:
    """The answer in a text, and the thought in it with its tags; "" where there is none of them.

    A block that has no end is thought as far as the text goes. An end without a beginning ends a thought that the
    prompt began: all before it is thought. Blocks within blocks, and several, are thought likewise.
    """
    said: list[str] = []
    thought: list[str] = []
    at, inside = 0, False
    for tag in _TAG.finditer(text):
        piece = text[at : tag.start()]
        ends = next(filter(None, tag.group("xml", "square", "kimi", "bar")), "") in ("/", "end")
        if ends and not inside:
            thought += [*said, piece]
            said = []
        else:
            (thought if inside else said).append(piece)
        thought.append(tag[0])
        at, inside = tag.end(), not ends
    (thought if inside else said).append(text[at:])
    return "".join(said), "".join(thought)
