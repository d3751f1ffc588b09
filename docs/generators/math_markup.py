"""Mathematics as MathML, which browsers draw themselves: a page loads no script and no font for it."""

from typing import Any

from docutils.utils.math.latex2mathml import tex2mathml

RENDERER = "mathml"


def inline_math(translator: Any, node: Any) -> None:
    """Write a formula of a sentence."""
    from docutils import nodes

    translator.body.append(f'<span class="formula">{tex2mathml(node.astext(), as_block=False)}</span>')
    raise nodes.SkipNode


def display_math(translator: Any, node: Any) -> None:
    """Write a formula in a paragraph of its own."""
    from docutils import nodes

    translator.body.append(f'<div class="displayed-formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer(RENDERER, (inline_math, None), (display_math, None))
