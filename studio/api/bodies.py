"""What goes in and out of the operations that translate, described for the OpenAPI."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from studio.api.models import Code, Given, Number, Reference, Text

__all__ = [
    "Comparison",
    "ComparisonMade",
    "ComparisonRows",
    "ComparisonWish",
    "Line",
    "Lines",
    "Proportions",
    "ProportionsWish",
    "Reading",
    "System",
    "TranslateWish",
    "Translated",
]


class TranslateWish(Given):
    texts: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(examples=[["The rain stopped."]])
    source: Code | None = Field(None, description="Without, it is the project's, or told from the text.")
    target: Code | None = Field(None, description="Without, it is the project's.")
    project: Reference | None = Field(None, description="Number or name of a project.")
    plugin: Reference | None = Field(
        None, description="Number or name of a plugin, or `base` for none; without, the project's default."
    )
    strength: Annotated[float, Field(ge=0, le=2)] = Field(1.0, description="0: the base exactly, 1: as trained.")
    format: Literal["text", "xml", "html"] = Field("text", description="Tags of xml and html are kept, well-formed.")
    decoding: dict[str, Any] = Field({}, description="Settings of decoding, as /options/decoding describes them.")
    reads: bool = Field(False, description="Also tell what each token read from the plugin's memory.")
    top: Annotated[int, Field(ge=1, le=50)] = Field(5, description="How many items a token's reading lists.")


class Reading(BaseModel):
    text: str
    reads: list[dict[str, Any]] | None = None


class Translated(BaseModel):
    translations: list[Reading]
    source: str
    target: str
    base: str
    project: int | None
    plugin: int | None


class ComparisonWish(Given):
    texts: Annotated[list[Text], Field(min_length=1, max_length=500)]
    title: Annotated[str, StringConstraints(max_length=120)] = ""
    plugin: Reference | None = Field(None, description="Number or name; without, the project's default.")
    strength: Annotated[float, Field(ge=0, le=2)] = 1.0


class Comparison(BaseModel):
    id: int
    project: int
    title: str
    sentences: int
    created: datetime.datetime


class ComparisonRows(Comparison):
    rows: list[dict[str, Any]] = Field(description="Each with source, vanilla and customized.")


class ComparisonMade(ComparisonRows):
    changed: int = Field(description="Sentences whose two translations differ.")


class System(BaseModel):
    """The base alone, which comes first, or a plugin at a strength."""

    name: str
    plugin_id: int | None
    method: str
    strength: float


class Line(BaseModel):
    place: int = Field(description="From 0.")
    source: str
    reference: str | None
    texts: list[str | None] = Field(description="One a system; null where it is not made yet.")
    scores: list[float | None] = Field(description="0 to 100, of sentences with a reference.")
    difference: float | None = Field(description="From the base alone, of the plugin that differs most, 0 to 1.")
    change: float | None = Field(description="Of the score, the largest.")


class Lines(BaseModel):
    """A part of a comparison's sentences."""

    systems: list[System]
    figures: dict[str, Any]
    items: list[Line]
    total: int
    offset: int


class ProportionsWish(Given):
    sentences: Annotated[list[Text], Field(min_length=1, max_length=100)]
    side: Literal["decoder", "encoder"] = Field(
        "decoder", description="decoder: sentences in the target language; encoder: in the source language."
    )
    plugin: Number | None = Field(None, description="A domain_mixing plugin: its own, trained proportions.")


class Proportions(BaseModel):
    domains: list[str]
    sentences: list[dict[str, Any]] = Field(description="Words with their proportions, per layer and in the mean.")
