"""Zips: unpacked once, never outside of their folder."""

import errno
import os
import stat
import zipfile
from pathlib import Path

import pytest

from vibe_harness.corpora.importers import sources
from vibe_harness.corpora.importers.sources import disk_error, open_source
from vibe_harness.errors import UserError


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert open_source(tmp_path, tmp_path / "x") == tmp_path


def test_a_zip_with_zips_in_it(tmp_path: Path) -> None:
    inner = _zip(tmp_path / "ABA.zip", {"ABA/wav/a.wav": b"sound"}).read_bytes()
    outer = _zip(tmp_path / "release.zip", {"top/ABA.zip": inner, "top/README": b"words", "__MACOSX/._x": b""})
    folder = open_source(outer, tmp_path / "out")
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        ".unpacked.json", "top/ABA/ABA/wav/a.wav", "top/README",
    ]  # fmt: skip


def test_an_unchanged_zip_is_not_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _zip(tmp_path / "a.zip", {"x": b"1"})
    open_source(archive, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(sources, "unpack", lambda *_: pytest.fail("unpacked again"))
        open_source(archive, tmp_path / "out")
    _zip(archive, {"x": b"22"})
    assert (open_source(archive, tmp_path / "out") / "x").read_bytes() == b"22"


@pytest.mark.parametrize("name", ["../evil.wav", "a/../../evil.wav", "/etc/evil.wav", "C:/evil.wav", "..\\evil.wav"])
def test_a_path_that_climbs_out_unpacks_nothing(tmp_path: Path, name: str) -> None:
    archive = _zip(tmp_path / "a.zip", {"good.wav": b"1", name: b"2"})
    before = open_source(_zip(tmp_path / "b.zip", {"old": b"1"}), tmp_path / "out")
    with pytest.raises(UserError, match="a path out of the folder"):
        open_source(archive, tmp_path / "out")
    assert (before / "old").is_file() and not (tmp_path / "out.part").exists()
    assert not list(tmp_path.rglob("evil*")) and not list(tmp_path.rglob("good*"))


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="'link', a link"):
        open_source(tmp_path / "a.zip", tmp_path / "out")


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("a.wav", b"one")
        archive.writestr("a.wav", b"other")
    with pytest.raises(UserError, match=r"two files 'a.wav'"):
        open_source(tmp_path / "a.zip", tmp_path / "out")


def test_a_folder_called_like_a_zip(tmp_path: Path) -> None:
    folder = open_source(_zip(tmp_path / "a.zip", {"b.zip/x": b"1"}), tmp_path / "out")
    assert (folder / "b.zip" / "x").read_bytes() == b"1"


def test_what_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words", encoding="utf-8")
    with pytest.raises(UserError, match="no such folder or file"):
        open_source(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(UserError, match="neither a folder nor a zip"):
        open_source(tmp_path / "a.txt", tmp_path / "out")
    archive = _zip(tmp_path / "a.zip", {"x": os.urandom(20_000)})
    data = bytearray(archive.read_bytes())
    data[5_000:5_100] = bytes(100)
    archive.write_bytes(data)
    with pytest.raises(UserError, match="a damaged zip"):
        open_source(archive, tmp_path / "out")


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _zip(tmp_path / "a.zip", {"x": bytes(5_000)})
    monkeypatch.setattr(sources.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 4_000}))
    with pytest.raises(UserError, match=r"unpacks to 5,000 bytes, .* has 4,000 free"):
        open_source(archive, tmp_path / "out")
    assert "disk is full" in str(disk_error(tmp_path, OSError(errno.ENOSPC, "No space left on device")))
    assert "Permission" in str(disk_error(tmp_path, PermissionError(errno.EACCES, "Permission denied")))
