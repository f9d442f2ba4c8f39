"""Ids in few bytes behave as a set and a mapping do."""

from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.records import RequestKey
from vibe_harness.store.request_ids import Ids, RequestSet, RequestTable

ID = st.binary(min_size=16, max_size=16).map(bytes.hex) | st.sampled_from(
    ["00" * 16, "0" * 31 + "1", "1" + "0" * 31, "ff" * 15 + "00", "ff" * 14 + "0000"]
)
NUMBER = st.integers(0, 3)
KEY = st.builds(RequestKey, st.text(max_size=3), st.text(max_size=3), st.text(max_size=5), NUMBER, NUMBER)


@given(given_ids=st.lists(ID, max_size=30), others=st.lists(ID | st.text(max_size=40), max_size=10))
def test_ids_are_found_where_they_stand_last(given_ids, others):
    ids = Ids(given_ids)
    last = {one: index for index, one in enumerate(given_ids)}
    assert list(ids) == given_ids and len(ids) == len(given_ids)
    assert [ids.index(one) for one in [*given_ids, *others]] == [last.get(one) for one in [*given_ids, *others]]


@given(requests=st.dictionaries(ID, KEY, max_size=30), marked=st.lists(ID, max_size=10), data=st.data())
def test_a_table_and_a_set_of_requests_behave_as_a_mapping_and_a_set(requests, marked, data):
    planned = RequestTable(requests.items())
    assert dict(planned) == requests and len(planned) == len(requests)
    own = data.draw(st.lists(st.sampled_from(sorted(requests)))) if requests else []
    marks, expected = RequestSet(planned), set()
    for one in [*marked, *own]:
        assert planned.get(one) == requests.get(one)
        assert marks.add(one) == (one in requests and one not in expected)
        expected |= {one} & requests.keys()
        assert one in marks or one not in requests
    assert len(marks) == len(expected)
    assert [request for request in requests if request not in marks] == [r for r in requests if r not in expected]


def test_what_is_no_id_is_none_of_them():
    ids = Ids(["not an id", "0A" * 16, "0a " * 10 + "0a"])
    assert len(ids) == 3
    for one in ("not an id", "0A" * 16, "0a" * 16, "0a " * 10 + "0a", "", "00" * 15):
        assert one not in ids


def test_the_digest_of_a_plan_tells_its_order_and_keys():
    a, b = ("0a" * 16, RequestKey("t", "v", "c")), ("0b" * 16, RequestKey("t", "v", "d"))
    again, later = (a[0], a[1]._replace(repeat=1)), (a[0], a[1]._replace(turn=1))
    plans = ([a, b], [b, a], [a], [again], [later], [(a[0], b[1]), b], [])
    assert len({RequestTable(plan).digest for plan in plans}) == 7
