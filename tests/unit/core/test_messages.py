"""Messages: sentences with their template and values, in errors, in JSON and between processes."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.atomic_files import read_json, write_json
from engine.errors import BundleError, InputError, StorageError, TailorError, storage_errors
from engine.jobs.backends.remote_errors import describe_error, raise_remote_error
from engine.messages import Given, Message, mark, pack, unpack, without_paths


def test_a_message_is_its_english_sentence_and_knows_what_stands_in_it() -> None:
    message = Message("The file {name} holds {count:,} sentences.", name=Path("a.txt"), count=1200)
    assert message == "The file a.txt holds 1,200 sentences."
    assert isinstance(message, str)
    assert message.template == "The file {name} holds {count:,} sentences."
    assert message.params == {"name": "a.txt", "count": 1200}
    assert message.code == "the-file-name-holds-count-sentences"


def test_braces_are_braces_where_nothing_is_filled_in() -> None:
    assert Message('Write {"a": 1}.') == 'Write {"a": 1}.'
    assert mark("Reading samples") == "Reading samples"


def test_an_error_has_code_and_params_beside_its_sentence() -> None:
    error = InputError("There is nothing at {path}.", path="/tmp/x")
    assert str(error) == "There is nothing at /tmp/x."
    assert (error.code, dict(error.params)) == ("there-is-nothing-at-path", {"path": "/tmp/x"})
    assert str(TailorError()) == ""


def test_an_error_inside_another_keeps_its_own_template() -> None:
    inner = BundleError("{name} is damaged.", name="a.zip")
    outer = InputError("These do not work together: {error}", error=inner)
    assert str(outer) == "These do not work together: a.zip is damaged."
    assert isinstance(outer.params["error"], Message)
    assert outer.params["error"].template == "{name} is damaged."
    assert InputError(inner.message).message is inner.message


def test_files_are_called_by_their_names_and_not_by_their_paths(tmp_path: Path) -> None:
    inner = InputError("{path}, line 3: no text.", path=tmp_path / "samples" / "my letters.tmx")
    outer = Message(
        "{reason} See {folder}, not {other}: {text}.",
        reason=inner.message, folder=tmp_path / "projects", other="/v2/translate",
        text=f"opens '{tmp_path}/my uploads', then sqlite:///{tmp_path}/t.db.",
    )  # fmt: skip
    message = without_paths(outer)
    assert message == "my letters.tmx, line 3: no text. See projects, not /v2/translate: opens 'my uploads', then t.db.."
    assert isinstance(message, Message)
    assert message.template == outer.template
    assert str(tmp_path) not in json.dumps(message.to_mapping())
    assert without_paths(f"{tmp_path}/a.txt is full.") == "a.txt is full."
    typed = Message(f"There is no file at {tmp_path}/b.txt.")
    assert without_paths(typed) == typed, "a path that a user gave"


DATABASE = "postgresql+psycopg://tailor:***@db.internal:5432/tailor"


@pytest.mark.parametrize(
    "words",
    [
        'connection failed: connection to server at "db.internal" (10.0.0.5), port 5432 failed: Connection refused',
        'connection to server at "10.0.0.5", port 5432 failed: FATAL:  the database system is shutting down',
        'could not translate host name "db.internal" to address: Name or service not known',
        "failed to resolve host 'db.internal': [Errno -2] Name or service not known",
        'FATAL:  no pg_hba.conf entry for host "10.0.0.5", user "tailor", database "tailor"',
        f"server closed the connection unexpectedly ({DATABASE})",
    ],
)
def test_a_database_is_called_by_its_name_and_not_by_its_address(words: str) -> None:
    error = StorageError("The database at {place} cannot be reached: {first_line}.", place=DATABASE, first_line=words)
    for message in (without_paths(error.message), without_paths(str(error))):
        assert message.startswith("The database at tailor cannot be reached: ")
        assert not re.search(r"db\.internal|10\.0\.0\.5|5432|\*\*\*", message), message
    assert "db.internal" not in json.dumps(without_paths(error.message).to_mapping())  # type: ignore[attr-defined]
    assert without_paths("No store at postgresql://db.internal:5432.") == "No store at PostgreSQL."


@given(st.text("a/\\ :'\"n"))
def test_what_names_no_place_on_this_machine_stays(text: str) -> None:
    assert without_paths(text) == text


def test_errors_cross_processes_and_machines_whole() -> None:
    error = BundleError("{name} holds {count:,} weights: {error}", name="a", count=1200, error=InputError("No {x}.", x=1))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(again), again.message.template, again.params) == (str(error), error.message.template, error.params)
    with pytest.raises(BundleError) as caught:
        raise_remote_error(json.loads(json.dumps(describe_error(error, "there"))))
    assert caught.value.message.to_mapping() == error.message.to_mapping()


def test_json_keeps_the_data_of_the_sentences_in_it(tmp_path: Path) -> None:
    message = Message("{file} adds nothing.", file="a.txt")
    values = {"warnings": [message, "plain"], "files": [{"notes": [message]}], "kept": 3}
    write_json(tmp_path / "report.json", values, "the report")
    data = read_json(tmp_path / "report.json")
    assert data == values
    assert data["files"][0]["notes"][0].params == {"file": "a.txt"}
    assert not isinstance(data["warnings"][1], Message)
    assert pack({"kept": 3}) == unpack({"kept": 3}) == {"kept": 3}
    assert unpack({"messages": "of somebody else"}) == {"messages": "of somebody else"}


def test_a_file_can_be_called_otherwise_in_a_message() -> None:
    message = InputError("{path}, line {line}: {error}", path="/tmp/1/a.txt", line=3, error="/tmp/1/a.txt is odd").message
    assert message.naming("/tmp/1/a.txt", "a.txt").params == {"path": "a.txt", "line": 3, "error": "a.txt is odd"}
    assert message.naming("/tmp/1/a.txt", "a.txt") == "a.txt, line 3: a.txt is odd"


def test_the_system_s_errors_say_what_was_written_and_where(tmp_path: Path) -> None:
    with pytest.raises(TailorError) as caught, storage_errors("the plugin", tmp_path):
        raise PermissionError(13, "denied")
    assert str(caught.value).startswith(f"The plugin could not be written to {tmp_path}: no permission.")


def test_a_message_around_another_has_the_code_of_that_one() -> None:
    inner = Message("The file {name} is damaged.", name="a.json")
    around = Message("{path}: {error}", path="a.zip", error=inner)
    assert (str(around), around.code) == ("a.zip: The file a.json is damaged.", inner.code)
    several = Message("{reasons} {reason}", reasons=Message("{reasons} {reason}", reasons=around, reason="x"), reason=inner)
    assert several.code == "the-file-name-is-damaged"
    assert Message("The plugin {name}: {error}", name="a", error=inner).code == "the-plugin-name-error"


def test_a_path_that_the_reader_gave_is_told_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    message = Message("There is no file at {path}.", path=Given(path))
    assert without_paths(message) == f"There is no file at {path}."
    assert without_paths(Message("There is no file at {path}.", path=path)) == "There is no file at a.txt."
    assert message.naming("a.txt", "b.txt").params == {"path": path.replace("a.txt", "b.txt")}
