"""Verification: every check has a bundle that breaks just that, signed again by a dishonest publisher where needed."""

from __future__ import annotations

import json
import os
import random
import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain
from tasks.publishing import bundle
from tasks.publishing.formats import FORMATS
from tasks.publishing.publication import publish
from tasks.publishing.statement import STATEMENT, envelope_of, statement_of
from tasks.stores.keys import signing_key
from tasks.verify.bundle import Problem, holds, verify_bundle
from tests.tasks.publishing.making import (
    ELECTED,
    GIVEN,
    POLL,
    a_release,
    edit_json,
    edit_table,
    forge_chain,
    forge_plan,
    make,
    sign_again,
    some_counts,
)

pytestmark = pytest.mark.whole

FILES = sorted(bundle.file_names(2, ("parquet", "csv")))


def problems_of(folder: Path) -> list[Problem]:
    return [problem for problem in verify_bundle(folder) if not problem.note]


def must_find_only(folder: Path, file: str, words: str) -> None:
    """Every problem is in that file and says that, and there is one."""
    found = problems_of(folder)
    assert found and all(problem.file == file and words in problem.text for problem in found), [str(p) for p in found]


def must_find_in_plan(folder: Path, words: str) -> None:
    """Every problem of the plan says that, and there is one. Counts may contradict a plan whose scales are not theirs."""
    found = problems_of(folder)
    in_plan = [problem for problem in found if problem.file == "plan.json"]
    assert in_plan and all(words in problem.text for problem in in_plan), [str(p) for p in found]
    counts = {"noisy-counts.parquet", "consistent-counts.parquet"}
    assert {problem.file for problem in found} <= {"plan.json"} | counts, [str(p) for p in found]


# The files


def test_a_bundle_verifies_with_the_publishers_key_and_says_when_there_is_none(given, given_copy):
    assert verify_bundle(given_copy, given.home.keys / "signing-key.pub") == []
    (note,) = verify_bundle(given_copy)
    assert note.note and "not established" in note.text


@pytest.mark.parametrize("epsilon", ["0.01", "3"])
def test_a_tree_whose_branches_may_stop_verifies(tmp_path, epsilon):
    stopping = {"decomposition": "tree", "elect": {"layers": 4, "utility": "uneven", "stop": True}}
    made = make(tmp_path / "home", a_release(POLL, stopping, epsilon=epsilon), some_counts(POLL, 4003))
    folder = publish(*made.arguments).folder
    assert problems_of(folder) == []
    layers = pq.read_table(folder / "tree.parquet")
    assert any(
        leaf and layer < len(made.plan.layers)
        for leaf, layer in zip(*(layers[c].to_pylist() for c in ("leaf", "layer")), strict=True)
    )


def test_sets_that_share_one_measurement_verify_and_their_page_says_how_to_combine_them(tmp_path):
    shared = GIVEN | {"sets": {"count": 3, "budget": "shared"}}
    made = make(tmp_path / "home", a_release(POLL, shared), some_counts(POLL, 4003))
    published = publish(*made.arguments)
    assert verify_bundle(published.folder, made.home.keys / "signing-key.pub") == []
    assert published.manifest.composition.measurements == (1,) and published.manifest.composition.sets == 3
    page = (published.folder / "index.html").read_text()
    assert "(1 + 1 / m) * B" in page and "W + B / m" not in page


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_byte_is_found_in_every_file(given_copy, name):
    content = bytearray((given_copy / name).read_bytes())
    rng = random.Random(name)
    for place in {0, len(content) - 1, *(rng.randrange(len(content)) for _ in range(3))}:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        (given_copy / name).write_bytes(flipped)
        assert problems_of(given_copy), (name, place)
    (given_copy / name).write_bytes(content)
    assert not problems_of(given_copy)


def test_every_bit_of_the_signature_counts():
    key, manifest = Ed25519PrivateKey.generate(), b"{}"
    signature = bundle.signature_of(key, manifest)
    assert bundle.is_signed(key.public_key(), manifest, signature)
    for bit in range(8 * len(signature)):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not bundle.is_signed(key.public_key(), manifest, bytes(flipped))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found(given_copy, name):
    (given_copy / name).unlink()
    assert any(name in str(problem) or problem.text == "is missing" for problem in problems_of(given_copy))


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_anything_extra_is_found(given_copy, kind):
    extra = given_copy / "extra.parquet"
    {
        "file": lambda: extra.write_bytes(b"x"),
        "folder": extra.mkdir,
        "link": lambda: extra.symlink_to(given_copy / "tree.parquet"),
        "pipe": lambda: os.mkfifo(extra),
    }[kind]()
    must_find_only(given_copy, "extra.parquet", "not")


def test_a_file_listed_beside_the_allow_list_is_found_even_when_signed(given, given_copy):
    (given_copy / "cells.parquet").write_bytes(b"exact counts")
    sign_again(given_copy, given.home)
    assert {problem.file for problem in problems_of(given_copy)} == {"cells.parquet", "manifest.json"}


@pytest.mark.parametrize("name", ["tree.parquet", "manifest.json", "signing-key.pub"])
def test_a_link_in_place_of_a_file_is_not_followed(given_copy, tmp_path, name):
    (given_copy / name).rename(tmp_path / name)
    (given_copy / name).symlink_to(tmp_path / name)
    assert any(problem.file == name and "not a plain file" in problem.text for problem in problems_of(given_copy))


def test_another_signer_is_found_when_the_key_is_given(given, given_copy, tmp_path):
    other = Ed25519PrivateKey.generate()
    (given_copy / bundle.PUBLIC_KEY).write_bytes(bundle.public_pem(other))
    sign_again(given_copy, given.home)
    manifest = (given_copy / bundle.MANIFEST).read_bytes()
    (given_copy / bundle.SIGNATURE).write_bytes(bundle.signature_of(other, manifest))
    (given_copy / STATEMENT).write_bytes(envelope_of(other, statement_of(bundle.read_manifest(manifest), manifest)))
    assert holds(verify_bundle(given_copy))  # self-consistent: only a key from elsewhere can tell
    found = verify_bundle(given_copy, given.home.keys / "signing-key.pub")
    assert {problem.file for problem in found} == {bundle.PUBLIC_KEY, bundle.SIGNATURE} and not holds(found)


def test_a_key_that_is_none_is_an_error_of_the_caller(given_copy, tmp_path):
    for path in (tmp_path / "absent.pub", given_copy / "plan.json"):
        with pytest.raises(SpecError, match="public key"):
            verify_bundle(given_copy, path)


def test_a_folder_that_is_none_is_a_problem(tmp_path):
    assert not holds(verify_bundle(tmp_path / "absent"))
    assert not holds(verify_bundle(tmp_path))


# What was paid: each forgery agrees with itself in everything but the one thing


def _change_draw(number: int, **change: str):
    return lambda plan: plan["draws"][number].update(change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_change_draw(0, epsilon="1/7", scale="7"), "sum to", id="shares changed"),
        pytest.param(_change_draw(0, scale="3/2"), "below sensitivity", id="scale lowered"),
        pytest.param(_change_draw(0, sensitivity="1/2", scale="3"), "one person can change it by", id="sensitivity lowered"),
        pytest.param(lambda plan: plan["draws"].append(plan["draws"][0]), "", id="a draw made twice"),
        pytest.param(lambda plan: plan["draws"].pop(), "", id="a draw left out"),
        pytest.param(_change_draw(0, mechanism="exponential"), "no election or count", id="another mechanism"),
        pytest.param(_change_draw(0, epsilon="-1/6"), "", id="a negative share"),
    ],
)
def test_draws_that_do_not_cover_the_charge_are_found(given, given_copy, change, words):
    forge_plan(given_copy, given.home, change)
    must_find_in_plan(given_copy, words)


def test_a_plan_that_promises_less_than_its_draws_spend_is_found(given, given_copy):
    forge_plan(given_copy, given.home, lambda plan: plan.update(epsilon="0.5"))
    texts = " ".join(str(problem) for problem in problems_of(given_copy))
    assert "was charged; the release promises" in texts and "sum to 1, not to ε=0.5" in texts


def test_substitution_with_the_noise_of_add_remove_is_found(given, given_copy):
    forge_plan(given_copy, given.home, lambda plan: plan.update(neighbours="substitute"))
    assert any("one person can change it by 2" in problem.text for problem in problems_of(given_copy))


def test_an_election_below_its_declared_sensitivity_is_found(elected, elected_copy):
    def halve(plan):
        draw = next(draw for draw in plan["draws"] if draw["kind"] == "election")
        draw.update({key: str(Fraction(draw[key]) / 2) for key in ("sensitivity", "scale")})

    forge_plan(elected_copy, elected.home, halve)
    must_find_only(elected_copy, "plan.json", "one person can change it by 2")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda m: m["ledger"]["charge"].update(amount=5 * 10**8), "was charged", id="charged less"),
        pytest.param(lambda m: m["ledger"]["charge"].update(granted_after=10**8), "exceeds", id="beyond the grant"),
        pytest.param(lambda m: m["ledger"]["charge"].update(release="other"), "another release", id="another release"),
        pytest.param(lambda m: m["ledger"]["charge"]["shown"].update(plan_hash="0" * 64), "another plan", id="another plan"),
    ],
)
def test_a_charge_that_is_not_this_releases_is_found(given, given_copy, change, words):
    sign_again(given_copy, given.home, lambda manifest: (change(manifest), forge_chain(manifest["ledger"])))
    must_find_only(given_copy, "manifest.json", words)


@pytest.mark.parametrize(
    "change",
    [
        lambda proof: proof.update(head="0" * 64),
        lambda proof: proof.update(head_seq=proof["head_seq"] + 1),
        lambda proof: proof["later"].pop(),
        lambda proof: proof["charge"].update(date="2020-01-01"),
        lambda proof: proof["charge"].update(key="charge:other#1"),
        lambda proof: proof.update(previous="0" * 64),
    ],
)
def test_a_charge_outside_the_chain_is_found(given, given_copy, change):
    sign_again(given_copy, given.home, lambda manifest: change(manifest["ledger"]))
    must_find_only(given_copy, "manifest.json", "head of the ledger")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["guarantee"].update(sentence="Perfect secrecy."), "guarantee"),
        (lambda m: m["guarantee"].update(epsilon="0.1"), "guarantee"),
        (lambda m: m["guarantee"]["unprotected"].pop(), "guarantee"),
        (lambda m: m["composition"].update(total="1/2"), "composition"),
        (lambda m: m["draws"][0].update(scale="1000"), "draws differ"),
        (lambda m: m.update(spec_hash="0" * 64), "spec hash"),
        (lambda m: m.update(plan_hash="0" * 64), "plan does not have the hash"),
    ],
)
def test_a_manifest_that_says_other_than_the_plan_is_found(given, given_copy, change, words):
    sign_again(given_copy, given.home, change)
    must_find_only(given_copy, "manifest.json", words)


def test_a_domain_other_than_the_plans_is_found(given, given_copy):
    edit_json(given_copy / "domain.json", lambda domain: domain["unit"].update(rows_per_person=3))
    sign_again(given_copy, given.home)
    must_find_only(given_copy, "domain.json", "rows per person")


# The tree


def _in_last_layer(columns: dict[str, list]) -> list[int]:
    return [row for row, layer in enumerate(columns["layer"]) if layer == max(columns["layer"])]


def _duplicate_a_node(columns):
    row = _in_last_layer(columns)[0]
    columns["code"][row + 1] = columns["code"][row]


def _number_a_node_twice(columns):
    row = _in_last_layer(columns)[0]
    columns["node"][row + 1] = columns["node"][row]


def _split_siblings_differently(columns):
    row = _in_last_layer(columns)[1]
    columns["split"][row] = columns["split"][0]


def _use_an_attribute_twice(columns):
    for row in _in_last_layer(columns):
        names = json.loads(columns["split"][row])
        if "voted" not in names:
            columns["split"][row] = json.dumps(["voted", *names[1:]], separators=(",", ":"))


def _set(name: str, value):
    def change(columns):
        columns[name][_in_last_layer(columns)[-1]] = value

    return change


def _leaf_above(columns):
    columns["leaf"][0] = True


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_duplicate_a_node, "same code", id="a node twice"),
        pytest.param(_number_a_node_twice, "stands twice", id="a node's number twice"),
        pytest.param(_split_siblings_differently, "split on different attributes", id="siblings split differently"),
        pytest.param(_set("code", 10**6), "code beyond", id="a code out of range"),
        pytest.param(_set("parent", 10**6), "parent does not exist", id="an orphan"),
        pytest.param(_set("leaf", False), "not a leaf", id="a last node that is no leaf"),
        pytest.param(_leaf_above, "below a leaf", id="a leaf with children"),
        pytest.param(_set("split", '["nobody"]'), "not a list", id="an unknown attribute"),
        pytest.param(_set("split", "[" * 10**5), "not a list", id="a split that is no JSON"),
        pytest.param(_set("layer", 9), "layers do not follow", id="a layer skipped"),
    ],
)
def test_a_tree_whose_nodes_could_overlap_is_found(elected, elected_copy, change, words):
    edit_table(elected_copy / "tree.parquet", change)
    sign_again(elected_copy, elected.home)
    must_find_only(elected_copy, "tree.parquet", words)


def test_an_attribute_used_twice_on_a_branch_is_found(given, given_copy):
    def plan_it(plan):
        names = plan["layers"][-1]["attributes"]
        names[0] = "voted"

    edit_table(given_copy / "tree.parquet", _use_an_attribute_twice)
    forge_plan(given_copy, given.home, plan_it)
    must_find_only(given_copy, "tree.parquet", "used above")


def test_a_node_left_out_because_it_was_empty_is_found(elected, elected_copy):
    tree = pq.read_table(elected_copy / "tree.parquet")
    counts = pq.read_table(elected_copy / "consistent-counts.parquet").slice(1)
    rows = counts["whole_1"].to_numpy() + counts["whole_2"].to_numpy()
    empty = [i for i in range(tree.num_rows) if tree["leaf"][i].as_py() and rows[i] == 0]
    row = next(i for i in reversed(empty) if i > 0 and tree["parent"][i].as_py() == tree["parent"][i - 1].as_py())

    def drop(columns, skip):
        for values in columns.values():
            del values[row + skip]
        layer, node = columns["layer"][row + skip - 1], columns["node"]
        for i in range(row + skip, len(node)):
            node[i] -= columns["layer"][i] == layer

    edit_table(elected_copy / "tree.parquet", lambda columns: drop(columns, 0))
    edit_table(elected_copy / "noisy-counts.parquet", lambda columns: drop(columns, 0))
    edit_table(elected_copy / "consistent-counts.parquet", lambda columns: drop(columns, 1))
    forge_plan(elected_copy, elected.home, lambda plan: None)
    must_find_only(elected_copy, "tree.parquet", "cells" if tree.num_rows <= elected.plan.cells else "lacks nodes")


# The numbers


def _add(name: str, row: int, amount):
    def change(columns):
        columns[name][row] += amount

    return change


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("consistent-counts", _add("whole_1", -1, 1), "whole_1 in layer"),
        ("consistent-counts", _add("whole_2", 0, -1), "whole_2 in layer 1"),
        ("consistent-counts", _add("estimate", -1, 0.01), "estimates in layer"),
        ("consistent-counts", _add("estimate", 0, float("nan")), "no number"),
        ("consistent-counts", _add("standard_error", 3, -1e9), "no number"),
        ("consistent-counts", _add("whole_1", 2, 2**61), "too large"),
        ("consistent-counts", _add("node", 2, 1), "exactly the tree's nodes"),
        ("noisy-counts", _add("node", 2, 1), "exactly the tree's nodes"),
        ("noisy-counts", lambda columns: [values.pop() for values in columns.values()], "exactly the tree's nodes"),
    ],
)
def test_counts_that_do_not_add_up_are_found(given, given_copy, file, change, words):
    edit_table(given_copy / f"{file}.parquet", change)
    sign_again(given_copy, given.home)
    must_find_only(given_copy, f"{file}.parquet", words)


def test_whole_counts_below_zero_are_found_even_when_they_add_up(given, given_copy):
    def move(columns):
        last = len(columns["layer"]) - 1
        amount = columns["whole_1"][last] + 1
        columns["whole_1"][last] -= amount
        columns["whole_1"][last - 1] += amount

    edit_table(given_copy / "consistent-counts.parquet", move)
    sign_again(given_copy, given.home)
    must_find_only(given_copy, "consistent-counts.parquet", "negative")


def _first_row(**values):
    def change(columns):
        for name, value in values.items():
            columns[name][0] = value

    return change


def _turn_wage(columns):
    columns["wage"][0] = 10.5 - columns["wage"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_first_row(voted="yes", registered="no"), "breaks a rule", id="a row that breaks a rule"),
        pytest.param(_first_row(age=99), "outside the domain: age", id="a number beyond its bounds"),
        pytest.param(_first_row(voted="maybe"), "outside the domain: voted", id="an unknown category"),
        pytest.param(_first_row(wage=float("nan")), "outside the domain: wage", id="a number that is none"),
        pytest.param(_turn_wage, "as many rows in each cell", id="a row moved to another cell"),
        pytest.param(lambda columns: [values.pop() for values in columns.values()], "as many rows", id="a row missing"),
    ],
)
def test_rows_that_are_not_the_counts_are_found(given, given_copy, change, words):
    path = given_copy / "synthetic-2.parquet"
    edit_table(path, change)
    (given_copy / "synthetic-2.csv").write_bytes(FORMATS.named("csv").write(path.read_bytes()))
    sign_again(given_copy, given.home)
    must_find_only(given_copy, "synthetic-2.parquet", words)


def test_a_csv_with_other_rows_is_found(given, given_copy):
    path = given_copy / "synthetic-1.csv"
    path.write_bytes(path.read_bytes() + b"no,no,20,1.0,2000-01-01\r\n")
    sign_again(given_copy, given.home)
    must_find_only(given_copy, "synthetic-1.csv", "rows of the Parquet file")


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".parquet")])
def test_notes_of_pandas_are_found(given, given_copy, name):
    table = pq.read_table(given_copy / name)
    pq.write_table(table.replace_schema_metadata({"pandas": '{"index_columns": []}'}), given_copy / name)
    sign_again(given_copy, given.home)
    must_find_only(given_copy, name, "pandas")


# Every shape of release


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (GIVEN, {}),
        (ELECTED, {}),
        ({"decomposition": "tree", "elect": {"layers": 2, "what": "groups", "mechanism": "exponential"}}, {}),
        ({"decomposition": "tree", "elect": {"layers": 5}, "sets": {"count": 3}}, {"neighbours": "substitute"}),
        ({"decomposition": "flat"}, {"total": "invariant"}),
        ({"decomposition": "uh", "layers": 3, "shares": "cube_root"}, {"neighbours": "substitute", "total": "public"}),
        ({"decomposition": "tree", "order": (("voted", "registered"), ("age", "wage", "since"))}, {"total": "invariant"}),
    ],
)
def test_every_honest_release_verifies(tmp_path, method, privacy):
    release = a_release(POLL, method, epsilon="0.7", formats=("parquet",), **privacy)
    made = make(tmp_path / "home", release, some_counts(POLL, 4003))
    assert verify_bundle(publish(*made.arguments).folder, made.home.keys / "signing-key.pub") == []


@pytest.mark.parametrize("method", [GIVEN, {"decomposition": "tree", "elect": {"layers": 2}}])
def test_a_release_whose_branches_end_early_verifies(tmp_path, method):
    """Where voted is yes the rules leave one cell: its leaf lies above the last layer and spends the rest at once."""
    parts = [{"name": name, "kind": "categorical", "categories": ("no", "yes")} for name in ("voted", "age", "x")]
    rules = ({"never": {"voted": "yes", "age": "no"}}, {"never": {"voted": "yes", "x": "yes"}})
    domain = Domain.model_validate({"name": "d", "population": "p", "attributes": tuple(parts), "rules": rules})
    made = make(tmp_path / "home", a_release(domain, method), some_counts(domain, 500))
    folder = publish(*made.arguments).folder
    tree = pq.read_table(folder / "tree.parquet")
    if method is GIVEN:
        assert tree.filter(tree["leaf"])["layer"].to_pylist().count(1) == 1
    assert holds(verify_bundle(folder))


def test_a_release_of_nobody_verifies(tmp_path):
    made = make(tmp_path / "home", a_release(POLL, GIVEN), some_counts(POLL, 0))
    assert holds(verify_bundle(publish(*made.arguments).folder))


# Hostile bundles


HOSTILE_TEXTS = {
    "nothing": b"",
    "garbage": bytes(range(256)),
    "another value": b"[]",
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "a huge number": b'{"release":' + b"9" * 10_000 + b"}",
    "not a number": b'{"release":NaN}',
    "a key twice": b'{"release":1,"release":2}',
    "half a character": b'{"release":"\\ud800"}',
}


@pytest.mark.parametrize("name", ["manifest.json", "plan.json", "domain.json"])
@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_json_is_a_problem_and_never_a_crash(given, given_copy, name, text):
    (given_copy / name).write_bytes(HOSTILE_TEXTS[text])
    assert problems_of(given_copy)  # not what was signed
    if name == "manifest.json":
        signature = bundle.signature_of(signing_key(given.home), HOSTILE_TEXTS[text])
        (given_copy / bundle.SIGNATURE).write_bytes(signature)
    else:
        sign_again(given_copy, given.home)
    assert any(problem.file == name for problem in problems_of(given_copy))


@pytest.mark.parametrize("figure", ["1e999999999", " 1E+999_999_999 ", "1/0", "-1", "nan", "9" * 5000])
def test_hostile_figures_are_a_problem_and_never_a_crash(given, given_copy, figure):
    edit_json(given_copy / "plan.json", lambda plan: plan["draws"][0].update(epsilon=figure))
    sign_again(given_copy, given.home, lambda manifest: manifest["draws"][0].update(epsilon=figure))
    assert problems_of(given_copy)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/b", "", "synthetic-1.parquet/../x", "\x1b[2J"])
def test_names_in_a_manifest_are_never_followed(given, given_copy, name):
    sign_again(given_copy, given.home, lambda manifest: manifest["files"].update({name: {"sha256": "0" * 64, "size": 1}}))
    must_find_only(given_copy, "manifest.json", "lists other files")


def test_a_name_with_control_characters_does_not_reach_the_terminal(given_copy):
    (given_copy / "\x1b[2Jgone").write_bytes(b"")
    assert all(str(problem).isprintable() for problem in verify_bundle(given_copy))


def test_too_many_sets_are_a_problem(given, given_copy):
    sign_again(given_copy, given.home, lambda manifest: manifest["composition"].update(sets=["1/1000"] * 1000))
    assert any("sets" in problem.text for problem in problems_of(given_copy))


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".parquet")])
def test_a_table_of_another_schema_is_a_problem(given, given_copy, name):
    pq.write_table(pa.table({"layer": ["a"], "node": [None]}), given_copy / name)
    sign_again(given_copy, given.home)
    assert any(problem.file == name and "columns and types" in problem.text for problem in problems_of(given_copy))


def test_random_damage_signed_again_is_never_a_crash(given, tmp_path):
    """A dishonest publisher may sign anything: whatever the bytes, there is a list of problems."""
    names = ["plan.json", "domain.json", "tree.parquet", "consistent-counts.parquet", "synthetic-1.parquet"]
    rng = random.Random(5)
    for trial in range(60):
        folder = Path(shutil.copytree(given.home.public / given.release.name, tmp_path / str(trial)))
        path = folder / names[trial % len(names)]
        content = bytearray(path.read_bytes())
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
        sign_again(folder, given.home)
        assert isinstance(verify_bundle(folder), list)


@pytest.mark.slow
def test_the_youth_voter_release_verifies(tmp_path):
    """1,290,240 cells in four layers and five sets."""
    from steps_engine.domain.counting import count_codes
    from steps_engine.domain.encoding import encode
    from steps_engine.noise import SeededRandomness
    from steps_engine.studies.standin import youth_voter

    domain = load_domain(Path(__file__).parents[3] / "examples/youth-voter/dataset.yaml")
    method = {"decomposition": "tree", "order": ("voted", "college", "prereg_state"), "sets": {"count": 5}}
    counts = count_codes(encode(youth_voter(44_821, SeededRandomness(1)), domain))
    made = make(tmp_path / "home", a_release(domain, method, formats=("parquet",)), counts)
    assert made.plan.cells == 1_290_240
    assert verify_bundle(publish(*made.arguments).folder, made.home.keys / "signing-key.pub") == []
