"""A journal loses nothing but what was never complete."""

import json
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vibe_harness.errors import UserError
from vibe_harness.store.journal import Journal, as_object, read_journal

RECORDS = st.lists(
    st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3), min_size=1, max_size=5
)


def write(path, records):
    with Journal(path) as journal:
        for record in records:
            journal.append(record)


@given(records=RECORDS, data=st.data())
def test_cut_anywhere_it_gives_the_records_before_and_goes_on(tmp_path_factory, records, data):
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    write(path, records)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    complete = whole[:cut].count(b"\n")
    path.write_bytes(whole[:cut])
    assert list(read_journal(path, as_object)) == records[:complete]
    write(path, [{"after": 1}])
    assert list(read_journal(path, as_object)) == [*records[:complete], {"after": 1}]


def test_hostile_text_stays_one_line(tmp_path):
    path = tmp_path / "j.jsonl"
    texts = ["a\nb\r\n", "\u2028\u2029", "\x00", "‮", "😀", "\ud800"]
    write(path, [{"text": text} for text in texts])
    assert path.read_bytes().count(b"\n") == len(texts)
    assert [record["text"] for record in read_journal(path, as_object)] == [*texts[:-1], "?"]


def test_nan_is_refused(tmp_path):
    with Journal(tmp_path / "j.jsonl") as journal, pytest.raises(ValueError):
        journal.append({"x": float("nan")})
    assert (tmp_path / "j.jsonl").read_bytes() == b""


def test_an_edited_line_is_named(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text('{"a": 1}\nnot json\n{"a": 2}\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"j\.jsonl:2"):
        list(read_journal(path, as_object))


def test_a_killed_process_loses_no_appended_record(tmp_path):
    path = tmp_path / "j.jsonl"
    program = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from vibe_harness.store.journal import Journal
        journal = Journal(Path({str(path)!r}))
        for i in range(1000):
            journal.append({{"i": i}})
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert [record["i"] for record in read_journal(path, as_object)] == list(range(1000))


def test_a_full_disk_is_said_in_a_line_and_leaves_no_half_record(tmp_path):
    path = tmp_path / "j.jsonl"
    write(path, [{"a": 1}])
    journal = Journal(path)
    real = journal._file

    class Full:
        """A file on which half of a record still fits."""

        def __getattr__(self, name):
            return getattr(real, name)

        def write(self, data):
            if len(data) > 4:
                return real.write(data[:4])
            raise OSError(28, "No space left on device")

    journal._file = Full()
    with pytest.raises(UserError, match="No space left"):
        journal.append({"b": "x" * 100})
    journal._file = real
    journal.close()
    assert path.read_text(encoding="utf-8") == json.dumps({"a": 1}, separators=(",", ":")) + "\n"
