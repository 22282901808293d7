"""Small documents in the formats that samples come in, written as the programs that make them write them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = "urn:oasis:names:tc:opendocument:xmlns"


def tmx(pairs: Sequence[tuple[str, str]], source: str = "en-US", target: str = "zh-CN", *, raw: bool = False) -> str:
    """TMX 1.4b; texts are escaped unless `raw`."""
    keep = (lambda text: text) if raw else escape
    units = "".join(
        f'    <tu tuid="{i}">\n      <note>a note</note>\n      <tuv xml:lang={quoteattr(source)}><seg>{keep(left)}</seg></tuv>\n'
        f"      <tuv xml:lang={quoteattr(target)}><seg>{keep(right)}</seg></tuv>\n    </tu>\n"
        for i, (left, right) in enumerate(pairs)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
        f'  <header creationtool="x" srclang={quoteattr(source)} segtype="sentence" o-tmf="x" adminlang="en" datatype="xml">'
        '<prop type="domain">header</prop></header>\n  <body>\n' + units + "  </body>\n</tmx>\n"
    )


def xliff1(units: Sequence[str], source: str = "en", target: str = "zh-CN") -> str:
    """XLIFF 1.2 around units that are XML already."""
    into = f" target-language={quoteattr(target)}" if target else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'<file original="a.docx" source-language={quoteattr(source)}{into} datatype="plaintext"><header/><body>\n'
        + "\n".join(units)
        + "\n</body></file></xliff>\n"
    )


def xliff2(units: Sequence[str], source: str = "en", target: str = "zh-CN") -> str:
    """XLIFF 2.0 around units that are XML already."""
    return (
        '<?xml version="1.0"?>\n<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" '
        f'xmlns:mtc="urn:oasis:names:tc:xliff:matches:2.0" srcLang={quoteattr(source)} trgLang={quoteattr(target)}>\n'
        '<file id="f1">\n' + "\n".join(units) + "\n</file></xliff>\n"
    )


def docx(body: str, path: Path, **parts: str) -> Path:
    """A Word document; `parts` are further XML files by name without ending, as footnotes."""
    head = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:{{}} xmlns:w="{W}" xmlns:mc="{MC}">'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", head.format("document") + f"<w:body>{body}</w:body></w:document>")
        for name, text in parts.items():
            archive.writestr(f"word/{name}.xml", head.format(name) + f"{text}</w:{name}>")
    return path


XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'


def links(*targets: tuple[str, str]) -> str:
    """The relationships of a part of an Office package: kinds and targets, numbered r1, r2, …"""
    rows = "".join(
        f'<Relationship Id="r{number}" Type="{R}/{kind}" Target={quoteattr(target)}/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'{XML}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def package(path: Path, main: str, parts: Mapping[str, str | bytes]) -> Path:
    """A package of Office around its parts; `main` is the one that it is about."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("_rels/.rels", links(("officeDocument", main)))
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def slide(shapes: str, root: str = "sld") -> str:
    """A slide, or another part of a presentation, around its shapes."""
    return f'{XML}<p:{root} xmlns:a="{A}" xmlns:r="{R}" xmlns:p="{P}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{root}>'


def shape(*paragraphs: str, placeholder: str = "") -> str:
    """A shape of a slide with paragraphs that are XML already."""
    mark = f'<p:ph type="{placeholder}"/>' if placeholder else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="Box"/><p:cNvSpPr/><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:spPr/><p:txBody>'
        f"<a:bodyPr/><a:lstStyle/>{''.join(f'<a:p>{paragraph}</a:p>' for paragraph in paragraphs)}</p:txBody></p:sp>"
    )


def drawn_run(text: str, properties: str = '<a:rPr lang="en-US" dirty="0"/>') -> str:
    """A run of DrawingML."""
    return f"<a:r>{properties}<a:t>{escape(text)}</a:t></a:r>"


def pptx(slides: Sequence[str], path: Path, parts: Mapping[str, str | bytes] | None = None, *, order: Sequence[int] = ()) -> Path:
    """A presentation of slides that are XML of shapes; `order` is the numbers of the slides as they are shown."""
    ordered = order or range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + number}" r:id="r{number}"/>' for number in ordered)
    sections = '<p:extLst><p:ext uri="x"><s:sldIdLst xmlns:s="s"><s:sldId id="256"/></s:sldIdLst></p:ext></p:extLst>'
    numbers = range(1, len(slides) + 1)
    return package(
        path,
        "ppt/presentation.xml",
        {
            "ppt/presentation.xml": f'{XML}<p:presentation xmlns:a="{A}" xmlns:r="{R}" xmlns:p="{P}"><p:sldIdLst>{ids}</p:sldIdLst>'
            f"{sections}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": links(*(("slide", f"slides/slide{number}.xml") for number in numbers)),
            **{f"ppt/slides/slide{number}.xml": slide(shapes) for number, shapes in enumerate(slides, 1)},
            **(parts or {}),
        },
    )


def xlsx(
    sheets: Mapping[str, str],
    path: Path,
    shared: Sequence[str] | None = None,
    parts: Mapping[str, str | bytes] | None = None,
    *,
    more: Sequence[tuple[str, str]] = (),
    names: str = "",
) -> Path:
    """A workbook of sheets whose rows are XML already; `shared` are the contents of si elements, `more` further relationships
    of the workbook, `names` what follows its sheets.
    """
    count = len(sheets)
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="r{number}"/>' for number, name in enumerate(sheets, 1)
    )
    targets = [("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, count + 1)]
    texts = {} if shared is None else {"xl/sharedStrings.xml": f'{XML}<sst xmlns="{S}">{si(*shared)}</sst>'}
    return package(
        path,
        "xl/workbook.xml",
        {
            "xl/workbook.xml": f'{XML}<workbook xmlns="{S}" xmlns:r="{R}"><sheets>{listed}</sheets>{names}</workbook>',
            "xl/_rels/workbook.xml.rels": links(*targets, *([("sharedStrings", "sharedStrings.xml")] if texts else []), *more),
            **texts,
            **{
                f"xl/worksheets/sheet{number}.xml": f'{XML}<worksheet xmlns="{S}"><sheetData>{rows}</sheetData></worksheet>'
                for number, rows in enumerate(sheets.values(), 1)
            },
            **(parts or {}),
        },
    )


def si(*texts: str) -> str:
    """Shared texts: what is no XML is a plain one."""
    return "".join(f"<si>{text if text.startswith('<') else f'<t>{escape(text)}</t>'}</si>" for text in texts)


def word_paragraph(*runs: str, style: str = "") -> str:
    """A paragraph of plain runs."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/><w:tabs><w:tab w:val="left" w:pos="1"/></w:tabs></w:pPr>' if style else ""
    return (
        "<w:p>"
        + properties
        + "".join(f'<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">{escape(run)}</w:t></w:r>' for run in runs)
        + "</w:p>"
    )


def odt(body: str, path: Path) -> Path:
    """An OpenDocument text."""
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document-content xmlns:office="{ODF}:office:1.0" '
        f'xmlns:text="{ODF}:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:draw="{ODF}:drawing:1.0" '
        f'xmlns:svg="{ODF}:svg-compatible:1.0"><office:body><office:text>{body}</office:text></office:body>'
        "</office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    return path


def pdf(pages: Sequence[Sequence[str]], path: Path) -> Path:
    """A PDF of Latin text, one string a line, with a text layer as word processors write it."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        content = "".join("(" + line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") + ") Tj T*\n" for line in lines)
        stream = f"BT /F1 11 Tf 14 TL 72 720 Td\n{content}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream")
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % len(objects)
        )
        kids.append(len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    out = io.BytesIO(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n" % number + body + b"\nendobj\n")
    start = out.tell()
    table = b"".join(b"%010d 00000 n \n" % position for position in places)
    size = len(objects) + 1
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % size + table)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start))
    path.write_bytes(out.getvalue())
    return path
