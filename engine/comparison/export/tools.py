"""Files for translation tools: TMX 1.4b and XLIFF 1.2. The translation is the first plugin's; what the others wrote goes
along where the format has a place for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import engine
from engine.comparison.export.content import Content, printable

__all__ = ["as_tmx", "as_xliff"]

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def as_tmx(content: Content) -> Iterator[str]:
    """A translation memory: sources and the first plugin's translations (the base's where there is no plugin).

    Sentences without a translation are left out. Who wrote it stands in each unit's property `x-system`.
    """
    created = content.created.strftime("%Y%m%dT%H%M%SZ")
    system = content.label(content.chosen)
    yield HEAD + '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
    yield (
        f'  <header creationtool="Tailor MT" creationtoolversion={attribute(engine.__version__)} segtype="sentence" '
        f'o-tmf="Tailor MT" adminlang="en" srclang={attribute(content.source)} datatype="plaintext" '
        f'creationdate="{created}">\n    <note>{text(content.title)}</note>\n  </header>\n  <body>\n'
    )
    for line in content.lines():
        translation = line.texts[content.chosen]
        if not translation:
            continue
        yield (
            f'    <tu tuid="{line.place + 1}">\n      <prop type="x-system">{text(system)}</prop>\n'
            f"      <tuv xml:lang={attribute(content.source)}><seg>{text(line.source)}</seg></tuv>\n"
            f"      <tuv xml:lang={attribute(content.target)}><seg>{text(translation)}</seg></tuv>\n    </tu>\n"
        )
    yield "  </body>\n</tmx>\n"


def as_xliff(content: Content) -> Iterator[str]:
    """Every sentence as a unit to be reviewed; the other systems' translations and the reference are its `alt-trans`."""
    tools = {i: f"system-{i}" for i in range(len(content.systems))}
    yield HEAD + '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    yield (
        f"  <file original={attribute(content.title)} source-language={attribute(content.source)} "
        f'target-language={attribute(content.target)} datatype="plaintext" tool-id="{tools[content.chosen]}">\n    <header>\n'
    )
    for i, tool in tools.items():
        yield f'      <tool tool-id="{tool}" tool-name={attribute(content.label(i))} tool-company="Tailor MT"/>\n'
    yield "    </header>\n    <body>\n"
    for line in content.lines():
        translation = line.texts[content.chosen]
        yield f'      <trans-unit id="{line.place + 1}" xml:space="preserve">\n        <source>{text(line.source)}</source>\n'
        if translation is not None:
            yield f'        <target state="needs-review-translation">{text(translation)}</target>\n'
        for i, other in enumerate(line.texts):
            if i != content.chosen and other is not None:
                yield f'        <alt-trans tool-id="{tools[i]}"><target>{text(other)}</target></alt-trans>\n'
        if line.reference:
            yield f'        <alt-trans origin="reference"><target>{text(line.reference)}</target></alt-trans>\n'
        yield "      </trans-unit>\n"
    yield "    </body>\n  </file>\n</xliff>\n"


def text(value: str) -> str:
    return escape(printable(value))


def attribute(value: str) -> str:
    return quoteattr(" ".join(printable(value).split()))
