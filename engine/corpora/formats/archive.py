"""Documents that are zip archives (DOCX, ODT): they are checked before anything is unpacked, to reject zip bombs."""

from __future__ import annotations

import contextlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from engine.errors import CorpusError

# OSError: zipfile raises it when it seeks to an invalid offset from the directory.
DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, OSError, struct.error, ValueError)

MOST_MEMBERS = 10_000
MOST_BYTES = 1 << 30  # unpacked, all members together
HIGHEST_RATIO = 200  # of a member's unpacked to its packed size; text documents have 3 to 30
SMALL = 1 << 20  # bytes; the ratio of smaller members is ignored


def check_archive(path: Path, what: str) -> None:
    """Raise CorpusError if the file is not a readable zip archive or would unpack to too much. Unpacks nothing."""
    with document(path, what):
        pass


@contextlib.contextmanager
def document(path: Path, what: str) -> Iterator[zipfile.ZipFile]:
    """The opened and checked archive of a document; `what` names the format, such as "Word document".

    Raises CorpusError if the archive is damaged, protected by a password, or would unpack to too much.
    """
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE:
        with path.open("rb") as file:
            old = file.read(4) == b"\xd0\xcf\x11\xe0"
        why = "it is protected by a password, or of an older format" if old else "it is damaged, or another kind of file"
        raise CorpusError(
            "{path} is not a readable {what}: {why}. Open it in your editor and save it again.", path=path, what=what, why=why
        ) from None
    with archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise CorpusError(
                "{path} contains {count:,} files, more than a {what} should, and was refused.",
                path=path, count=len(members), what=what,
            )  # fmt: skip
        total = sum(member.file_size for member in members)
        worst = max(
            (member.file_size / max(1, member.compress_size) for member in members if member.file_size > SMALL), default=0.0
        )
        if total > MOST_BYTES or worst > HIGHEST_RATIO:
            raise CorpusError(
                "{path} would unpack to {total:,.0f} MiB, up to {worst:,.0f} times its size; such archives are "
                "refused. Save the text as a plain text file.",
                path=path, total=total / 2 ** 20, worst=worst,
            )  # fmt: skip
        if any(member.flag_bits & 1 for member in members):
            raise CorpusError("{path} is protected by a password. Save it without one.", path=path)
        try:
            yield archive
        except DAMAGE as error:
            raise CorpusError(
                "{path} is damaged ({error}). Open it in your editor and save it again.", path=path, error=error
            ) from None
