"""Formulas become MathML when the site is built, so that a reader loads no script for them.

Their font is cut to the characters that occur, from the copy of STIX Two Math that ziamath brings.
"""

from __future__ import annotations

import re
from html import unescape
from importlib.metadata import files
from io import BytesIO
from pathlib import Path
from typing import Any

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
STRUCK = re.compile(r'<mi mathvariant="double-struck">(\w)</mi>')
RELATION = re.compile("<mi>([∼⪯⪰≺≻≪])</mi>")
TIGHT = re.compile(r'<mo( stretchy="false")?>([/|])</mo>')
SIGN = re.compile("([(,=[]</mo>)<mo>−</mo>")
ROLE = re.compile(":(?:func|meth|mod|class|attr):<code>")

characters: set[str] = set()


def _mathml(latex: str, display: str) -> str:
    """MathML as browsers read it: operators spaced as such, plain struck letters."""
    raw = convert(unescape(latex).strip(), display=display)
    formula = "&lt;".join(unescape(part) for part in raw.split("&#x0003C;"))
    if "\\" in formula or "&" in formula.replace("&lt;", ""):
        raise ValueError(f"A formula is not understood: {latex}")
    formula = STRUCK.sub(lambda m: f"<mi>{ {'R': 'ℝ', 'E': '𝔼'}[m[1]] }</mi>", formula)
    formula = RELATION.sub(r"<mo>\1</mo>", formula.replace("<mi>~</mi>", "<mi>∼</mi>"))
    formula = formula.replace("<mo>∞</mo>", "<mi>∞</mi>")
    formula = TIGHT.sub(r'<mo lspace="0" rspace="0"\1>\2</mo>', formula)
    formula = SIGN.sub(r'\1<mo form="prefix">−</mo>', formula)
    characters.update(unescape(re.sub("<[^>]*>", "", formula)))
    return formula


def on_page_content(content: str, **_: Any) -> str:
    """Formulas, and roles of docstrings without their names; called by MkDocs for every page."""
    content = ROLE.sub("<code>", content)
    content = INLINE.sub(lambda m: _mathml(m[1], "inline"), content)
    return BLOCK.sub(lambda m: f'<div class="formula">{_mathml(m[1], "block")}</div>', content)


def on_post_build(config: Any, **_: Any) -> None:
    """Write the font; called by MkDocs at the end."""
    [source] = [file for file in files("ziamath") or () if file.name == "STIXTwoMath-Regular.ttf"]
    font = TTFont(BytesIO(source.read_binary()))
    subsetter = Subsetter(Options(layout_features=["*"], notdef_outline=True))
    # Letters of a single-letter <mi> are drawn with their italic twins.
    italic = {chr(0x1D434 + i) for i in range(52)} | {chr(0x1D6E2 + i) for i in range(58)}
    subsetter.populate(text="".join(characters | italic | set("ℎ√")))
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(Path(config["site_dir"]) / "assets" / "math.woff2")
