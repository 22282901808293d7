"""A comparison as a translation memory, TMX 1.4b, for translation tools."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import engine
from engine.core.flagged import FLAGS
from engine.decoding.guard import noticed
from engine.workflows.compare.export.content import Content, printable


def as_tmx(content: Content) -> Iterator[str]:
    """A translation memory: sources and the first plugin's translations (the base's if there is no plugin).

    Sentences without a translation are left out. The property `x-system` of each unit names the system.
    """
    created = content.created.strftime("%Y%m%dT%H%M%SZ")
    system = content.label(content.chosen)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield (
        f'  <header creationtool="Tailor MT" creationtoolversion={attribute(engine.__version__)} segtype="sentence" '
        f'o-tmf="Tailor MT" adminlang="en" srclang={attribute(content.source)} datatype="plaintext" '
        f'creationdate="{created}">\n    <note>{text(content.title)}</note>\n  </header>\n  <body>\n'
    )
    for line in content.lines():
        translation = line.texts[content.chosen]
        if not translation:
            continue
        why = FLAGS.get(noticed(line.source, translation), "")
        check = f'      <prop type="x-check">{text(why)}</prop>\n' if why else ""
        yield (
            f'    <tu tuid="{line.place + 1}">\n      <prop type="x-system">{text(system)}</prop>\n{check}'
            f"      <tuv xml:lang={attribute(content.source)}><seg>{text(line.source)}</seg></tuv>\n"
            f"      <tuv xml:lang={attribute(content.target)}><seg>{text(translation)}</seg></tuv>\n    </tu>\n"
        )
    yield "  </body>\n</tmx>\n"


def text(value: str) -> str:
    return escape(printable(value))


def attribute(value: str) -> str:
    return quoteattr(" ".join(printable(value).split()))
