"""Settings defined once: a typed dataclass field with its help serves the config file, the command line and the studio.

    @dataclass(frozen=True)
    class Decoding(Options):
        beam: int = option(4, "Hypotheses kept at each step.", low=1, high=64)

`Decoding.from_mapping({...})` validates, `add_flags(parser, Decoding)` adds `--beam`, and `describe(Decoding)` lists the fields
of a form. Unknown keys are refused, naming the nearest known one.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from engine.core.numerals import LARGEST
from engine.errors import OptionError
from engine.messages import Message, mark

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[Any, ...] | None = None,
    low: float | None = None,
    high: float | None = None,
    advanced: bool = False,
) -> Any:
    """A dataclass field with its help text and its range (`low` and `high` inclusive). Raises TypeError for a mutable default."""
    meta = {"help": help, "choices": choices, "low": low, "high": high, "advanced": advanced}
    if isinstance(default, (list, set)):
        raise TypeError("use a tuple as default")
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=meta)
    return dataclasses.field(default=default, metadata=meta)


@dataclass(frozen=True)
class Option:
    """The properties of one setting, for forms, flags and help pages."""

    name: str
    type: type
    optional: bool
    many: bool
    default: Any
    help: str
    choices: tuple[Any, ...] | None
    low: float | None
    high: float | None
    advanced: bool

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def parse(self, value: Any) -> Any:
        """Convert text or JSON values to the field's type and check the range. Raises OptionError."""
        if value is None or (self.optional and isinstance(value, str) and value.strip().lower() in ("", "none")):
            if self.optional:
                return None
            raise OptionError("{name}: a value is required ({help})", name=self.name, help=self.help)
        if self.many:
            if not isinstance(value, (str, list, tuple)):
                raise OptionError("{name}: {value!r} is not a list of values.", name=self.name, value=value)
            items = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else list(value)
            return tuple(self._one(item) for item in items)
        if self.type is dict:
            if not isinstance(value, Mapping):
                raise OptionError("{name}: {value!r} is not a mapping of settings.", name=self.name, value=value)
            return dict(value)
        return self._one(value)

    def _one(self, value: Any) -> Any:
        try:
            if self.type is bool:
                word = str(value).strip().lower()
                if word not in TRUE | FALSE:
                    raise ValueError
                result: Any = word in TRUE
            elif self.type is int:
                number = float(value)
                if number != int(number):
                    raise ValueError
                result = int(number)
            else:
                result = self.type(value)
        except (TypeError, ValueError, OverflowError):
            words = {int: mark("a whole number"), float: mark("a number"), bool: mark("yes or no")}
            kind = Message(words.get(self.type, self.type.__name__))
            raise OptionError("{name}: {value!r} is not {kind}.", name=self.name, value=value, kind=kind) from None
        if self.choices and result not in self.choices:
            raise OptionError(
                "{name}: {result!r} is not one of {choices}.",
                name=self.name, result=result, choices=", ".join(map(str, self.choices)),
            )  # fmt: skip
        if isinstance(result, float) and math.isnan(result):
            raise OptionError("{name}: not a number.", name=self.name)
        if self.high is None and isinstance(result, (int, float)) and abs(result) > LARGEST and result != self.default:
            raise OptionError(
                "{name}: {result} is above the largest allowed value, {high:g}.",
                name=self.name, result=f"{float(result):g}", high=LARGEST,
            )  # fmt: skip
        if self.low is not None and result < self.low:
            raise OptionError(
                "{name}: {result} is below the smallest allowed value, {low:g}.", name=self.name, result=result, low=self.low
            )
        if self.high is not None and result > self.high:
            raise OptionError(
                "{name}: {result} is above the largest allowed value, {high:g}.", name=self.name, result=result, high=self.high
            )
        return result


def describe(cls: type) -> list[Option]:
    """The options of a dataclass in order of definition."""
    return list(_described(cls))


@functools.cache
def _described(cls: type) -> tuple[Option, ...]:
    hints = typing.get_type_hints(cls)
    results = []
    for field in dataclasses.fields(cls):
        kind, optional, many = hints[field.name], False, False
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            inner = [part for part in typing.get_args(kind) if part is not type(None)]
            kind, optional = inner[0], True
        if typing.get_origin(kind) is tuple:
            kind, many = typing.get_args(kind)[0], True
        if typing.get_origin(kind) is Mapping:
            kind = dict
        meta = field.metadata
        results.append(
            Option(
                name=field.name,
                type=kind,
                optional=optional,
                many=many,
                default=field.default if field.default_factory is dataclasses.MISSING else field.default_factory(),
                help=meta.get("help", ""),
                choices=meta.get("choices"),
                low=meta.get("low"),
                high=meta.get("high"),
                advanced=meta.get("advanced", False),
            )
        )
    return tuple(results)


@dataclass(frozen=True)
class Options:
    """Base class of all settings dataclasses: validated on construction, converted from and to plain mappings."""

    def __post_init__(self) -> None:
        for item in describe(type(self)):
            object.__setattr__(self, item.name, item.parse(getattr(self, item.name)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build from a JSON or TOML mapping. Raises OptionError on an unknown key, naming the nearest known one."""
        names = [item.name for item in describe(cls)]
        for key in values:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1)
                hint = (
                    Message(" Did you mean {name}?", name=near[0]) if near else Message(" Known: {names}.", names=", ".join(names))
                )
                raise OptionError("{key} is not a setting of {name}.{hint}", key=key, name=cls.__name__, hint=hint)
        return cls(**values)

    def to_mapping(self) -> dict[str, object]:
        """A plain mapping that JSON can represent; tuples become lists."""
        return {
            item.name: list(value) if isinstance(value := getattr(self, item.name), tuple) else value
            for item in describe(type(self))
        }

    def replace(self, **changes: Any) -> Self:
        """A copy with some settings changed, validated again."""
        return type(self).from_mapping({**self.to_mapping(), **changes})


def add_flags(parser: argparse.ArgumentParser, cls: type, *, only: Sequence[str] = (), skip: Sequence[str] = ()) -> None:
    """Add one flag per setting (of `only`, if given).

    A flag that is not given stays out of the namespace, so that it does not override files and presets.
    """
    title = (cls.__doc__ or cls.__name__).strip().splitlines()[0].rstrip(".")
    groups = {group.title: group for group in parser._action_groups}  # argparse has no public access to them
    group = groups.get(title) or parser.add_argument_group(title)
    for item in describe(cls):
        if item.name in skip or (only and item.name not in only):
            continue
        default = ",".join(map(str, item.default)) if isinstance(item.default, tuple) else item.default
        text = f"{item.help} [{default}]".replace("%", "%%")
        extra: dict[str, Any] = {"metavar": "|".join(map(str, item.choices)) if item.choices else item.type.__name__.upper()}
        if item.type is bool and not item.many:
            extra = {"action": argparse.BooleanOptionalAction}
        group.add_argument(item.flag, dest=item.name, default=argparse.SUPPRESS, help=text, **extra)


def from_flags(cls: type[Any], namespace: argparse.Namespace, base: Mapping[str, Any] | None = None) -> Any:
    """Settings from flags, which override `base` (a preset or file), which overrides the defaults."""
    values = dict(base or {})
    for item in describe(cls):
        if hasattr(namespace, item.name):
            values[item.name] = getattr(namespace, item.name)
    return cls.from_mapping(values)


def named_values(pairs: Sequence[str] | None, what: str) -> dict[str, str]:
    """NAME=VALUE flags as a mapping; `what` is the flag. Raises OptionError for a value without `=`."""
    values: dict[str, str] = {}
    for pair in pairs or ():
        key, mark, value = pair.partition("=")
        if not mark:
            raise OptionError("{what} {pair}: write it as name=value.", what=what, pair=pair)
        values[key.strip().replace("-", "_")] = value.strip()
    return values
