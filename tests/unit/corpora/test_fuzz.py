"""Inputs that nobody meant: some two thousand of them, over everything that reads what a stranger may have written.

`bench/fuzz.py` tries millions of the same kind; what it found is in tests/fuzzing/found, or below where it is made of more.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.core.atomic_files import read_json
from engine.core.step_cache import StepCache
from engine.corpora import Decisions
from engine.corpora.formats.documents.formats import open_document
from engine.corpora.formats.documents.model import Context
from engine.corpora.formats.documents.placeholders import KINDS, find_placeholders, find_tags
from engine.errors import BundleError, CorpusError
from engine.memory.phrase_pairs import load_pairs
from engine.phrases.exclusions import Exclusions
from engine.plugins.library import needs_texts
from tests import fuzzing
from tests.documents import docx
from tests.fuzzing.guard import Guard, Hang, Trespass
from tests.fuzzing.mutate import mutate
from tests.fuzzing.targets import TARGETS, Target, emptied, outcome, warm

EACH = 55  # inputs a target; 2,000 in all
FEWER = {"plugin": 20, "backup": 20, "rest": 60}  # others


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    folder = tmp_path_factory.mktemp("canary")
    (folder / "canary").touch()
    warm()
    return Guard(folder / "canary", (tmp_path_factory.getbasetemp(), Path(tempfile.gettempdir())))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TARGETS))
def test_no_input_makes_a_reader_crash_hang_or_leave_its_folder(name: str, guard: Guard, tmp_path: Path) -> None:
    target: Target = TARGETS[name]
    good = list(target.seeds)
    for data in good:
        outcome(target, data, emptied(tmp_path / "work"))  # what is loaded once has no clock

    @settings(max_examples=FEWER.get(name, EACH), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**63), st.sampled_from(range(len(good))))
    def tried(seed: int, which: int) -> None:
        data = mutate(good[which], random.Random(seed), target.kind, good)
        work = emptied(tmp_path / "work")
        with guard(work):
            outcome(target, data, work)

    tried()


def test_there_are_two_thousand_inputs() -> None:
    assert sum(FEWER.get(name, EACH) for name in TARGETS) >= 2000


# -- the guard itself


def test_the_guard_sees_what_no_reader_may_do(guard: Guard, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", Path("/proc/never.txt")
    inside.mkdir()
    with guard(inside):
        (inside / "a").write_text("x", encoding="utf-8")
        Path(__file__).read_bytes()
    with pytest.raises(Trespass, match=r"never\.txt"), guard(inside), contextlib.suppress(OSError):
        os.open(outside / "x", os.O_WRONLY)  # is no folder: opens nothing, and is heard all the same
    with pytest.raises(Trespass, match="canary"), guard(inside):
        Path(guard.canary).read_bytes()
    with pytest.raises(Trespass, match="mkdir"), guard(inside), contextlib.suppress(OSError):
        os.mkdir("/proc/never")

    def endless() -> None:
        with guard(inside, seconds=0.2):
            while True:
                pass

    with pytest.raises(Hang):
        endless()


# -- what was found

FOUND = sorted(Path(fuzzing.__file__).with_name("found").glob("*/*.bin"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_an_input_that_was_once_too_much_is_read_or_refused(file: Path, guard: Guard, tmp_path: Path) -> None:
    """`found/TARGET/read-WHAT.bin` or `refused-WHAT.bin`; `bench/fuzz.py --replay` takes them too."""
    target, work = TARGETS[file.parent.name], emptied(tmp_path / "work")
    outcome(target, target.seeds[0], work)  # what is loaded once has no clock
    with guard(emptied(work)):
        words = outcome(target, file.read_bytes(), work)
    assert ("Error" in words.split(" ")[0]) == file.name.startswith("refused-"), words


@pytest.mark.parametrize("data", [b"\xff\xfe\xfa", b'"words"', b"[1]", b"0", b"[" * 100_000, b'{"samples": 3}', b"null\n"])
def test_files_of_a_workspace_that_hold_something_else_hold_nothing(data: bytes, tmp_path: Path) -> None:
    for name in ("steps.json", "decisions.jsonl", "excluded_phrases.jsonl", "pairs.jsonl"):
        (tmp_path / name).write_bytes(data)
    assert StepCache(tmp_path).get("samples") == ""
    assert not Decisions.load(tmp_path)
    assert not Exclusions.load(tmp_path)
    assert not read_json(tmp_path / "steps.json").get("phrases")
    with pytest.raises(CorpusError, match=r"pairs\.jsonl, line 1: not a phrase pair"):
        load_pairs(tmp_path / "pairs.jsonl")
    assert json.dumps(StepCache(tmp_path).values) == "{}"


def test_fields_that_never_end_are_read_at_once(guard: Guard, tmp_path: Path) -> None:
    begins = "".join(  # each another, or they are packed like no real document
        f'<w:r w:rsidR="{number * 2654435761 % 2**32:08X}"><w:fldChar w:fldCharType="begin"/></w:r>' for number in range(40_000)
    )
    file = docx(f"<w:p>{begins}<w:r><w:t>The rain stopped.</w:t></w:r></w:p>", tmp_path / "a.docx")
    with guard(tmp_path):
        document = open_document(file, Context("a.docx", "en", "de"))
    assert [unit.text for unit in document.units] == ["The rain stopped."]


def test_a_damaged_part_of_a_blend_is_a_damaged_bundle(tmp_path: Path) -> None:
    blend = TARGETS["bundle"].seeds[1]
    with zipfile.ZipFile(io.BytesIO(blend)) as old, zipfile.ZipFile(tmp_path / "a.zip", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[:-400] if name == "part-1.zip" else old.read(name))
    with pytest.raises(BundleError, match=r"part-1\.zip is damaged"):
        needs_texts(tmp_path / "a.zip")


@pytest.mark.parametrize(
    "piece",
    ["雨", "{{", "{%", "<%", "%0", "0", "{a,plural,", "{a,plural,}", "a@", "www.,", "%(a)0", "<a b=", "${", "{a.", "http://!"],
)
def test_the_same_over_and_over_is_looked_through_at_once(piece: str, guard: Guard, tmp_path: Path) -> None:
    text = "The rain %" + piece * (120_000 // len(piece))
    with guard(tmp_path):
        find_placeholders(text, list(KINDS))
        find_tags(text)
