"""One self-contained HTML page of an evaluation: pictures inline, nothing fetched."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from steps_engine.evaluation.association import CLASSES
from steps_engine.evaluation.report import Evaluation
from tasks.publishing.evaluation_pictures import interval_forest, margin_scatter, p_value_classes, score_distributions

WARNING = (
    "CONFIDENTIAL: computed from confidential records without paying any privacy budget. Showing this page, or a decision "
    "based on it, breaks the release's guarantee. It must stay inside."
)


def render_evaluation(evaluation: Evaluation, title: str, confidential: bool) -> str:
    """The page; when confidential, its first line says so."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["figure"] = _figure
    template = environment.from_string(files(__package__).joinpath("pages", "evaluation.html").read_text(encoding="utf-8"))
    comparison = evaluation.regression
    pictures = {
        "scores": score_distributions(evaluation.specks),
        "margins": margin_scatter(evaluation.scatter),
        "classes": p_value_classes(evaluation.association),
        "forest": interval_forest(comparison) if comparison else "",
    }
    return template.render(
        e=evaluation,
        title=title,
        warning=WARNING if confidential else None,
        class_names=CLASSES,
        pictures={name: Markup(svg) for name, svg in pictures.items()},  # our own drawings, labels escaped
    )


def _figure(value: float | None, digits: int = 3) -> str:
    return "not defined" if value is None else f"{value:.{digits}f}"
