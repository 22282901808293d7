"""Sentences that the engine says, as data: an English template with named places, and the values that stand in them.

    Message("The file {name} holds {count:,} sentences.", name="a.txt", count=1200)

A message is a string, its English sentence, so whatever prints or stores strings takes it as it is. Whoever speaks another
language translates `template` and fills `params` in; `code` names the sentence for programs. The first argument is always a
literal, so that the templates can be collected from the source as gettext does; `mark` does the same for single words.
A message without params is not formatted: braces in it are braces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MESSAGES = "messages"  # the key under which JSON keeps the data of the sentences in it
CODE_WORDS = 8
PATH = re.compile(
    r"""'[^'\n\\/]*+[\\/][^'\n]*+'|"[^"\n\\/]*+[\\/][^"\n]*+"|(?<![\w/.])(?!//)(?:sqlite:///)?(?:[A-Za-z]:)?[\\/][^\s'"]+"""
)

# Where a database is: its address, and what PostgreSQL's client says of it.
DATABASE = re.compile(r"""postgres(?:ql)?(?:\+\w+)?://[^\s'"]*[^\s'".,;:)]""")
SERVER = re.compile(r""" at "[^"\n]*"(?: \([^()\n]*\))?, port \d+| host(?: name)? (?:"[^"\n]*"|'[^'\n]*')""")


def mark(text: str) -> str:
    """The text as it is: marks it as one that is translated where it is shown."""
    return text


class Given(str):
    """A value that the reader of the message entered, such as a path: it is shown to them unchanged."""

    __slots__ = ()


class Message(str):
    """An English sentence with its `template`, its `params` (plain values or messages) and its `code`."""

    template: str
    params: Mapping[str, Any]
    code: str

    def __new__(cls, template: str, /, **params: Any) -> Message:
        if isinstance(template, Message) and not params:
            return template
        return cls.restore(template.format(**params) if params else template, template, params)

    @classmethod
    def restore(cls, text: str, template: str, params: Mapping[str, Any], code: str = "") -> Message:
        """A message whose sentence is known already."""
        message = super().__new__(cls, text)
        message.template = str(template)
        message.params = {name: _plain(value) for name, value in params.items()}
        message.code = code or _inner_code(message) or code_of(template)
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return Message.restore, (str(self), self.template, dict(self.params), self.code)

    def naming(self, old: str, new: str) -> Message:
        """The same message with `old` replaced by `new` in the sentence and the params: another name for a file."""
        params = {name: _named(value, old, new) for name, value in self.params.items()}
        return Message.restore(self.replace(old, new), self.template, params, self.code)

    def to_mapping(self) -> dict[str, object]:
        """What JSON can hold."""
        params = {name: value.to_mapping() if isinstance(value, Message) else value for name, value in self.params.items()}
        return {"text": str(self), "code": self.code, "template": self.template, "params": params}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Message:
        """Build from what `to_mapping` gave. Raises KeyError, TypeError or AttributeError where it is something else."""
        params = {
            str(name): cls.from_mapping(value) if isinstance(value, Mapping) else value for name, value in values["params"].items()
        }
        return cls.restore(str(values["text"]), str(values["template"]), params, str(values.get("code", "")))


def code_of(template: str) -> str:
    """`The file {name} is empty.` -> `the-file-name-is-empty`: the first eight words."""
    text = re.sub(r"\{(\w++)[^{}]*+\}", r"\1", template.lower())
    return "-".join(re.findall(r"[^\W_]+", text)[:CODE_WORDS])


def _inner_code(message: Message) -> str:
    """The code of the message that a template such as `{path}: {error}`, which has no words of its own, stands around."""
    if re.search(r"[^\W_]", re.sub(r"\{[^{}]*+\}", "", message.template)):
        return ""
    return next((value.code for value in message.params.values() if isinstance(value, Message)), "")


def without_paths(text: str) -> str:
    """A sentence with names of files, folders and databases in the place of their paths and addresses, for readers who are not at
    this machine.

    Of a message only the values are changed, and of these none that is `Given`.
    """
    names: dict[str, str] = {}
    for value in _texts_in(text):
        names |= {path: Path(path).name for path in _paths_in(value)}
        names |= {match[0]: urlsplit(match[0]).path.strip("/") or "PostgreSQL" for match in DATABASE.finditer(value)}
        names |= {match[0]: "" for match in SERVER.finditer(value)}
    for location in sorted(names, key=len, reverse=True):  # a file before its folder
        text = _named(text, location, names[location])
    return text


def _named(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Message):
        return value.naming(old, new)
    return value.replace(old, new) if isinstance(value, str) else value


def _texts_in(value: object) -> Iterator[str]:
    """The texts among the values of a message, or a text itself."""
    if isinstance(value, Message):
        for param in value.params.values():
            yield from _texts_in(param)
    elif isinstance(value, str) and not isinstance(value, Given):
        yield value


def _paths_in(text: str) -> Iterator[str]:
    """The absolute paths in a text, each as it stands there: the whole text, one in quotes, or one without spaces.

    A path is one of this machine, so that `/v2/translate` and `and/or` are none.
    """
    for candidate in (text, *(match[0] for match in PATH.finditer(text))):
        stripped = candidate.strip("'\"").rstrip(".,;:)")
        path = Path(re.sub(r"^sqlite:///", "", stripped))
        single_path = not re.search(r"\n|\s[/\\]", stripped)  # and not a sentence with several of them
        if single_path and path.is_absolute() and path.name and os.path.exists(Path(*path.parts[:2])):
            yield stripped


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; an error as its message."""
    if value is None or isinstance(value, (bool, int, float, Message)):
        return value
    if isinstance(value, str):
        return value if isinstance(value, Given) else str(value)
    if isinstance(value, BaseException):
        message = getattr(value, "message", None)
        return message if isinstance(message, Message) else str(value)
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)  # of numpy and torch


# -- in JSON


def pack(values: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with the data of all messages in it under `messages`, so that `unpack` finds them again in JSON."""
    result = {str(message): message.to_mapping() for message in _messages_in(values)}
    return {**values, MESSAGES: list(result.values())} if result else dict(values)


def unpack(values: Mapping[str, Any]) -> dict[str, Any]:
    """What `pack` was given: the sentences whose data is there are messages again."""
    result = dict(values)
    try:
        messages = {data["text"]: Message.from_mapping(data) for data in result[MESSAGES]}
    except (KeyError, TypeError, AttributeError, ValueError):  # none, or a key of that name that is something else
        return result
    del result[MESSAGES]
    return {name: _restored(value, messages) for name, value in result.items()}


def _messages_in(value: Any) -> Iterator[Message]:
    if isinstance(value, Message):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _messages_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _messages_in(item)


def _restored(value: Any, messages: Mapping[str, Message]) -> Any:
    if isinstance(value, str):
        return messages.get(value, value)
    if isinstance(value, dict):
        return {name: _restored(item, messages) for name, item in value.items()}
    return [_restored(item, messages) for item in value] if isinstance(value, list) else value
