"""Requests and responses of the translation operations, described for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from studio.api.schemas.models import Code, Given, JsonObject, Number, Reference, Text


class SystemRequest(Given):
    """The languages, project and plugin to translate with."""

    source: Code | None = Field(None, description="Without, it is the project's, or detected in the text.")
    target: Code | None = Field(None, description="Without, it is the project's.")
    project: Reference | None = Field(None, description="Number or name of a project.")
    plugin: Reference | None = Field(
        None, description="Number or name of a plugin, or `base` for none; without, the project's default."
    )
    strength: Annotated[float, Field(ge=0, le=2)] = Field(1.0, description="0: the base exactly, 1: as trained.")


class TranslateRequest(SystemRequest):
    texts: Annotated[list[Text], Field(min_length=1, max_length=1000)] = Field(examples=[["The rain stopped."]])
    format: Literal["text", "xml", "html"] = Field("text", description="Tags of xml and html are kept, well-formed.")
    decoding: JsonObject = Field({}, description="Settings of decoding, as /options/decoding describes them.")
    terminology: bool = Field(False, description="Enforce the terms of the project.")
    reads: bool = Field(
        False, description="Also tell what each token read from the plugin's memory; of texts longer than the base takes, nothing."
    )
    top: Annotated[int, Field(ge=1, le=50)] = Field(5, description="How many items a token's reading lists.")


class Reading(BaseModel):
    text: str
    flag: str = Field(
        "",
        description="Why to look at it: `repetition` or `length`, followed by `-repaired` where a second search, under "
        "constraints, mended it; empty where nothing is odd.",
    )
    reads: list[JsonObject] | None = None


class Translated(BaseModel):
    translations: list[Reading]
    source: str
    target: str
    base: str
    project: int | None
    plugin: int | None


class AlternativesRequest(SystemRequest):
    text: Annotated[str, Field(min_length=1, max_length=5000)] = Field(description="One sentence.", examples=["The rain stopped."])
    prefix: Annotated[str, Field(max_length=5000)] = Field("", description="How the translations begin, in whole words.")
    count: Annotated[int, Field(ge=1, le=10)] = Field(5, description="How many at most.")


class Word(BaseModel):
    text: str
    probability: float = Field(description="0 to 1, of the tokens that begin it.")


class AlternativesFound(BaseModel):
    sentences: list[str] = Field(description="Whole translations with that beginning, the best first.")
    words: list[Word] = Field(description="Words that could follow the beginning, the likeliest first.")


class ProportionsRequest(Given):
    sentences: Annotated[list[Text], Field(min_length=1, max_length=100)]
    side: Literal["decoder", "encoder"] = Field(
        "decoder", description="decoder: sentences in the target language; encoder: in the source language."
    )
    plugin: Number | None = Field(None, description="A domain_mixing plugin: its own, trained proportions.")


class Proportions(BaseModel):
    domains: list[str]
    sentences: list[JsonObject] = Field(description="Words with their proportions, per layer and in the mean.")
