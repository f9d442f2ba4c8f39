"""Figures with whatever groups and values are called."""

import warnings
import xml.etree.ElementTree as ET

from vibe_harness.report.figures import distribution_svg

HOSTILE = {
    "$\\frac$ a$": {"x$y$": 0.5, "\x00\x1b[1m": 0.5},
    "_hidden": {"<script>alert(1)</script>": 1.0},
    "女性\u202e": {"[bold]": 1.0, "a" * 5000: 0.0},
    "\ud800": {"&amp;": 1.0},
}


def test_hostile_names_give_a_figure_that_parses_and_says_them_all():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = distribution_svg("t & <b> $x$ \x07", HOSTILE, {"_hidden": 3})
    words = " ".join(ET.fromstring(svg).itertext())
    for said in ("_hidden (n = 3)", "<script>alert(1)</script>", "$\\frac$ a$", "女性", "x$y$", "&amp;", "t & <b> $x$"):
        assert said in words, said
    assert not any(sign in svg for sign in ("<script", "\x00", "\x1b", "\u202e", "a" * 41))


def test_the_same_data_give_the_same_bytes():
    assert distribution_svg("t", HOSTILE, {}) == distribution_svg("t", HOSTILE, {})
