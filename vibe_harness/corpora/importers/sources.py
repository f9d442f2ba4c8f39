"""Opening the source of a corpus: a folder, or a zip that is unpacked once, safely."""

from __future__ import annotations

import errno
import json
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from vibe_harness.errors import StorageError, UserError, write_failed

_STAMP = ".unpacked.json"


def open_source(source: Path, unpacked: Path) -> Path:
    """Return the folder that holds the corpus: `source` itself or, for a zip, `unpacked`, where it is unpacked.

    Zips inside the zip are unpacked too, each into a folder with its name. A zip that has not changed since is not
    unpacked again. Raises UserError if the source is neither, or if the zip is damaged or holds paths outside of its
    folder.
    """
    if source.is_dir():
        return source
    if not source.exists():
        raise UserError(f"--source {source}: no such folder or file")
    if not zipfile.is_zipfile(source):
        raise UserError(f"--source {source}: neither a folder nor a zip file")
    status = source.stat()
    stamp = {"zip": str(source.resolve()), "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    if (unpacked / _STAMP).is_file() and json.loads((unpacked / _STAMP).read_text(encoding="utf-8")) == stamp:
        return unpacked
    aside = unpacked.with_name(unpacked.name + ".part")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        unpack(source, aside)
        (aside / _STAMP).write_text(json.dumps(stamp), encoding="utf-8")
        shutil.rmtree(unpacked, ignore_errors=True)
        aside.replace(unpacked)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return unpacked


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip and the zips inside it. Nothing is written unless every path stays inside the folder.

    Raises UserError for a damaged or encrypted zip, a path out of the folder, a repeated name, a link, and too little
    disk space.
    """
    folder.mkdir(parents=True)
    try:
        with zipfile.ZipFile(archive) as file:
            members = [member for member in file.infolist() if not member.filename.startswith("__MACOSX/")]
            _check_members(archive, members, folder)
            file.extractall(folder, members)
    except (zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{archive}: a damaged zip ({error}): download it again") from None
    except (
        RuntimeError,
        NotImplementedError,
    ) as error:  # a password, or an unknown compression method
        raise UserError(f"{archive}: cannot be unpacked: {error}") from None
    except OSError as error:
        raise disk_error(folder, error) from None
    for inner in sorted(path for path in folder.rglob("*.zip") if path.is_file()):
        unpack(inner, inner.with_suffix(".zip.part"))
        inner.unlink()
        _merge(inner.with_suffix(".zip.part"), inner.with_suffix(""))


def disk_error(path: Path, error: OSError) -> UserError:
    """The message for a failed read or write, such as a full disk. path: used if the error names no file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageError(f"{path}: the disk is full: make room and run the same command again; nothing was replaced")
    where = error.filename if isinstance(error.filename, str) else path
    return write_failed(f"{where}: cannot be used", error)


def _merge(source: Path, target: Path) -> None:
    if not target.exists():
        source.replace(target)
        return
    for entry in source.iterdir():
        entry.replace(target / entry.name)
    source.rmdir()


def _check_members(archive: Path, members: Sequence[zipfile.ZipInfo], folder: Path) -> None:
    for member in members:
        _check_member(archive, member)
    names = Counter(member.filename for member in members if not member.is_dir())
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise UserError(f"{archive}: holds two files '{twice[0]}': remove one of them")
    needed, free = sum(member.file_size for member in members), shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(f"{archive}: unpacks to {needed:,} bytes, and {folder} has {free:,} free: make room")


def _check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    name = member.filename
    parts = PurePosixPath(name).parts
    if name.startswith("/") or "\\" in name or ".." in parts or ":" in (parts[0] if parts else ""):
        raise UserError(f"{archive}: holds '{name}', a path out of the folder: nothing was unpacked")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise UserError(f"{archive}: holds '{name}', a link: nothing was unpacked")
