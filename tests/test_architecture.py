"""The rules that keep the code readable and the guarantee in one place. Each has a control: a snippet that it must catch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.import_graph import LAYERS, ROOT, cycle, graph, imported, modules, parsed

NOISE, KEYS, CHARGE = "steps_engine/noise.py", "tasks/stores/keys.py", "tasks/stages/charge.py"
LONGEST_FUNCTION, LONGEST_MODULE = 50, 300

TOP = (
    "steps_engine.methods",
    "steps_engine.evaluation",
    "steps_engine.analyses",
    "steps_engine.studies",
    "steps_engine.answers",
)
ENGINE = ("steps_engine.accounting", "steps_engine.domain", "steps_engine.inference", *TOP)
ABOVE = {  # a folder or file, and what it never imports: what stands above or beside it
    "steps_engine/laws.py": ("steps_engine.noise", *ENGINE),
    "steps_engine/cube.py": ("steps_engine.bits", "steps_engine.noise", *ENGINE),
    "steps_engine/gaussian.py": ("steps_engine.bits", "steps_engine.noise", *ENGINE),
    "steps_engine/bits.py": ("steps_engine.noise", *ENGINE),
    "steps_engine/noise.py": ENGINE,
    "steps_engine/domain/": ("steps_engine.inference", *TOP),
    "steps_engine/inference/": TOP,
    "steps_engine/accounting/": TOP,
    "steps_engine/evaluation/": (
        "steps_engine.methods",
        "steps_engine.analyses",
        "steps_engine.studies",
        "steps_engine.answers",
    ),
    "steps_engine/analyses/": ("steps_engine.methods", "steps_engine.studies", "steps_engine.answers"),
    "steps_engine/methods/": ("steps_engine.evaluation", "steps_engine.studies", "steps_engine.answers"),
    "tasks/stores/": ("tasks.reading", "tasks.publishing", "tasks.verify", "tasks.stages", "tasks.studies"),
    "tasks/reading/": ("tasks.publishing", "tasks.verify", "tasks.stages", "tasks.studies"),
    "tasks/describing/": ("tasks.publishing", "tasks.verify", "tasks.stages", "tasks.studies", "tasks.answers"),
    "tasks/verify/": ("tasks.reading", "tasks.stages", "tasks.studies", "tasks.answers"),
    "tasks/publishing/": ("tasks.reading", "tasks.stages", "tasks.studies", "tasks.answers"),
    "tasks/stages/": ("tasks.studies", "tasks.answers"),
    "tasks/answers/": ("tasks.reading", "tasks.stages", "tasks.studies", "tasks.stores"),
    "flows/output/": ("flows.runtime", "flows.release", "flows.study", "flows.audit", "flows.cli"),
}

Rule = Callable[[str, ast.Module], Iterator[str]]


def dotted(node: ast.AST) -> str:
    """`np.random.default_rng` of an attribute chain."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports_point_one_way(path: str, tree: ast.Module) -> Iterator[str]:
    above = LAYERS[: LAYERS.index(path.split("/")[0])]
    yield from (name for name in imported(path, tree) if name.split(".")[0] in above)


def within(name: str, *places: str) -> bool:
    """Whether a name is one of these modules or lies in one of these packages."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def folders_keep_their_order(path: str, tree: ast.Module) -> Iterator[str]:
    above = next((names for place, names in ABOVE.items() if path.startswith(place)), ())
    yield from (name for name in imported(path, tree) if within(name, *above))


def the_verifier_takes_from_publishing_how_a_bundle_is_read(path: str, tree: ast.Module) -> Iterator[str]:
    if path.startswith("tasks/verify/"):
        taken = (name for name in imported(path, tree) if within(name, "tasks.publishing"))
        read = ["bundle", "formats", "statement", "descriptions.describing_among"]
        read += ["code", "telling"] if path == "tasks/verify/recompute.py" else []  # which makes again what was told
        allowed = [f"tasks.publishing.{name}" for name in read]
        yield from (name for name in taken if not within(name, *allowed) and name != "tasks.publishing.descriptions")


def the_verifier_does_its_own_arithmetic(path: str, tree: ast.Module) -> Iterator[str]:
    """What checks a plan shares no constant, score or formula with what made it."""
    if path.startswith("tasks/verify/"):
        for name in imported(path, tree):
            planning = {"plan", "choosing", "election", "growth"}.intersection(name.split("."))
            if within(name, "steps_engine.accounting") or within(name, "steps_engine.methods") and planning:
                yield name


def prefect_stays_in_flows(path: str, tree: ast.Module) -> Iterator[str]:
    if not path.startswith("flows/"):
        yield from (name for name in imported(path, tree) if name.split(".")[0] == "prefect")


def engine_is_pure(path: str, tree: ast.Module) -> Iterator[str]:
    impure = {"prefect", "great_expectations", "duckdb", "sqlalchemy", "os", "pathlib", "time", "datetime", "socket", "urllib"}
    if path.startswith("steps_engine/"):
        allowed = {"os"} if path == NOISE else set()
        yield from (name for name in imported(path, tree) if name.split(".")[0] in impure - allowed)


def engine_has_no_pages_or_files(path: str, tree: ast.Module) -> Iterator[str]:
    if not path.startswith("steps_engine/"):
        return
    pages, files = ("html", "jinja2", "markupsafe", "matplotlib"), ("io", "tempfile", "shutil", "glob", "importlib.resources")
    tables = ("pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset", "pyarrow.fs")
    yield from (name for name in imported(path, tree) if within(name, *pages, *files, *tables))
    reading = ("read_text", "write_text", "read_bytes", "write_bytes", "read_csv", "to_csv", "read_parquet", "to_parquet")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "open":
            yield "open()"
        if isinstance(node, ast.Attribute) and node.attr in reading:
            yield f".{node.attr}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "</" in node.value:
            yield "markup"


def tasks_have_no_maths(path: str, tree: ast.Module) -> Iterator[str]:
    """Tasks count, sort and add up. Logarithms, roots, fits and products of matrices are the engine's; the verifier has its own."""
    if not path.startswith("tasks/") or path.startswith("tasks/verify/"):
        return
    libraries = ("scipy", "sklearn", "statsmodels", "patsy", "numpy.linalg", "numpy.fft", "numpy.polynomial")
    yield from (name for name in imported(path, tree) if within(name, *libraries))
    functions = ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "power", "pow", "dot", "einsum", "var", "std")
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "@"
        home, _, name = dotted(node).rpartition(".")
        if home in ("np", "numpy", "math") and name in functions or home in ("np.linalg", "numpy.linalg"):
            yield f"{home}.{name}"


def noise_is_drawn_in_one_place(path: str, tree: ast.Module) -> Iterator[str]:
    if path == NOISE:
        return
    samplers = {"random", "numpy.random", "secrets", "opendp", "scipy.stats.qmc"} - ({"secrets"} if path == KEYS else set())
    for name in imported(path, tree):
        if any(name == sampler or name.startswith(f"{sampler}.") for sampler in samplers) or within(name, "steps_engine.bits"):
            yield name
    for node in ast.walk(tree):
        name = dotted(node)
        if name in ("os.urandom", "os.getrandom", "uuid.uuid4") or name.startswith(("np.random.", "numpy.random.")):
            yield name
        if isinstance(node, ast.Attribute) and node.attr in ("rvs", "sample"):
            yield f".{node.attr}"


def budget_is_charged_in_one_place(path: str, tree: ast.Module) -> Iterator[str]:
    """`charge` on a ledger is called, and a ChargedPlan made, by tasks/stages/charge.py alone; a definition is no call."""
    if path == CHARGE:
        return
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    yield from (dotted(call) or call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr == "charge")
    yield from (dotted(call) for call in calls if dotted(call).split(".")[-1] == "ChargedPlan")


def nothing_foreign_is_run(path: str, tree: ast.Module) -> Iterator[str]:
    foreign = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    yield from (name for name in imported(path, tree) if name.split(".")[0] in foreign or name in ("yaml", "yaml.load"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in ("eval", "exec", "yaml.load", "pd.read_pickle", "np.load"):
            yield dotted(node.func)
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell") and getattr(node.value, "value", True):
            yield node.arg


def functions_and_modules_stay_short(path: str, tree: ast.Module) -> Iterator[str]:
    if max((getattr(node, "end_lineno", 0) for node in tree.body), default=0) > LONGEST_MODULE:
        yield path
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= LONGEST_FUNCTION:
            yield node.name


def no_seed_in_a_release(path: str, tree: ast.Module) -> Iterator[str]:
    """Seeded sources serve stand-ins and studies; a task of a release draws from the system alone."""
    if path.startswith(("tasks/", "flows/")) and path not in (
        "tasks/studies/standin.py",
        "flows/study.py",
        "tasks/studies/points.py",
    ):
        yield from (name for name in imported(path, tree) if name.endswith("SeededRandomness"))


# Whoever may draw from a seed that follows from what is published: what comes after the noise, and who makes that again.
AFTER_NOISE = (
    "steps_engine/methods/after_noise.py",
    "steps_engine/methods/blocks.py",  # a seed for every block of rows, from the set's own stream
    "steps_engine/methods/run_in_memory.py",
    "tasks/stages/correct.py",
    "tasks/stages/synthesize.py",
    "tasks/verify/recompute.py",
    "steps_engine/answers/sample.py",
)


def public_seeds_stay_away_from_noise(path: str, tree: ast.Module) -> Iterator[str]:
    """Noise from a public seed could be taken away again: planning, building and sanitizing never see one."""
    if path not in AFTER_NOISE:
        public = ("steps_engine.public_randomness", "steps_engine.methods.after_noise")
        yield from (name for name in imported(path, tree) if within(name, *public))


def noise_is_the_systems(path: str, tree: ast.Module) -> Iterator[str]:
    """The stages that draw hand the operating system's randomness to the method, and nothing else."""
    if path in ("tasks/stages/build.py", "tasks/stages/sanitize.py"):
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        draws = [call for call in calls if dotted(call.func) in ("method.build", "method.sanitize")]
        sources = [call.args[-1] for call in draws]
        if not draws or any(not isinstance(s, ast.Call) or dotted(s.func) != "SystemRandomness" for s in sources):
            yield "a draw from another source than the system's"


def the_plain_check_recomputes_nothing(path: str, tree: ast.Module) -> Iterator[str]:
    """It judges tables by what must hold in them; the methods run again in a module of their own."""
    if path.startswith("tasks/verify/") and path != "tasks/verify/recompute.py":
        yield from (name for name in imported(path, tree) if within(name, "tasks.verify.recompute"))


CONTROLS: dict[Rule, tuple[str, str]] = {
    imports_point_one_way: ("schemas/x.py", "def f():\n    from tasks.stages.plan import plan"),
    folders_keep_their_order: ("tasks/reading/x.py", "def f():\n    from tasks.stages import plan"),
    the_verifier_takes_from_publishing_how_a_bundle_is_read: ("tasks/verify/x.py", "from tasks.publishing import page"),
    the_verifier_does_its_own_arithmetic: ("tasks/verify/x.py", "from steps_engine.methods.tree.plan import spec_hash"),
    prefect_stays_in_flows: ("tasks/x.py", "import prefect.states"),
    engine_is_pure: ("steps_engine/x.py", "from pathlib import Path"),
    engine_has_no_pages_or_files: ("steps_engine/x.py", "page = f'<b>{title}</b>'"),
    tasks_have_no_maths: ("tasks/x.py", "import numpy as np\nerror = np.sqrt(variance)"),
    noise_is_drawn_in_one_place: ("steps_engine/x.py", "import numpy as np\nnp.random.default_rng()"),
    budget_is_charged_in_one_place: ("tasks/x.py", "store.ledger.charge(request)"),
    nothing_foreign_is_run: ("tasks/x.py", "import pickle"),
    functions_and_modules_stay_short: ("tasks/x.py", "def f():\n" + "    x = 1\n" * LONGEST_FUNCTION),
    no_seed_in_a_release: ("tasks/stages/sanitize.py", "from steps_engine.noise import SeededRandomness"),
    public_seeds_stay_away_from_noise: ("tasks/stages/build.py", "from steps_engine.public_randomness import PublicRandomness"),
    noise_is_the_systems: ("tasks/stages/sanitize.py", "noisy = method.sanitize(domain, plan, counts, tree, randomness)"),
    the_plain_check_recomputes_nothing: ("tasks/verify/bundle.py", "def f():\n    from tasks.verify import recompute"),
}
MORE_CONTROLS = [
    (
        public_seeds_stay_away_from_noise,
        "steps_engine/methods/tree/sanitize.py",
        "from steps_engine.methods import after_noise",
    ),
    (noise_is_the_systems, "tasks/stages/build.py", "tree = method.build(domain, planned, counts, PublicRandomness(seed))"),
    (imports_point_one_way, "steps_engine/x.py", "if TYPE_CHECKING:\n    import tasks.stores"),
    (folders_keep_their_order, "steps_engine/inference/x.py", "from steps_engine.methods.registry import make_plan"),
    (folders_keep_their_order, "steps_engine/accounting/x.py", "import steps_engine.methods.registry"),
    (folders_keep_their_order, "steps_engine/evaluation/x.py", "from steps_engine import methods"),
    (folders_keep_their_order, "steps_engine/noise.py", "from steps_engine.domain import cells"),
    (folders_keep_their_order, "tasks/stores/x.py", "from ..stages import plan"),
    (folders_keep_their_order, "tasks/verify/x.py", "from tasks.stages.plan import load_plan"),
    (folders_keep_their_order, "tasks/answers/x.py", "from tasks.stores.ledger import open_ledger"),
    (folders_keep_their_order, "steps_engine/methods/x.py", "from steps_engine.answers import table"),
    (the_verifier_takes_from_publishing_how_a_bundle_is_read, "tasks/verify/bundle.py", "from tasks.publishing import telling"),
    (
        the_verifier_takes_from_publishing_how_a_bundle_is_read,
        "tasks/verify/files.py",
        "from tasks.publishing.descriptions import written",
    ),
    (folders_keep_their_order, "tasks/describing/x.py", "from tasks.stages.plan import load_plan"),
    (the_verifier_does_its_own_arithmetic, "tasks/verify/x.py", "from steps_engine.accounting import mechanisms"),
    (engine_has_no_pages_or_files, "steps_engine/x.py", "import matplotlib.pyplot as plt"),
    (engine_has_no_pages_or_files, "steps_engine/x.py", "import pyarrow.parquet as pq"),
    (engine_has_no_pages_or_files, "steps_engine/x.py", "open('counts')"),
    (engine_has_no_pages_or_files, "steps_engine/x.py", "frame.to_csv(where)"),
    (tasks_have_no_maths, "tasks/x.py", "from scipy import stats"),
    (tasks_have_no_maths, "tasks/x.py", "np.linalg.lstsq(a, b)"),
    (tasks_have_no_maths, "tasks/x.py", "c = a @ b"),
    (budget_is_charged_in_one_place, "tasks/x.py", "paid = charge.ChargedPlan(plan, 1)"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "import random"),
    (noise_is_drawn_in_one_place, "steps_engine/x.py", "from steps_engine.bits import coins"),
    (noise_is_drawn_in_one_place, "steps_engine/x.py", "from steps_engine import bits"),
    (folders_keep_their_order, "steps_engine/gaussian.py", "from steps_engine import bits"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "from numpy.random import default_rng"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "import os\nos.urandom(8)"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "import secrets"),
    (noise_is_drawn_in_one_place, "steps_engine/x.py", "frame.sample(3)"),
    (nothing_foreign_is_run, "tasks/x.py", "eval('1')"),
    (nothing_foreign_is_run, "tasks/x.py", "import yaml\nyaml.load('a')"),
    (nothing_foreign_is_run, "tasks/x.py", "subprocess.run('ls', shell=True)"),
]


def broken_by(rule: Rule) -> dict[str, list[str]]:
    return {path: found for path, text in modules().items() if (found := list(rule(path, parsed(text))))}


@pytest.mark.parametrize("rule", CONTROLS, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Rule):
    assert broken_by(rule) == {}


def test_no_modules_import_each_other_in_a_circle():
    assert cycle(graph(modules())) == []


@pytest.mark.parametrize(
    "hidden",
    [
        "from tasks.stages import plan",
        "def f():\n    from tasks.stages.plan import plan",
        "if TYPE_CHECKING:\n    import tasks.stages.plan",
        "from .stages import plan",
    ],
)
def test_a_circle_is_found_wherever_an_import_hides(hidden: str):
    texts = {"tasks/stages/plan.py": "from tasks import x", "tasks/x.py": hidden}
    assert set(cycle(graph(texts))) == {"tasks.stages.plan", "tasks.x"}
    assert cycle(graph(texts | {"tasks/x.py": ""})) == []


@pytest.mark.parametrize("rule", CONTROLS, ids=lambda rule: rule.__name__)
def test_the_rule_catches_what_breaks_it(rule: Rule):
    path, snippet = CONTROLS[rule]
    assert list(rule(path, ast.parse(snippet)))


@pytest.mark.parametrize(("rule", "path", "snippet"), MORE_CONTROLS)
def test_the_rule_catches_this_too(rule: Rule, path: str, snippet: str):
    assert list(rule(path, ast.parse(snippet)))


def test_noise_and_budget_each_have_their_place():
    """A newcomer finds both by their star."""
    assert "★" in (ROOT / CHARGE).read_text() and "ledger.charge(" in (ROOT / CHARGE).read_text()
    assert "★" in (ROOT / NOISE).read_text()


def commands() -> Iterator[str]:
    """Every command of the command line: `steps run`, `steps budget grant` …"""
    import click

    from flows.cli import main

    def walk(command: click.Command, words: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                yield from walk(child, f"{words} {name}")
        else:
            yield words

    return walk(main, "steps")


def undocumented(readme: str) -> list[str]:
    return [command for command in commands() if command not in readme]


def test_every_command_is_documented_in_the_readme():
    assert undocumented((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_an_undocumented_command_is_noticed():
    assert "steps budget grant" in undocumented("steps run, steps plan")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-peers.lock"])
def test_the_lock_file_names_no_address(name):
    text = (ROOT / name).read_text()
    assert "://" not in text and "--index-url" not in text and "--hash=sha256:" in text
