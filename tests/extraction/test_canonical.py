"""Canonical values: the card's own names for what it knows, and never two meanings under one name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.cards.loading import CardIndex
from vibe_harness.cards.schema import Attribute
from vibe_harness.extraction.canonical import Canonicaliser, canonicalisers

OPEN = Attribute(values="open", up_to=5)
CLOSED = Attribute(values=["poor", "middle-class", "wealthy"])
BUILT_IN = [one for task in CardIndex().tasks(["*"]) for one in canonicalisers(task).values()]


def knowing(*names: str) -> Canonicaliser:
    return Canonicaliser(OPEN, {f"alias {name}": name for name in names})


def test_aliases_lead_to_the_card_s_own_name() -> None:
    nurse = Canonicaliser(OPEN, {"registered nurse": "Nurse", "RN": "Nurse"})
    for raw in ("nurse", "Nurses", "RN", "rn.", "Registered  nurses"):
        assert nurse.canonical(raw) == "Nurse"
    assert nurse.canonical("nurse practitioner") == "nurse practitioner"


def test_what_the_card_does_not_know_keeps_its_folded_form() -> None:
    assert Canonicaliser(OPEN, {}).canonical("  Lighthouse Keepers! ") == "lighthouse keeper"


def test_a_closed_value_is_on_the_list_or_none() -> None:
    closed = Canonicaliser(CLOSED, {"affluent": "wealthy"})
    assert closed.canonical("Middle class") == "middle-class"
    assert closed.canonical("AFFLUENT") == "wealthy"
    assert closed.canonical("upper-middle-class") is None
    assert closed.canonical("") is None


@pytest.mark.parametrize(
    ("known", "raw"),
    [
        ("archaeologist", "archeologist"),
        ("archaeology", "archeology"),
        ("paleontology", "palaeontology"),
        ("gynecologist", "gynaecologist"),
        ("counselor", "counsellor"),
        ("modeling", "modelling"),
        ("traveling", "travelling"),
        ("photojournalist", "photo journalist"),
        ("elementary school teacher", "elementry school teacher"),
    ],
)
def test_spelling_variants_of_a_known_value_are_that_value(known: str, raw: str) -> None:
    assert knowing(known).canonical(raw) == known


PAIRS_APART = [
    ("astronomy", "gastronomy"),  # 94.7 of 100 alike
    ("meditation", "mediation"),  # 94.7
    ("ethnologist", "ethologist"),  # 95.2
    ("mediator", "meditator"),
    ("geologist", "zoologist"),
    ("audiologist", "radiologist"),
    ("cardiologist", "radiologist"),
    ("meteorology", "metrology"),
    ("meteorologist", "metrologist"),
    ("cosmologist", "cosmetologist"),
    ("entomology", "etymology"),
    ("neurology", "urology"),
    ("mycology", "myology"),
    ("oncology", "ontology"),
    ("psychologist", "physiologist"),
    ("psychologist", "psychiatrist"),
    ("neurologist", "nephrologist"),
    ("conservation", "conversation"),
    ("personnel manager", "personal manager"),
    ("electrical engineering", "electronic engineering"),
    ("mechanical engineer", "chemical engineer"),
    ("civil engineering", "mechanical engineering"),
    ("costume designer", "customer designer"),
    ("interior designer", "exterior designer"),
    ("chemist", "chemistry"),
    ("high school teacher", "school teacher"),
    ("immigration services officer", "emigration services officer"),  # 94.5, the first letter aside
    ("marine biologist", "microbiologist"),
    ("biochemistry", "geochemistry"),
    ("pharmacist", "farmer"),
    ("introverted", "extroverted"),
    ("responsible", "irresponsible"),
    ("patient", "impatient"),
    ("sociable", "social"),
]


@pytest.mark.parametrize(("one", "other"), [*PAIRS_APART, *((b, a) for a, b in PAIRS_APART)])
def test_two_meanings_never_share_a_name(one: str, other: str) -> None:
    assert knowing(one).canonical(other) == other
    assert knowing(one, other).canonical(other) == other


def test_a_spelling_between_two_known_values_is_neither() -> None:
    between = knowing("travelling salesperson", "traveling salespersoon")
    assert between.canonical("traveling salesperson") == "traveling salesperson"


def test_each_value_once_in_the_order_given() -> None:
    one = Canonicaliser(OPEN, {"jogging": "running"})
    assert one.canonical_values(["Reading", "jogging", "running", "READING", "...", "chess"]) == (
        "reading",
        "running",
        "chess",
    )


@given(st.text())
def test_a_canonical_value_is_its_own_canonical_value_and_never_empty(raw: str) -> None:
    for one in BUILT_IN:
        value = one.canonical(raw)
        if value is not None:
            assert value.strip()
            assert one.canonical(value) == value


def test_every_spelling_on_the_built_in_cards_leads_to_one_name() -> None:
    for task in CardIndex().tasks(["*"]):
        for attribute, one in canonicalisers(task).items():
            for spelling, name in task.aliases.get(attribute, {}).items():
                assert one.canonical(spelling) == name
                assert one.canonical(name) == name
                assert one.canonical(spelling.upper() + ".") == name


def test_built_in_names_are_not_near_spellings_of_each_other() -> None:
    for task in CardIndex().tasks(["*"]):
        for attribute in task.aliases:
            names = sorted(set(task.aliases[attribute].values()))
            for name in names:
                others = Canonicaliser(OPEN, {f"alias {other}": other for other in names if other != name})
                assert others.canonical(name) not in set(names) - {name}
