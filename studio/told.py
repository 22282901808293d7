"""Sentences that the engine made, with numbers and names in them, said in the reader's language.

The engine knows of no interface and writes English. What it writes of a job, an import or a bundle is kept as it was written;
where it has one of the forms below it is said in the reader's language, and where not it stays as it is.
"""

from __future__ import annotations

import re
from functools import cache

from studio.i18n import language, mark, tr

__all__ = ["ABOUT", "told"]

FORMS = (
    mark("leave out {count} phrase"),
    mark("leave out {count} phrases"),
    mark("take back {count} phrase"),
    mark("take back {count} phrases"),
    mark("exclude {count} sentence"),
    mark("exclude {count} sentences"),
    mark("keep {count} sentence"),
    mark("keep {count} sentences"),
    mark("reset {count} sentence"),
    mark("reset {count} sentences"),
    mark("{done} of {all} sentences"),
    mark("Of more than {count} sentences, TER and approximate randomisation are left to `tailormt evaluate`."),
    mark("Near-duplicates were looked for in the first {count} sentences."),
    mark("Languages were told from {count} sentences, spread over all."),
    mark("Only {share} of the sentences looks like {language}; most of it looks like {other}; check the samples."),
    mark("Only {share} of the sentences looks like {language}; check the samples."),
    mark("The language of the sentences could not be checked: {language} is not among those that can be told."),
    mark(
        "Of {all} usable sentences {count} are used, taken evenly from all files; set max_sentences higher to use more."
    ),
    mark("{file} adds nothing: all its sentences are in the other files already."),
    mark("{file} adds nothing: all its sentences are excluded by you."),
    mark("{file} is wrapped at a fixed width; its lines were joined to paragraphs."),
    mark("{file}: {count} of {all} pages hold no text; they may be pictures."),
    mark("A table of {count} columns was read as pairs: column {source} as the source of column {target}."),
    mark("{count} files, all of kinds that a plugin has, none too large."),
    mark("Format {format}, made by Tailor MT {version} on {day}."),
    mark("All {count} files are, to the byte, what the manifest says."),
    mark("From {source} to {target}, as this project."),
    mark("Made for {base} ({mark}), the base of this project."),
    mark("{method}, {count} weights of its own."),
    mark("Phrases are the {units} found by {parser}."),
    mark("Training stops after {count} min at the latest."),
    mark("Nothing was looked up for this word: the base was sure enough of it."),
    mark("At strength 0 this is the base alone."),
    mark("Measured on the {count} of {all} sentences that have a reference."),
    mark("An account needs a name of up to {count} characters."),
    mark("There is an account {name} already. Take another name."),
    mark("There is no account {name}. `tailormt user list` shows them."),
    mark("A password has at least {count} characters. A few words make a good one."),
    mark("A password has at most {count} characters."),
    mark("This is the last admin. Make another account an admin first."),
    mark("A token needs a name, so that you know later which one to revoke."),
)
# Values that are words of the engine too, not names.
WORDS = ("language", "other", "method", "units")
UNITS = (
    mark("constituents"),
    mark("contiguous dependency subtrees"),
)
# What the map of phrases says of itself, in the browser.
ABOUT = (
    mark("Vectors are what the memory of the last run holds of each phrase's source."),
    mark("Vectors are the frozen base's, of its encoder, which reads this language too."),
    mark("Vectors are the frozen base's, of its decoder's last layer."),
)


def told(text: str) -> str:
    """The sentence in the reader's language where it has a known form; else as it is."""
    if language() == "en" or not text:
        return text
    known = tr(text)
    if known != text:
        return known
    for form, pattern in _patterns():
        if found := pattern.fullmatch(text):
            return tr(
                form, **{name: tr(value) if name in WORDS else value for name, value in found.groupdict().items()}
            )
    return text


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    def pattern(form: str) -> re.Pattern[str]:
        body = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(form))
        return re.compile(body)

    return tuple((form, pattern(form)) for form in FORMS)
