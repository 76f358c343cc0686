"""One self-contained HTML page of an evaluation, section by section: pictures inline, nothing fetched."""

from __future__ import annotations

from markupsafe import Markup

from steps_engine.evaluation.report import Evaluation
from steps_engine.evaluation.section import figure
from tasks.publishing.evaluation_pictures import draw_picture
from tasks.publishing.templates import template

WARNING = (
    "CONFIDENTIAL: computed from confidential records without paying any privacy budget. Showing this page, or a decision "
    "based on it, breaks the release's guarantee. It must stay inside."
)


def render_incomparable(title: str, why: str) -> str:
    """In place of an evaluation, where there is nothing to compare. As confidential."""
    return template("incomparable.html").render(title=title, why=why, warning=WARNING)


def render_evaluation(evaluation: Evaluation, title: str, confidential: bool, of: str = "original records") -> str:
    """The page; when confidential, its first line says so. `of` is what rows of the original are."""
    sections = evaluation.sections()
    # Our own drawings, their labels escaped.
    pictures = [Markup(draw_picture(section.picture)) if section.picture else None for section in sections]
    return template("evaluation.html", figure=figure).render(
        rows=evaluation.rows,
        sections=list(zip(sections, pictures, strict=True)),
        of=of,
        title=title,
        warning=WARNING if confidential else None,
    )
